"""The answers of shared queries, assembled from partials when they are read.

Why: partials are durable and a closed window is a pure function of them, so nobody needs to compute
a window before somebody reads it. The same holds for totals and for open windows after any
evaluation: their partials carry its number.
Source: PSoup §5 (lazy windows), carried over to aggregates; ARGUS Algorithm 1 for what changed.
Runs on DuckDB, starts no Spark job, works from any process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from weft.catalog.records import RESULTS, QueryRecord, Segment, StreamRecord
from weft.catalog.view import View
from weft.logical.panes import Windows, cover, windows_between
from weft.logical.statistics import Statistic
from weft.logical.windows import Cumulating, Hopping, microseconds
from weft.optimizer.codec import load
from weft.optimizer.network import live_node, route_of
from weft.optimizer.nodes import AggregateClass, Finish, LiveNode, Route, family_of
from weft.results import duck
from weft.results.answers import DIFF, END, EVALUATION, NUMBER, START
from weft.results.duck import Reading
from weft.results.failing import newest_failing, refuse_failing
from weft.results.functions import provide
from weft.results.rows import Evaluation, overlapping, scan_rows

LEVEL, PANE, VERSION, TIME = "_weft_level", "_weft_pane", "_weft_version", "_weft_time"
MERGED = "weft_m0"
CHUNKS = (16, 64, 256, 1024)  # windows looked at together while searching back for an answer


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """One stretch of a class's route: a node and its segments of those ticks."""

    live: LiveNode
    route: Route
    segments: list[Segment]
    bases: list[Segment]  # totals: what they add up to, up to an evaluation


