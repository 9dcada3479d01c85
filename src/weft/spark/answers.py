"""One evaluation of one query: compute what is new, write it, and say what to commit.

An answer is stored as signed rows. A query that emits closed windows only appends; every other
answer is kept as its changes: the new answer minus the old one, row by row with multiplicities
(the negative tuples of UPA §2.3.1).
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.catalog.records import QueryRecord, Segment
from weft.logical.relations import Kind
from weft.logical.windows import LastRows, Session, bounds, microseconds
from weft.spark import rows as stored
from weft.spark.constants import with_constants
from weft.spark.contents import Due
from weft.spark.evaluate import Evaluator
from weft.spark.groups import Only, groups_touched
from weft.spark.merged import Asked, Merged, SharedEvaluator, merge
from weft.spark.problems import data_problem_text, is_data_problem
from weft.spark.rows import DIFF, END, EVALUATION, START, instant, quote
from weft.spark.world import QueryState, World
from weft.storage.files import footer_segment, parquet_files, spark_path, sync_file


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an evaluation leaves to commit."""

    query_id: int
    segments: tuple[Segment, ...]
    evaluation: int
    clock: int | None
    frontier: int | None
    newest_end: int | None
    tick: int  # largest tick of a row that was seen
    ms: int
    error: str | None = None

    @property
    def changes(self) -> int:
        return sum(s.rows for s in self.segments)


def merge_due(
    spark: SparkSession, world: World, states: Iterable[QueryState], tick: int
) -> Merged | None:
    """One merge for all queries among these that share; None: none of them does, or is due.

    One that failed asks for windows of long ago, so it merges for itself.
    """
    asked = []
    for state in states:
        if state.shared is not None and not state.record.error:
            work = _Evaluation(spark, world, state, tick, False)
            if work.is_needed() and not work.is_untouched():
                asked.append(Asked(state.shared, work.due()))
    return merge(spark, world, asked) if asked else None


def evaluate(
    spark: SparkSession,
    world: World,
    state: QueryState,
    tick: int,
    is_forced: bool = False,
    merged: Merged | None = None,
) -> Outcome | None:
    """Bring a query up to its clock; None when nothing about it can have changed.

    A query that fails on the values it meets keeps its last answer and the error; the others,
    and the batch, go on. Anything else (disk, files) fails the batch, which is then repeated.
    """
    started = time.monotonic()
    work = _Evaluation(spark, world, state, tick, is_forced, merged)
    if not work.is_needed():
        return None
    try:
        segments, frontier = work.run()
    except Exception as error:
        if merged is not None and state.shared is not None and is_data_problem(error):
            return evaluate(spark, world, state, tick)  # what failed may be another's statistic
        if state.record.evaluation == 0 or not is_data_problem(error):
            raise
        record = state.record
        return Outcome(
            record.id, (), record.evaluation, record.clock, record.frontier, record.newest_end,
            record.evaluated_tick, _since(started), data_problem_text(error),
        )  # fmt: skip
    ends = [s.max_time for s in segments if s.max_time is not None]
    newest = max(
        [*ends, *([state.record.newest_end] if state.record.newest_end else [])], default=None
    )
    return Outcome(
        state.record.id, tuple(segments), state.record.evaluation + 1, work.clock, frontier, newest,
        work.newest_tick, _since(started),
    )  # fmt: skip


def _usable(merged: Merged | None, record: QueryRecord) -> Merged | None:
    """One that failed takes no part in the common merge, see merge_due."""
    return None if record.error else merged


def _since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)


