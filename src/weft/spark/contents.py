"""Contents of windows: which rows each source of a query shows, at an instant or per window.

Compilers only: DataFrames in, a DataFrame out, no job is run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window as Over

from weft.logical.relations import Kind
from weft.logical.windows import (
    Cumulating,
    Hopping,
    LastRows,
    Session,
    Window,
    bounds,
    microseconds,
)
from weft.plan.recompute import PlannedSource
from weft.spark import rows as stored
from weft.spark.closed import closed_windows
from weft.spark.groups import Only
from weft.spark.rows import FROM, ORDER, TICK, TIME, TO, instant, quote
from weft.spark.world import World

MANY = 64  # windows that hold a row: more of them are made by a sequence, not by an expression each


@dataclass(frozen=True, slots=True)
class Due:
    """Windows that fall due: those that end after `after` and not after `upto` (None: no bound).

    `after_tick` settles ties of last-n-rows windows that end at `after` itself; `frontier` is the
    first instant of a session that was open before.
    """

    after: int | None
    upto: int | None
    after_tick: int = 0
    frontier: int | None = None


class OneWindow(NamedTuple):
    """A window by its edges, and by its number where the edges do not tell it apart."""

    start: int
    end: int
    number: int


class Contents:
    """Opens the sources of one query in one state of the world."""

    def __init__(self, spark: SparkSession, world: World, horizons: dict[str, int]) -> None:
        self._spark = spark
        self._world = world
        self._horizons = horizons

    def at(self, planned: PlannedSource, now: int | None, only: Only | None = None) -> DataFrame:
        """What a standing source shows at an instant: the row set of its window at τ = now."""
        relation = planned.source.relation
        if relation.kind is Kind.TABLE:
            return self._table(planned)
        rows = self._within(planned, now)
        return self._show(only.rows(rows) if only else rows, planned)

    def due(self, planned: PlannedSource, due: Due, only: Only | None = None) -> DataFrame:
        """What a per-window source shows: its rows, each with every window due that holds it."""
        if planned.window is None:
            return self.at(planned, due.upto)
        rows = self._rows_for(planned, due)
        rows = only.rows(rows) if only else rows
        rows = assign(rows, planned.source.window, due, self._offset(planned))
        horizon = max(self._horizons.values(), default=None)  # whole in every stream, or not at all
        if horizon is not None and not isinstance(planned.source.window, Session):
            rows = rows.where(F.col(stored.START) >= instant(horizon))
        if not isinstance(planned.source.window, Session):
            helpers = (stored.START, stored.END, stored.NUMBER)
            for old, new in zip(helpers, planned.window, strict=False):
                rows = rows.withColumnRenamed(old, new)
        return self._show(rows, planned, planned.window)

    def one(self, rows: DataFrame, planned: PlannedSource, window: OneWindow) -> DataFrame:
        """The rows of exactly one window out of `due`'s."""
        first, last, *number = planned.window
        rows = rows.where(F.col(first) == instant(window.start))
        rows = rows.where(F.col(last) == instant(window.end))
        return rows.where(F.col(number[0]) == window.number) if number else rows

    def _table(self, planned: PlannedSource) -> DataFrame:
        state = self._world.tables[planned.source.relation.name.lower()]
        if planned.validity is None:
            return stored.table_now(self._spark, self._world, state)
        rows = stored.table_versions(self._spark, self._world, state)
        start, end = planned.validity
        return rows.withColumnRenamed(FROM, start).withColumnRenamed(TO, end)

    def _within(self, planned: PlannedSource, now: int | None) -> DataFrame:
        window = planned.source.window
        if now is None:
            return self._open(planned, 0, 0).limit(0)
        low, high = bounds(window, now)
        if planned.source.relation.kind is Kind.QUERY:
            high = min(high, now - 1)  # a window's time is 1 µs before its end; it must have closed
        horizon = self._horizons.get(planned.source.relation.name.lower())
        if horizon is not None:
            low = horizon if low is None else max(low, horizon)
        rows = self._open(planned, low, high)
        if isinstance(window, LastRows):
            newest = [F.desc(TIME), F.desc(TICK), F.desc(ORDER)]
            rows = rows.orderBy(*newest).limit(window.count)
        return rows

    def _rows_for(self, planned: PlannedSource, due: Due) -> DataFrame:
        window = planned.source.window
        low, high = None, None
        if isinstance(window, Session):
            low = due.frontier
        elif isinstance(window, LastRows):
            high = due.upto
        else:
            length = window.length if isinstance(window, Hopping) else window.size
            low = None if due.after is None else due.after - microseconds(length)
            high = None if due.upto is None else due.upto - 1
        horizon = self._horizons.get(planned.source.relation.name.lower())
        if horizon is not None and not isinstance(window, LastRows):
            low = horizon if low is None else max(low, horizon)
        return self._open(planned, low, high)

    def _open(self, planned: PlannedSource, low: int | None, high: int | None) -> DataFrame:
        name = planned.source.relation.name.lower()
        if name in self._world.shared:
            return closed_windows(self._spark, self._world, self._world.shared[name], low, high)
        if planned.source.relation.kind is Kind.QUERY:
            state = self._world.queries[name]
            return stored.window_answers(self._spark, self._world, state, low, high)
        return stored.stream_rows(self._spark, self._world, self._world.streams[name], low, high)

    def _offset(self, planned: PlannedSource) -> int:
        name = planned.source.relation.name.lower()
        if planned.source.relation.kind is not Kind.STREAM:
            return 0
        return self._world.streams[name].record.pruned_rows

    def _show(
        self, rows: DataFrame, planned: PlannedSource, window: tuple[str, ...] | None = None
    ) -> DataFrame:
        relation = planned.source.relation
        columns = [F.col(quote(name)) for name in relation.column_names()]
        if planned.shows_time:
            columns.append(F.col(relation.time_column))
        if planned.tick:
            columns.append(F.col(TICK).alias(planned.tick))
        if window and not isinstance(planned.source.window, Session):
            columns += [F.col(name) for name in window]
        return rows.select(*columns)


