"""The names of one SELECT block made plain: each of its expressions over bare stream columns.

Aliases (in GROUP BY, in HAVING, and of earlier columns in the SELECT list), positions in GROUP BY
and qualifiers are replaced by what they stand for. Order of meaning as in Spark: a column of the
stream first, then an alias. A name that Spark could read either way where it matters is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from sqlglot import exp

from weft.logical.aggregates import CannotShare
from weft.logical.relations import ARRIVAL
from weft.logical.windows import Landmark, Snapshot, Window, instant
from weft.plan.blocks import is_aggregate_call
from weft.plan.recompute import PlannedSource

START, END, TIME = "_weft_start", "_weft_end", "_weft_time"


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One SELECT block over one stream, its names made plain."""

    projections: tuple[tuple[str | None, exp.Expression], ...]  # output name, None: Spark's own
    groups: tuple[exp.Expression, ...]
    is_global: bool
    where: exp.Expression | None  # over the stream's columns
    having: exp.Expression | None  # and what WHERE says of the window's edges
    in_window: exp.Expression | None  # which rows the window may hold; None: every row is in one

    def mapped(self, rule: Callable[[exp.Expression], exp.Expression]) -> Block:
        """The block with its output expressions rewritten."""
        shown = tuple((name, rule(node)) for name, node in self.projections)
        having = rule(self.having) if self.having is not None else None
        return replace(self, projections=shown, having=having)


class Resolver:
    """Knows the stream's columns, its alias in the block, and the columns of its window."""

    def __init__(self, select: exp.Select, planned: PlannedSource, alias: str) -> None:
        self._select = select
        self._alias = alias.lower()
        self._window = planned.source.window
        columns = planned.source.relation.column_names()
        self._columns: dict[str, str] = {name.lower(): name.lower() for name in columns}
        if planned.shows_time:
            self._columns[ARRIVAL] = TIME
        for helper, name in zip(planned.window or (), (START, END), strict=False):
            self._columns[helper] = name
        self._aliases: dict[str, exp.Expression] = {}

    def block(self) -> Block:
        select = self._select
        where = select.args.get("where")
        rows, edges = self._split(self.plain(where.this)) if where else (None, None)
        projections = tuple(self._projection(p) for p in select.expressions)
        groups, is_global = self._groups(projections)
        having = select.args.get("having")
        tests = [edges, self._having(having.this) if having else None]
        return Block(
            projections, groups, is_global, rows, _conjunction(t for t in tests if t is not None),
            _in_window(self._window),
        )  # fmt: skip

    def _split(self, where: exp.Expression) -> tuple[exp.Expression | None, exp.Expression | None]:
        """WHERE as a test of rows, and a test of the window alone, which all its rows share."""
        rows, edges = [], []
        for factor in where.unnest().flatten() if isinstance(where.unnest(), exp.And) else [where]:
            names = {c.name for c in factor.find_all(exp.Column)}
            if names & {START, END} and names - {START, END}:
                raise CannotShare("WHERE compares a window's edges with columns")
            (edges if names & {START, END} else rows).append(factor)
        return _conjunction(rows), _conjunction(edges)

    def plain(
        self, node: exp.Expression, aliases: Mapping[str, exp.Expression] | None = None
    ) -> exp.Expression:
        """A copy over bare, quoted columns; aliases are read where there is no such column."""

        def rule(found: exp.Expression) -> exp.Expression:
            return self._column(found, aliases or {}) if isinstance(found, exp.Column) else found

        return node.copy().transform(rule)

    def _column(self, column: exp.Column, aliases: Mapping[str, exp.Expression]) -> exp.Expression:
        parts = [part.name.lower() for part in column.parts]
        if isinstance(column.this, exp.Star):
            raise CannotShare("SELECT * beside an aggregate")
        fields = [part.copy() for part in column.parts]
        if len(parts) > 1 and parts[0] == self._alias:
            parts, fields = parts[1:], fields[1:]
            aliases = {}
        name = self._columns.get(parts[0])
        if name is not None:
            base: exp.Expression = exp.column(name, quoted=True)
        elif parts[0] in aliases:
            base = exp.Paren(this=aliases[parts[0]].copy())
        else:
            raise CannotShare(f'the name "{column.name}" cannot be read without Spark')
        for field in fields[1:]:
            base = exp.Dot(this=base, expression=field)
        return base

    def _projection(self, projection: exp.Expression) -> tuple[str | None, exp.Expression]:
        inner = projection.unalias()
        if isinstance(inner, exp.Star) or isinstance(projection, exp.Aliases):
            raise CannotShare("SELECT * beside an aggregate")
        plain = self.plain(inner, self._aliases)
        name = projection.alias or None
        if isinstance(inner, exp.Column) and not name:
            name = inner.name
        if projection.alias:
            self._aliases[projection.alias.lower()] = plain
        return name, plain

    def _groups(self, projections: tuple) -> tuple[tuple[exp.Expression, ...], bool]:
        group = self._select.args.get("group")
        if group is None:
            if self._select.args.get("distinct") and not any(
                _aggregates(p) for _, p in projections
            ):
                return tuple(p for _, p in projections), False
            return (), True
        if group.find(exp.Cube, exp.Rollup, exp.GroupingSets) or group.args.get("totals"):
            raise CannotShare("GROUP BY with CUBE, ROLLUP or GROUPING SETS")
        if group.args.get("all"):
            return tuple(p for _, p in projections if not _aggregates(p)), False
        written = [e for e in group.expressions if not self._is_window_edge(e)]
        groups = tuple(self._group(e, projections) for e in written)
        return groups, not written and self._is_lifted()

    def _group(self, node: exp.Expression, projections: tuple) -> exp.Expression:
        inner = node.unnest()
        if isinstance(inner, exp.Literal) and inner.is_int:
            position = int(inner.this)
            if not 0 < position <= len(projections):
                raise CannotShare(f"GROUP BY {position} names no column")
            return projections[position - 1][1].copy()
        return self.plain(inner, self._aliases)

    def _is_window_edge(self, node: exp.Expression) -> bool:
        return isinstance(node, exp.Column) and self._columns.get(node.name) in (START, END)

    def _is_lifted(self) -> bool:
        return any(name in (START, END) for name in self._columns.values())

    def _having(self, node: exp.Expression) -> exp.Expression:
        """HAVING sees output columns as well; which wins differs inside and outside of calls."""
        for column in node.find_all(exp.Column):
            name = column.name.lower()
            hidden = self._aliases.get(name)
            if column.table or hidden is None or name not in self._columns:
                continue
            if hidden != exp.column(self._columns[name], quoted=True):
                raise CannotShare(f'"{column.name}" in HAVING is a column and another\'s alias')
        return self.plain(node, self._aliases)


def _conjunction(factors: Iterable[exp.Expression]) -> exp.Expression | None:
    found = list(factors)
    return exp.and_(*found) if found else None


def _in_window(window: Window) -> exp.Expression | None:
    """Rows of a landmark or snapshot window; the others hold every row sooner or later."""
    time = exp.column(TIME, quoted=True)
    if isinstance(window, Landmark):
        return exp.GTE(this=time, expression=_instant(window.since))
    if isinstance(window, Snapshot):
        late = exp.LT(this=time.copy(), expression=_instant(window.end))
        return exp.and_(exp.GTE(this=time, expression=_instant(window.start)), late)
    return None


def _instant(value: datetime) -> exp.Expression:
    return exp.cast(exp.Literal.string(instant(value)), "timestamp", dialect="spark")


def _aggregates(node: exp.Expression) -> bool:
    return any(is_aggregate_call(n) for n in node.walk())
