"""Scopes: which names a column may mean in one SELECT, and in those around it.

The rule throughout: refuse only what cannot be legal. A source whose columns are not known (a table
function, a pivot) makes its scope open, and Spark's own analyzer has the last word there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from weft.logical.relations import ARRIVAL, WINDOW_END, WINDOW_START, WINDOW_TIME, Kind, Relation
from weft.logical.windows import WholeStream, Window
from weft.sql.tokens import Place


def place_of(node: exp.Expression) -> Place | None:
    """Where this node starts: sqlglot keeps the line, and the column of the END of the token."""
    for part in node.walk():
        if "line" in part.meta:
            meta = part.meta
            return Place(meta["line"], meta["col"] - (meta["end"] - meta["start"]))
    return None


def position(node: exp.Expression) -> dict[str, int]:
    """The same as arguments of an error, from the node itself or the nearest one around it."""
    around: exp.Expression | None = node
    while around is not None:
        if place := place_of(around):
            return {"line": place.line, "column": place.column}
        around = around.parent
    return {}


def time_column_of(relation: Relation) -> str | None:
    if relation.kind is Kind.QUERY and relation.is_per_window:
        return relation.time_column or WINDOW_TIME
    return relation.time_column


@dataclass(slots=True)
class Slot:
    """One occurrence of a stream, table or answer while it is being bound."""

    placeholder: str
    relation: Relation
    node: exp.Table
    window: Window | None = None  # None: none was written

    @property
    def columns(self) -> tuple[str, ...]:
        names = self.relation.column_names()
        if (self.window or WholeStream()).is_per_window:
            names += tuple(n for n in (WINDOW_START, WINDOW_END) if n not in names)
        return names

    @property
    def hidden(self) -> tuple[str, ...]:
        """Columns that can be named but are not part of SELECT *."""
        time = time_column_of(self.relation)
        return (time,) if time in {ARRIVAL, WINDOW_TIME} else ()


@dataclass(frozen=True, slots=True)
class Item:
    """One column of a query's answer. Without a name, Spark makes one up from the expression."""

    name: str | None
    node: exp.Expression


@dataclass(frozen=True, slots=True)
class Output:
    """The columns of a query's answer; open when there may be others."""

    items: tuple[Item, ...] = ()
    is_open: bool = False

    def renamed(self, names: Iterable[exp.Expression]) -> Output:
        """The output under a list of column aliases, if there is one."""
        identifiers = list(names)
        if not identifiers:
            return self
        return Output(tuple(Item(name.name, name) for name in identifiers))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.items if item.name is not None)

    @property
    def has_unnamed(self) -> bool:
        return any(item.name is None for item in self.items)


OPEN = Output(is_open=True)


@dataclass(eq=False, slots=True)
class Visible:
    """One source of a FROM clause, under its alias."""

    alias: str
    output: Output = OPEN
    slot: Slot | None = None
    qualifier: str = ""  # trades in trades.late
    is_joined_out: bool = False  # the right side of a semi or anti join

    @property
    def columns(self) -> tuple[str, ...]:
        if self.slot is not None and not self.output.items:
            return self.slot.columns
        return self.output.names

    @property
    def is_open(self) -> bool:
        return self.slot is None and self.output.is_open

    def has(self, name: str) -> bool:
        hidden = self.slot.hidden if self.slot is not None else ()
        return name.lower() in (column.lower() for column in (*self.columns, *hidden))

    def may_have(self, name: str) -> bool:
        made_up = self.output.has_unnamed and not name.isidentifier()
        return self.is_open or made_up or self.has(name)

    def __str__(self) -> str:
        if self.slot is None:
            return f'"{self.alias}"'
        return f'{self.slot.relation.kind} "{self.slot.relation.name}"'


@dataclass(slots=True, eq=False)
class Frame:
    """One SELECT's sources and aliases, inside the SELECT around it."""

    outer: Frame | None = None
    sources: list[Visible] = field(default_factory=list)
    aliases: set[str] = field(default_factory=set)  # those that may be named where we are now
    aliases_to_come: set[str] = field(default_factory=set)  # while WHERE and ON are checked
    merged: dict[str, set[int]] = field(default_factory=dict)  # columns of USING and NATURAL joins

    def add(self, source: Visible) -> Visible:
        self.sources.append(source)
        return source

    def named(self, alias: str) -> Visible | None:
        found = [s for s in self.sources if s.alias.lower() == alias.lower()]
        return found[0] if found else None

    def merge(self, names: Iterable[str], right: Visible) -> None:
        for name in names:
            left = {id(s) for s in self.sources if s.may_have(name)}
            self.merged.setdefault(name.lower(), set()).update(left | {id(right)})

    def holders(self, name: str) -> list[Visible]:
        """The sources an unqualified name may come from; those that a join merged count once."""
        found = [s for s in self.sources if s.has(name) and not s.is_joined_out]
        merged = self.merged.get(name.lower(), set())
        together = [s for s in found if id(s) in merged]
        return [s for s in found if id(s) not in merged] + together[:1]

    def outward(self) -> Iterator[Frame]:
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.outer

    @property
    def is_open(self) -> bool:
        return any(s.is_open for s in self.sources)
