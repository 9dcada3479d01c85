"""The answers of selections, read from the stream's rows when somebody asks.

Why: the rows are kept anyway, once, by time; a window is a range of them, and a predicate over their
columns is decided as fast as a bit that said so could be fetched. So nothing is computed for a query
until it is read, at the clock or at any instant whose rows are retained.
Source: PSoup §3.3 (window, projection and duplicates just in time), §7 (a query browser for
temporal data). Runs on DuckDB, starts no Spark job, works from any process.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from weft.catalog.records import QueryRecord, Segment, StreamRecord
from weft.catalog.view import View
from weft.logical.windows import LastRows, bounds
from weft.optimizer.codec import load
from weft.optimizer.selections import Derived, SelectClass, Selection
from weft.results import duck
from weft.results.duck import Reading
from weft.results.retained import refuse_pruned
from weft.results.rows import Evaluation, overlapping, scan_rows

TIME, TICK, ORDER, TARGET = "_weft_time", "_weft_tick", "_weft_ord", "_weft_target"
ARRIVAL_ORDER = f"{TIME}, {TICK}, {ORDER}"
NEWEST_FIRST = f"{TIME} DESC, {TICK} DESC, {ORDER} DESC"


class SelectedAnswer:
    """Reads one selection in one consistent look at the catalog."""

    def __init__(self, view: View, record: QueryRecord, root: Path) -> None:
        self._view, self.record, self._root = view, record, root
        self.selection: Selection = load(record.shared)
        row = view.class_of(record.class_id)
        self.shared: SelectClass = load(row.definition)
        self._listed_from: int | None = row.eager_from
        self.stream: StreamRecord = view.stream(self.shared.stream_id)

    # answers

    def now(self) -> Reading:
        clock = self.stream.clock
        if clock is None:
            return self._nothing()
        if self.is_ready:
            return Reading(
                self._cut(f"SELECT {self.outputs}, {ARRIVAL_ORDER} FROM ({self._ready()})")
            )
        return Reading(self._answer(clock))

    def at(self, micros: int) -> Reading:
        """The answer at an instant: as an evaluation at it left it, else over what the window held."""
        clock = self.stream.clock
        if clock is None or micros >= clock:
            return self.now()
        refuse_pruned(self.stream, self.extent(micros)[0])
        known = [e for e in self.evaluations if e.clock == micros]
        return Reading(self._answer(micros, known[-1].seen if known else None))

    def _answer(self, now: int, seen: int | None = None) -> str:
        return self._cut(
            f"SELECT {self.outputs}, {ARRIVAL_ORDER} FROM ({self._matching(now, seen)})"
        )

    def _matching(self, now: int, seen: int | None) -> str:
        """The rows of the answer at an instant; `seen`: of those that had come by then."""
        low, high = self.extent(now)
        come = "TRUE" if seen is None else f"{TICK} <= {seen}"
        if not isinstance(self.selection.window, LastRows):
            return f"SELECT * FROM ({self.matching(low, high)}) WHERE {come}"
        rows = f"SELECT * FROM ({self.rows(low, high)}) WHERE {come}"
        last = f"SELECT * FROM ({rows}) ORDER BY {NEWEST_FIRST} LIMIT {self.selection.window.count}"
        return f"SELECT * FROM ({last}) WHERE {self.shared.where}"

    def _cut(self, rows: str) -> str:
        """DISTINCT, ORDER BY and LIMIT; rows that sort alike are taken in the order they came."""
        names = ", ".join(self.names)
        if self.selection.is_distinct:
            rows, ties = f"SELECT DISTINCT {names} FROM ({rows})", self.names
        else:
            ties = [ARRIVAL_ORDER]
        if self.selection.limit is None and not self.selection.offset:
            return f"SELECT {names} FROM ({rows})"
        return f"SELECT {names} FROM ({rows}) ORDER BY {self.sorted_by(ties)}{self._limit}"

    def sorted_by(self, ties: list[str]) -> str:
        from weft.results.answers import order_by

        keys = order_by(self.record).removeprefix(" ORDER BY ")
        return ", ".join([*([keys] if keys else []), *ties])

    @property
    def _limit(self) -> str:
        limit = "" if self.selection.limit is None else f" LIMIT {self.selection.limit}"
        return limit + (f" OFFSET {self.selection.offset}" if self.selection.offset else "")

    @cached_property
    def outputs(self) -> str:
        return ", ".join(f"{o.sql} AS {duck.name(o.name)}" for o in self.selection.outputs)

    @cached_property
    def names(self) -> list[str]:
        return [duck.name(o.name) for o in self.selection.outputs]

    def _nothing(self) -> Reading:
        rows = self.scan([], None, None)
        return Reading(self._cut(f"SELECT {self.outputs}, {ARRIVAL_ORDER} FROM ({rows})"))

    # rows

    @cached_property
    def segments(self) -> list[Segment]:
        return self._view.segments(self.stream.owner, "rows")

    def extent(self, now: int) -> tuple[int | None, int]:
        """The closed range of event times that may be in the window at an instant."""
        low, high = bounds(self.selection.window, now)
        if isinstance(self.selection.window, LastRows):
            low = nth_newest(self.segments, self.selection.window.count, now)
        return self.visible_from(low), high

    def visible_from(self, low: int | None) -> int | None:
        found = [t for t in (low, *self.record.horizons.values()) if t is not None]
        return max(found, default=None)

    def rows(self, low: int | None, high: int) -> str:
        """Retained rows between two instants, with what Spark has derived from them."""
        return self.scan(self.segments, low, high)

    def matching(self, low: int | None, high: int) -> str:
        """Rows between two instants that satisfy the predicate: from its list, as far as it has one."""
        since = self._listed_from
        if since is None or high < since:
            return f"SELECT * FROM ({self.rows(low, high)}) WHERE {self.shared.where}"
        start = since if low is None else max(low, since)
        kept = self._kept("lists", start, high, self.record.class_id)
        if low is not None and low >= since:
            return kept
        older = f"SELECT * FROM ({self.rows(low, since - 1)}) WHERE {self.shared.where}"
        shown = self._columns
        return f"SELECT {shown} FROM ({older}) UNION ALL SELECT {shown} FROM ({kept})"

    def _kept(self, part: str, low: int | None, high: int | None, target: int) -> str:
        segments = self._view.segments(self.stream.owner, part)
        return self.scan(segments, low, high, f"{TARGET} = {target}")

    @property
    def is_ready(self) -> bool:
        """Whether the newest evaluation has left the rows of the window."""
        start = self.selection.ready_from
        return start is not None and self.stream.evaluation >= start

    def _ready(self) -> str:
        return self._kept("ready", *self.extent(self.stream.clock), self.record.id)

    def scan(
        self, segments: list[Segment], low: int | None, high: int | None, test: str | None = None
    ) -> str:
        found = overlapping(segments, low, high)
        if not found:
            return self._no_rows()
        where = _between(low, high) + (f" AND {test}" if test else "")
        rows = f"SELECT * FROM {self._files(found)} WHERE {where}"
        if not self.derived:
            return rows
        more = overlapping(self._view.segments(self.stream.owner, "derived"), low, high)
        shown = ", ".join(duck.name(d.column) for d in self.derived)
        values = (
            f"SELECT {TICK}, {ORDER}, {shown} FROM {self._files(more)} WHERE {_between(low, high)}"
        )
        return f"SELECT * FROM ({rows}) JOIN ({values}) USING ({TICK}, {ORDER})"

    @cached_property
    def derived(self) -> tuple[Derived, ...]:
        return tuple(dict.fromkeys((*self.shared.derived, *self.selection.derived)))

    @cached_property
    def _columns(self) -> str:
        names = [c.name for c in self.stream.definition.columns]
        names += [TIME, TICK, ORDER, *(d.column for d in self.derived)]
        return ", ".join(map(duck.name, names))

    def _files(self, segments: list[Segment]) -> str:
        return scan_rows(self.stream, segments, self._root)

    def _no_rows(self) -> str:
        from weft.results.answers import duck_type

        columns = [(c.name, duck_type(c.type)) for c in self.stream.definition.columns]
        columns += [(TIME, "TIMESTAMPTZ"), (TICK, "BIGINT"), (ORDER, "BIGINT")]
        columns += [(d.column, duck_type(d.type)) for d in self.derived]
        nulls = ", ".join(f"NULL::{kind} AS {duck.name(name)}" for name, kind in columns)
        return f"SELECT {nulls} WHERE false"

    # time

    @cached_property
    def evaluations(self) -> list[Evaluation]:
        """The stream's evaluations since the query was registered, but those without a clock."""
        first = self.selection.evaluation
        return [
            Evaluation(row.evaluation, row.clock, row.seen)
            for row in self._view.clocks(self.stream.id, first - 1)
            if row.clock is not None
        ]


def _between(low: int | None, high: int | None) -> str:
    tests = [] if high is None else [f"{TIME} <= {duck.instant(high)}"]
    tests += [] if low is None else [f"{TIME} >= {duck.instant(low)}"]
    return " AND ".join(tests) or "TRUE"


def nth_newest(segments: list[Segment], count: int, now: int) -> int | None:
    """A time from which on there are at least `count` rows before an instant, by the footers alone;
    None: there may be fewer. Rows at the instant itself may have come after it was reached."""
    whole = sorted((s for s in segments if s.max_time < now), key=lambda s: -s.min_time)
    for segment in whole:
        count -= segment.rows
        if count <= 0:
            return segment.min_time
    return None