def assign(rows: DataFrame, window: Window, due: Due, offset: int) -> DataFrame:
    """Add to each row the start and end of every due window that holds it."""
    if isinstance(window, Hopping):
        if window.length > MANY * window.slide:
            return ending(_hop(rows, window, due), due)
        parts = (window.length, window.slide, window.offset)
        length, slide, shift = (f"{microseconds(part)} microseconds" for part in parts)
        rows = rows.withColumn("_weft_w", F.window(TIME, length, slide, shift))
        rows = rows.withColumn(stored.START, F.col("_weft_w.start")).withColumn(
            stored.END, F.col("_weft_w.end")
        )
        return ending(rows.drop("_weft_w"), due)
    if isinstance(window, Cumulating):
        return ending(_cumulate(rows, window), due)
    if isinstance(window, LastRows):
        return _last_rows(rows, window, due, offset)
    return rows  # sessions are made by GROUP BY


def ending(rows: DataFrame, due: Due) -> DataFrame:
    if due.after is not None:
        rows = rows.where(F.col(stored.END) > instant(due.after))
    if due.upto is not None:
        rows = rows.where(F.col(stored.END) <= instant(due.upto))
    return rows


def _hop(rows: DataFrame, window: Hopping, due: Due) -> DataFrame:
    """As F.window does, which writes an expression for each window that may hold a row.

    Only the windows that fall due are made: of a row's starts, those from `low` to `high`.
    """
    length, slide, shift = map(microseconds, (window.length, window.slide, window.offset))
    micros = F.unix_micros(TIME)
    inside = F.pmod(micros - F.lit(shift), F.lit(slide))  # since the newest start
    earlier = F.floor((F.lit(length - 1) - inside) / F.lit(slide)).cast("bigint")
    high, low = micros - inside, micros - inside - earlier * slide
    if due.after is not None:  # starts are after it by more than −length
        first = due.after - length + 1
        low = F.greatest(low, F.lit(first + (shift - first) % slide).cast("bigint"))
    if due.upto is not None:
        last = due.upto - length
        high = F.least(high, F.lit(last - (last - shift) % slide).cast("bigint"))
    rows = rows.withColumn("_weft_low", low).withColumn("_weft_high", high)
    rows = rows.where("_weft_low <= _weft_high")
    starts = F.sequence("_weft_low", "_weft_high", F.lit(slide).cast("bigint"))
    rows = rows.withColumn("_weft_s", F.explode(starts))
    rows = rows.withColumn(stored.START, F.timestamp_micros("_weft_s"))
    rows = rows.withColumn(stored.END, F.timestamp_micros(F.col("_weft_s") + length))
    return rows.drop("_weft_low", "_weft_high", "_weft_s")


def _cumulate(rows: DataFrame, window: Cumulating) -> DataFrame:
    size, step = microseconds(window.size), microseconds(window.step)
    micros = F.unix_micros(TIME)
    inside = F.pmod(micros, F.lit(size))
    first = F.floor(inside / F.lit(step)).cast("bigint") + 1
    # integer arithmetic: a division in doubles is exact here, both operands are below 2^53
    ends = F.explode(F.sequence(first, F.lit(size // step).cast("bigint")))
    rows = rows.withColumn("_weft_j", ends).withColumn("_weft_s", micros - inside)
    rows = rows.withColumn(stored.START, F.timestamp_micros(F.col("_weft_s")))
    rows = rows.withColumn(
        stored.END, F.timestamp_micros(F.col("_weft_s") + F.col("_weft_j") * step)
    )
    return rows.drop("_weft_j", "_weft_s")


def _last_rows(rows: DataFrame, window: LastRows, due: Due, offset: int) -> DataFrame:
    """Window k ends with row k·slide, numbered in event-time order, ties by arrival."""
    order = Over.orderBy(TIME, TICK, ORDER)
    rows = rows.withColumn("_weft_n", F.row_number().over(order).cast("bigint") + offset)
    slide = window.slide
    first = F.floor((F.col("_weft_n") + slide - 1) / slide).cast("bigint")
    last = F.floor((F.col("_weft_n") + window.count - 1) / slide).cast("bigint")
    rows = rows.withColumn(stored.NUMBER, F.explode(F.sequence(first, last)))
    each = Over.partitionBy(stored.NUMBER)
    rows = rows.withColumn("_weft_last", F.max("_weft_n").over(each))
    rows = rows.withColumn(stored.START, F.min(TIME).over(each))
    rows = rows.withColumn(stored.END, F.max(TIME).over(each))
    is_end = F.col("_weft_n") == F.col(stored.NUMBER) * slide
    rows = rows.withColumn("_weft_end_tick", F.max(F.when(is_end, F.col(TICK))).over(each))
    rows = rows.where(F.col("_weft_last") == F.col(stored.NUMBER) * slide)  # complete ones only
    if due.after is not None:
        after = instant(due.after)
        tie = (F.col(stored.END) == after) & (F.col("_weft_end_tick") > due.after_tick)
        rows = rows.where((F.col(stored.END) > after) | tie)
    return rows.drop("_weft_n", "_weft_last", "_weft_end_tick")