class SharedAnswer:
    """Reads one shared query in one consistent look at the catalog."""

    def __init__(self, view: View, record: QueryRecord, root: Path) -> None:
        self._view, self.record, self._root = view, record, root
        self.finish: Finish = load(record.shared)
        provide(self.finish)
        row = view.class_of(record.class_id)
        self.shared: AggregateClass = load(row.definition)
        self._eager_from: int | None = row.eager_from
        routes = tuple(map(route_of, view.routes(record.class_id)))
        self._family = family_of(self.shared, routes)
        self.stream: StreamRecord = view.stream(self.shared.stream_id)
        nodes = {row.id: row for row in view.nodes(self.stream.id)}
        self.reaches = [self._reach(live_node(nodes[r.node_id]), r) for r in routes]

    def _reach(self, live: LiveNode, route: Route) -> Reach:
        segments = self._view.segments(live.owner, "partials", "totals")
        found = [s for s in segments if route.holds(s.tick)]
        bases = [s for s in found if s.part == "totals" and route.from_tick == 0]
        return Reach(live, route, [s for s in found if s.part == "partials"], bases)

    # per-window answers

    def newest(self, upto: int | None, evaluation: int | None = None) -> Reading:
        """The newest window with an answer that ends by an instant; None: any window with rows."""
        for windows in self._backwards(upto):
            if len(windows) == 1 and not self.finish.failures:
                found = self.answers_of(windows, evaluation)
                rows = duck.fetch_with(found.sql, found.tables)
                if rows.num_rows:
                    return Reading("SELECT * FROM weft_newest", {"weft_newest": rows})
                continue
            micros = self._newest_of(windows, evaluation)
            if micros is not None:
                at = np.flatnonzero(windows.ends == micros)
                return self.answers_of(Windows(windows.starts[at], windows.ends[at]), evaluation)
        return self.answers_of(no_windows(), evaluation)

    def _newest_of(self, windows: Windows, evaluation: int | None) -> int | None:
        """The end of the newest of some windows that has an answer, or fails."""
        merged = self._merged(windows, evaluation)
        sql = f"SELECT max({END}), count(*) FROM ({self.finished(merged.sql)})"
        end = duck.fetch_with(sql, merged.tables).column(0)[0].as_py()
        found = [] if end is None else [round(end.timestamp() * 1_000_000)]
        failing = newest_failing(self.finish, merged)
        return max([*found, *([] if failing is None else [failing])], default=None)

    def _backwards(self, upto: int | None) -> Iterator[Windows]:
        """Windows in growing chunks, newest first; a cheap look skips stretches without rows."""
        windows = self.windows(None, upto)
        last, chunk = len(windows), 0
        if last:
            yield _slice(windows, last - 1, last)
            last -= 1
        while last > 0:
            newest = self._newest_row(int(windows.ends[last - 1]))
            if newest is None:
                return
            holding = np.flatnonzero(windows.starts[:last] <= newest)
            if not len(holding):
                return
            last = int(holding[-1]) + 1
            first = max(0, last - CHUNKS[min(chunk, len(CHUNKS) - 1)])
            yield _slice(windows, first, last)
            last, chunk = first, chunk + 1

    def _newest_row(self, before: int) -> int | None:
        """Event time of the pane of the newest row that the class sees before an instant."""
        found = []
        for reach in self.reaches:
            panes = reach.live.node.panes
            limit = panes.number(before)
            segments = [s for s in reach.segments if s.min_time < limit]
            if segments:
                sql = (
                    f"SELECT max({PANE}) FROM {self.scan(segments)} WHERE {LEVEL} = 0"
                    f" AND {PANE} < {limit} AND {reach.route.condition.sql}"
                )
                newest = duck.fetch(sql).column(0)[0].as_py()
                if newest is not None:
                    found.append(panes.start(newest))
        return max(found, default=None)

    def windows(self, after: int | None, upto: int | None) -> Windows:
        """The windows that end in (after, upto], may hold rows that this query sees, and are not
        forgotten."""
        low, high = self._extent()
        if low is None:
            return no_windows()
        cuts = [cut for cut in (after, self.record.forgotten) if cut is not None]
        after = max(cuts, default=None)
        return self.visible(windows_between(self.shared.window, after, upto, low, high))

    def visible(self, found: Windows) -> Windows:
        return found.whole_since(self.record.horizons.values())

    def _extent(self) -> tuple[int | None, int | None]:
        lows, highs = [], []
        for reach in self.reaches:
            panes = reach.live.node.panes
            lows += [panes.start(s.min_time) for s in reach.segments]
            highs += [panes.start(s.max_time + 1) - 1 for s in reach.segments]
        return (min(lows), max(highs)) if lows else (None, None)

    def answers_of(self, windows: Windows, evaluation: int | None) -> Reading:
        """The finished answers of windows, with their edges; refused if one of them fails."""
        merged = self._merged(windows, evaluation)
        refuse_failing(self.record, self.finish, merged)
        return Reading(self.finished(merged.sql), merged.tables)

    def _merged(self, windows: Windows, evaluation: int | None) -> Reading:
        bound = "" if evaluation is None else f" AND {VERSION} <= {evaluation}"
        return self.assembled(windows, bound)

    def assembled(self, windows: Windows, bound: str = "") -> Reading:
        """Merged statistics by window: its number, edges, dimensions, statistics."""
        kept = self._kept(windows)
        if kept is not None:
            stored, lazy = kept
            rest = self.assembled(lazy, bound) if len(lazy) else Reading(self.nothing())
            return Reading(
                f"SELECT * EXCLUDE (w) FROM ({rest.sql}) UNION ALL {stored}", rest.tables
            )
        tables = {"weft_windows": window_table(windows)}
        parts = self.covered(windows, tables, bound)
        if not parts:
            return Reading(self.nothing(), {})
        sql = self.merged(parts)
        edges = f"make_timestamptz(s) AS {START}, make_timestamptz(e) AS {END}"
        sql = f"SELECT m.*, {edges} FROM ({sql}) m JOIN weft_windows USING (w)"
        return Reading(sql, tables)

    def covered(
        self, windows: Windows, tables: dict[str, pa.Table], bound: str = "", *helpers: str
    ) -> list[str]:
        """The partials that cover windows, of each node that the class reads, with the number of the
        window; small relations that they are joined with are added to `tables`."""
        columns = [*self.finish.dimensions, *(s.column for s in self.finish.statistics)]
        shown = ", ".join(f"p.{duck.name(c)}" for c in (LEVEL, PANE, *helpers, *columns))
        parts = []
        for i, reach in enumerate(self.reaches):
            name = f"weft_cover_{i}"
            found = cover(windows, reach.live.node.panes, reach.live.node.pyramid)
            if not len(found.pane):
                continue
            low, high = int(found.pane.min()), int(found.pane.max())
            segments = [s for s in reach.segments if s.min_time <= high and s.max_time >= low]
            if not segments:
                continue
            tables[name] = pa.table({"w": found.window, "l": found.level, "p": found.pane})
            parts.append(
                f"SELECT c.w, {shown} FROM {self.scan(segments)} p JOIN {name} c"
                f" ON p.{LEVEL} = c.l AND p.{PANE} = c.p"
                f" WHERE p.{PANE} BETWEEN {low} AND {high} AND {reach.route.condition.sql}{bound}"
            )
        return parts

    def merged(self, parts: list[str]) -> str:
        """Partials merged by window and group."""
        keys = ["w", *map(duck.name, self.finish.dimensions)]
        shown = ", ".join([*keys, *self.merges(f"{LEVEL}, {PANE}")])
        return f"SELECT {shown} FROM ({' UNION ALL '.join(parts)}) GROUP BY {', '.join(keys)}"

    def _kept(self, windows: Windows) -> tuple[str, Windows] | None:
        """SQL for the windows that are kept ready, and the others; None if there are none."""
        if self._eager_from is None:
            return None
        ready = windows.ends > self._eager_from
        if not ready.any():
            return None
        low, high = int(windows.ends[ready].min()), int(windows.ends[ready].max())
        found = self._view.segments(self.stream.owner, RESULTS)
        segments = [s for s in found if s.min_time <= high and s.max_time >= low]
        lazy = Windows(windows.starts[~ready], windows.ends[~ready])
        if not segments:
            return f"SELECT * EXCLUDE (w) FROM ({self.nothing()})", lazy
        columns = [*self.finish.dimensions, *(s.column for s in self.finish.statistics)]
        shown = ", ".join([*map(duck.name, columns), START, END])
        between = f"{END} BETWEEN {duck.instant(low)} AND {duck.instant(high)}"
        return (
            f"SELECT {shown} FROM {self.scan(segments)} WHERE _weft_family = {self._family}"
            f" AND {between} AND {own_windows(self.shared.window)}"
        ), lazy

    def merges(self, order: str | None = None) -> list[str]:
        """The merge of each statistic. With an order, floats are added in it, so that the same
        partials give the same sum to the last digit: what was told can be taken back."""
        return [f"{self._merge(s, order)} AS {s.column}" for s in self.finish.statistics]

    @staticmethod
    def _merge(statistic: Statistic, order: str | None) -> str:
        is_inexact = "double" in statistic.type or "float" in statistic.type
        if order is None or not is_inexact:
            return statistic.duck_merged()
        column = duck.name(statistic.column)
        ordered = statistic.duck_merge.replace("({})", f"({column} ORDER BY {order}, {column})", 1)
        return ordered.replace("{}", column)

    def nothing(self) -> str:
        from weft.results.answers import duck_type

        kinds = {d.column: d.type for d in self.shared.dimensions}
        kinds |= {s.column: s.type for s in self.finish.statistics}
        columns = [f"NULL::{duck_type(kind)} AS {duck.name(n)}" for n, kind in kinds.items()]
        columns += [f"NULL::TIMESTAMPTZ AS {START}", f"NULL::TIMESTAMPTZ AS {END}"]
        return f"SELECT 0::BIGINT AS w, {', '.join(columns)} WHERE false"

    def finished(self, merged: str, finish: str | None = None) -> str:
        """The finish over merged rows; ORDER BY … LIMIT for each window."""
        sql = f"WITH {MERGED} AS ({merged}) {finish or self.finish.duck}"
        if self.finish.window_names:
            start, end = (duck.name(name) for name in self.finish.window_names[:2])
            named = f"{start} AS {START}, {end} AS {END}, 0::BIGINT AS {NUMBER}"
            sql = f"SELECT * EXCLUDE ({start}, {end}), {named} FROM ({sql})"
        return self._limited(sql)

    def _limited(self, sql: str) -> str:
        from weft.results.answers import order_by

        if self.finish.limit is None and not self.finish.offset:
            return sql
        order = order_by(self.record) or " ORDER BY 1"
        rank = f"row_number() OVER (PARTITION BY {START}, {END}{order})"
        most = "" if self.finish.limit is None else f" <= {self.finish.offset + self.finish.limit}"
        tests = [f"{rank} > {self.finish.offset}", *([rank + most] if most else [])]
        return f"SELECT * FROM ({sql}) QUALIFY {' AND '.join(tests)}"

    def history(self, upto: int | None) -> Reading:
        return self.answers_of(self.windows(None, upto), None)

    # changes of per-window answers

    def closed_log(self, after: int) -> Reading:
        """Windows that closed after an evaluation, each with the number of the one it closed in."""
        clocks = self.clocks()
        known = [(n, c) for n, c in clocks if c is not None and n >= self.finish.evaluation]
        if not known:
            return self.log(Reading(self.nothing(), {}), "0::BIGINT")
        numbers = np.array([n for n, _ in known], np.int64)
        times = np.array([c for _, c in known], np.int64)
        late = [c for n, c in clocks if c is not None and n <= max(after, 0)]
        start = max(late) if late and after >= self.finish.evaluation else None
        windows = self.windows(start, int(times[-1]))
        at = np.searchsorted(times, windows.ends)  # first evaluation whose clock reaches the end
        merged = self.assembled(windows)
        refuse_failing(self.record, self.finish, merged)
        table = window_table(windows).append_column("n", pa.array(numbers[at]))
        tables = {**merged.tables, "weft_numbers": table}
        logged = self.log(Reading(merged.sql, tables), "1::BIGINT")
        edges = f"make_timestamptz(o.s) = l.{START} AND make_timestamptz(o.e) = l.{END}"
        numbered = f"SELECT l.* REPLACE (o.n AS {EVALUATION}) FROM ({logged.sql}) l"
        sql = f"{numbered} JOIN weft_numbers o ON {edges}"
        return Reading(f"SELECT * FROM ({sql}) WHERE {EVALUATION} > {after}", tables)

    def log(self, merged: Reading, diff: str) -> Reading:
        sql = self.finished(merged.sql)
        sql = f"SELECT *, {diff} AS {DIFF}, 0::BIGINT AS {EVALUATION} FROM ({sql})"
        return Reading(sql, merged.tables)

    def clocks(self) -> list[tuple[int, int | None]]:
        return [(row.evaluation, row.clock) for row in self._view.clocks(self.stream.id)]

    def evaluations(self) -> list[Evaluation]:
        """The stream's evaluations since the query was registered."""
        rows = self._view.clocks(self.stream.id, self.finish.evaluation - 1)
        return [Evaluation(row.evaluation, row.clock, row.seen) for row in rows]

    def rows(self, low: int, high: int) -> str | None:
        """The stream's rows between two instants; None if there are none."""
        found = overlapping(self._view.segments(self.stream.owner, "rows"), low, high)
        if not found:
            return None
        between = f"{TIME} BETWEEN {duck.instant(low)} AND {duck.instant(high)}"
        return f"SELECT * FROM {scan_rows(self.stream, found, self._root)} WHERE {between}"

    def scan(self, segments: list[Segment]) -> str:
        return duck.scan([str(self._root / s.path) for s in segments])


def own_windows(window: Hopping | Cumulating) -> str:
    """The test of a class's own windows among those of its family."""
    start, end = f"epoch_us({START})", f"epoch_us({END})"
    if isinstance(window, Cumulating):
        size, step = microseconds(window.size), microseconds(window.step)
        return f"{start} % {size} = 0 AND {end} % {step} = 0 AND {end} - {start} <= {size}"
    slide, offset = microseconds(window.slide), microseconds(window.offset)
    return f"{end} - {start} = {microseconds(window.length)} AND ({start} - {offset}) % {slide} = 0"


def _slice(windows: Windows, first: int, last: int) -> Windows:
    return Windows(windows.starts[first:last], windows.ends[first:last])


def no_windows() -> Windows:
    return Windows(np.zeros(0, np.int64), np.zeros(0, np.int64))


def window_table(windows: Windows) -> pa.Table:
    numbers = np.arange(len(windows), dtype=np.int64)
    return pa.table({"w": numbers, "s": windows.starts, "e": windows.ends})