class _Evaluation:
    def __init__(
        self,
        spark: SparkSession,
        world: World,
        state: QueryState,
        tick: int,
        is_forced: bool,
        merged: Merged | None = None,
    ) -> None:
        self._spark, self._world, self._state, self._tick = spark, world, state, tick
        self._is_forced = is_forced
        self._names = {
            p.source.relation.name.lower()
            for p in state.plan.sources
            if p.source.relation.kind is not Kind.TABLE
        }
        self.clock = world.clock_of(self._names)
        self.newest_tick = world.newest_tick(self._names)
        record = state.record
        self._before = record.clock if record.evaluation else None
        if state.shared is not None:
            self._evaluator = SharedEvaluator(spark, world, state.shared, _usable(merged, record))
        else:
            self._evaluator = Evaluator(spark, world, state.plan, record.horizons)

    def is_needed(self) -> bool:
        record = self._state.record
        if self._is_forced or record.evaluation == 0 or record.error:
            return True
        if not self._names:
            return False
        if record.is_per_window and record.is_append_only:
            return self.clock != record.clock or self._has_rows_at_clock()
        if record.is_per_window:
            return self.clock != record.clock or self._first_new() is not None
        return self._is_standing_answer_stale()

    def _is_standing_answer_stale(self) -> bool:
        """The clock moved while a window still follows it, or rows came that are not ahead of it."""
        if self.clock is None:
            return False
        first = self._first_new()
        if first is not None and first <= self.clock:
            return True
        if self.clock == self._state.record.clock:
            return False
        before = self._state.record.clock
        return before is None or any(
            bounds(p.source.window, self.clock) != bounds(p.source.window, before)
            for p in self._state.plan.sources
            if p.source.relation.kind is not Kind.TABLE
        )

    def _has_rows_at_clock(self) -> bool:
        first = self._first_new()
        return (
            isinstance(self._state.plan.window, LastRows)
            and first is not None
            and first == self.clock
        )

    def _first_new(self) -> int | None:
        found = [self._world.streams[n].first_new for n in self._names if n in self._world.streams]
        return min((f for f in found if f is not None), default=None)

    def is_untouched(self) -> bool:
        """Whether no partial came to what a shared query reads: only closing windows are news then."""
        shared, record = self._state.shared, self._state.record
        if shared is None or record.is_append_only or record.evaluation == 0 or record.error:
            return False
        found = [s for node_id in shared.nodes for s in self._world.partials.get(node_id, [])]
        return all(s.tick != self._tick for s in found)

    def run(self) -> tuple[list[Segment], int | None]:
        if self.is_untouched():
            return [], None
        if not self._state.record.is_per_window:
            only = self._only()
            answer = self._evaluator.standing(self.clock, only)
            return self._write(self._changes(answer, None, only)), None
        if self._state.record.is_append_only:
            return self._closed_windows()
        return self._changed_windows()

    def _only(self) -> Only | None:
        """The groups to compute again; None: all."""
        record = self._state.record
        if self._state.shared is not None:
            return None  # merged from partials: it does not look at rows
        if self._is_forced or record.evaluation == 0 or self.clock is None:
            return None
        return groups_touched(self._spark, self._world, self._state.plan, record, self.clock)

    def _closed_windows(self) -> tuple[list[Segment], int | None]:
        """Windows that closed since the last evaluation, each emitted once."""
        if self.clock is None:
            return [], self._state.record.frontier
        answer = self._evaluator.windows(self.due())
        segments = self._write(self._plain(answer)) if answer is not None else []
        return segments, self._next_frontier()

    def _changed_windows(self) -> tuple[list[Segment], int | None]:
        """Windows that new rows may have changed: those that were open, from the first new row on."""
        due = self.due()
        only = self._only()
        answer = self._evaluator.windows(due, only)
        changes = self._changes(answer, due.after, only) if answer is not None else None
        return (self._write(changes) if changes is not None else []), self._next_frontier()

    def due(self) -> Due | None:
        """The windows that this evaluation looks at; None: it is a standing answer."""
        record = self._state.record
        if not record.is_per_window:
            return None
        if record.is_append_only:
            return Due(self._before, self.clock, record.evaluated_tick, record.frontier)
        after = self._retained_from() if self._is_forced else self._before
        first = self._first_new()
        is_session = isinstance(self._state.plan.window, Session)
        if after is not None and first is not None and not is_session:
            after = max(after, first)
        frontier = None if self._is_forced else record.frontier
        return Due(after, None, record.evaluated_tick, frontier)

    def _retained_from(self) -> int | None:
        """An instant after which every window's rows are still retained; None if all rows are."""
        cuts = [
            self._world.streams[n].record.pruned_before
            for n in self._names
            if n in self._world.streams
        ]
        cuts = [cut for cut in cuts if cut is not None]
        if not cuts:
            return None
        window = self._state.plan.window
        length = getattr(window, "length", None) or getattr(window, "size", None)
        return max(cuts) + (microseconds(length) if length else 0)

    def _next_frontier(self) -> int | None:
        """Where the next evaluation of sessions must start reading."""
        if not isinstance(self._state.plan.window, Session) or self.clock is None:
            return None
        record = self._state.record
        still_open = self._evaluator.open_session_start(self._before, record.frontier, self.clock)
        return self.clock if still_open is None else min(still_open, self.clock)

    def _plain(self, answer: DataFrame) -> DataFrame:
        return self._select(answer).withColumn(DIFF, F.lit(1).cast("bigint"))

    def _select(self, answer: DataFrame) -> DataFrame:
        columns = stored.answer_columns(self._state)
        return answer.select(*[F.col(quote(c.name)).cast(c.type).alias(c.name) for c in columns])

    def _changes(self, answer: DataFrame, after: int | None, only: Only | None = None) -> DataFrame:
        """New answer − old answer, or only some groups of both; with `after`, only windows that
        end later."""
        new = self._plain(answer)
        if not self._state.segments:
            return new
        old = stored.answer_log(self._spark, self._world, self._state).drop(EVALUATION)
        old = only.answers(old) if only else old
        if after is not None:
            later = (
                F.col(END) >= instant(after)
                if isinstance(self._state.plan.window, Session)
                else F.col(END) > instant(after)
            )
            old, new = old.where(later), new.where(later)
        both = new.unionByName(old.withColumn(DIFF, -F.col(DIFF)))
        if both.columns == [DIFF]:
            return both.limit(0)
        return stored.summed(both).where(F.col(DIFF) != 0)

    def _write(self, changes: DataFrame) -> list[Segment]:
        record, world = self._state.record, self._world
        number = record.evaluation + 1
        folder = (
            world.root
            / "queries"
            / str(record.id)
            / f"{number:010d}-{self._tick:019d}-{uuid.uuid4().hex[:8]}"
        )
        changes = with_constants(changes, **{EVALUATION: number})
        if record.is_per_window:
            changes = changes.sortWithinPartitions(END, START)
        changes.write.option("compression", "zstd").parquet(spark_path(folder))
        time_column = END if record.is_per_window else None
        found = []
        for path in parquet_files(folder):
            sync_file(path)
            segment = footer_segment(
                path, world.root, record.owner, "changes", self._tick, time_column, number
            )
            if segment.rows:
                found.append(segment)
        if not found:
            shutil.rmtree(folder)  # nothing changed: leave no litter for the next sweep
        return found
