"""What standing selections share, as values: predicates over one stream, and columns derived once.

A *selection* is SELECT … WHERE over one stream without an aggregate. Its rows are in the Data SteM
(the stream's stored rows, PSoup §4.2.1) once, whatever the number of queries; which rows satisfy a
query is told by the columns of the row itself, and by *derived* columns for what only Spark can say.
Source: PSoup §3 and §4. Differs: the paper marks a bit for each row and query; a column from which
any number of such bits follow is kept instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from weft.catalog.records import QueryRecord
from weft.catalog.view import View
from weft.logical.statistics import Statistic, digest
from weft.logical.windows import LastRows, Window, bounds
from weft.optimizer.factors import Predicate
from weft.optimizer.stem import Stem, Target, build


@dataclass(frozen=True)
class Derived:
    """An expression over a stream's columns that Spark evaluates once for each row, and keeps."""

    expression: str  # canonical Spark SQL, total; also its key
    type: str

    @cached_property
    def column(self) -> str:
        return "x_" + digest(f"{self.expression} :: {self.type}")


@dataclass(frozen=True)
class SelectClass:
    """What selections share fully: their stream and their predicate."""

    stream_id: int
    predicate: Predicate
    where: str  # the predicate in DuckDB's SQL, over the row's and derived columns
    derived: tuple[Derived, ...]

    @property
    def key(self) -> str:
        return "select_" + digest(repr([self.stream_id, self.predicate.key, self.where]))


@dataclass(frozen=True)
class Output:
    name: str
    sql: str  # in DuckDB's SQL


@dataclass(frozen=True)
class Selection:
    """How one query's answer comes of the rows of its class."""

    outputs: tuple[Output, ...]
    window: Window
    is_distinct: bool
    limit: int | None
    offset: int
    derived: tuple[Derived, ...]  # of its outputs
    policy: str = "auto"  # what is kept of its answer: auto, none, partial or complete
    evaluation: int = 0  # of the stream, when the query was registered
    ready_from: int | None = None  # its window is kept ready from this evaluation on
    statistics: tuple[Statistic, ...] = ()  # none: it is in no aggregation's way

    @property
    def can_be_ready(self) -> bool:
        """A window of the last rows is not a range of event times, which the Query SteM tests."""
        return not isinstance(self.window, LastRows)


@dataclass(frozen=True, slots=True, eq=False)
class LiveSelection:
    """A registered selection with its class."""

    record: QueryRecord
    selection: Selection
    value: SelectClass
    listed_from: int | None  # the class's rows of event times from here on are in its list

    def window_at(self, clock: int) -> tuple[int | None, int]:
        """The closed range of event times that its answer comes of."""
        low, high = bounds(self.selection.window, clock)
        seen = [t for t in (low, *self.record.horizons.values()) if t is not None]
        return max(seen, default=None), high


@dataclass(slots=True, eq=False)
class Selections:
    """What is kept for the selections over one stream, beside its rows."""

    stream_id: int
    live: list[LiveSelection] = field(default_factory=list)
    _listing: Stem | None = None

    @property
    def derived(self) -> tuple[Derived, ...]:
        """The columns that Spark derives from each row."""
        each = [d for s in self.live for d in (*s.value.derived, *s.selection.derived)]
        return tuple(sorted(dict.fromkeys(each), key=lambda d: d.column))

    def listing(self) -> Stem | None:
        """The index of the classes that have a list; None: there is none."""
        if self._listing is None:
            found = {s.record.class_id: s for s in self.live if s.listed_from is not None}
            targets = [Target(i, s.value.predicate, s.listed_from) for i, s in found.items()]
            self._listing = build(targets)
        return self._listing if self._listing.entries else None

    def ready(self, evaluation: int) -> list[LiveSelection]:
        """The queries whose windows are kept ready after an evaluation."""
        starts = [(s, s.selection.ready_from) for s in self.live]
        return [s for s, start in starts if start is not None and start <= evaluation]


def load_selections(view: View, stream_id: int) -> Selections:
    from weft.optimizer.codec import load  # which knows the values of this module

    classes = {row.id: row for row in view.classes(stream_id) if row.key.startswith("select_")}
    values = {class_id: load(row.definition) for class_id, row in classes.items()}
    found = Selections(stream_id)
    if not classes:
        return found
    for record in view.sharing():
        if record.class_id in classes:
            since = classes[record.class_id].eager_from
            value = values[record.class_id]
            found.live.append(LiveSelection(record, load(record.shared), value, since))
    return found
