"""Stored rows as DataFrames: streams, versions of tables, answers. Nothing here runs a job."""

from __future__ import annotations

from functools import lru_cache, reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from weft.catalog.records import QueryRecord, Segment, StreamRecord
from weft.logical.relations import ARRIVAL, WINDOW_TIME, Column
from weft.spark.world import QueryState, StreamState, TableState, World
from weft.storage import taken
from weft.storage.files import intact_paths, spark_path

TIME, TICK, ORDER = "_weft_time", "_weft_tick", "_weft_ord"
HELPERS = (Column(TIME, "TIMESTAMP"), Column(TICK, "BIGINT"), Column(ORDER, "BIGINT"))
START, END, DIFF, EVALUATION = "_weft_start", "_weft_end", "_weft_diff", "_weft_eval"
NUMBER = (
    "_weft_number"  # tells last-n-rows windows apart that start and end at the same times; else 0
)
FROM, TO, ROW = "_weft_from", "_weft_to", "_weft_row"
FOREVER = 2**62


@lru_cache(maxsize=4096)
def ddl_of(columns: tuple[Column, ...]) -> str:
    return ", ".join(f"{quote(column.name)} {column.type}" for column in columns)


@lru_cache(maxsize=4096)
def struct_of(columns: tuple[Column, ...]) -> StructType:
    return StructType.fromDDL(ddl_of(columns))


def quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def instant(micros: int) -> F.Column:
    return F.timestamp_micros(F.lit(micros).cast("bigint"))


def read_segments(
    spark: SparkSession, world: World, segments: list[Segment], columns: tuple[Column, ...]
) -> DataFrame:
    if not segments:
        return nothing(spark, columns)
    return spark.read.schema(struct_of(columns)).parquet(*world.paths(segments))


def nothing(spark: SparkSession, columns: tuple[Column, ...]) -> DataFrame:
    """No rows of some columns, in a form that Spark's optimizer sees through."""
    nulls = ", ".join(f"CAST(NULL AS {c.type}) AS {quote(c.name)}" for c in columns)
    return spark.sql(f"SELECT {nulls} WHERE 1 = 0")


def overlapping(segments: list[Segment], low: int | None, high: int | None) -> list[Segment]:
    """Segments that may hold a row with low ≤ time ≤ high."""
    return [
        s
        for s in segments
        if s.min_time is not None
        and (low is None or s.max_time >= low)
        and (high is None or s.min_time <= high)
    ]


def stream_rows(
    spark: SparkSession, world: World, state: StreamState, low: int | None, high: int | None
) -> DataFrame:
    """Retained rows of a stream with low ≤ time ≤ high, with their helper columns."""
    rows = read_rows(spark, world, state, overlapping(state.segments, low, high))
    return _between(rows, low, high)


def read_rows(
    spark: SparkSession, world: World, state: StreamState, segments: list[Segment]
) -> DataFrame:
    """The rows of some segments of a stream, with their helper columns."""
    rows = read_stream(spark, world.root, state.record, segments)
    if state.record.definition.time_column is None:
        rows = rows.withColumn(ARRIVAL, F.col(TIME))
    return rows


def read_stream(
    spark: SparkSession,
    root: Path,
    record: StreamRecord,
    segments: list[Segment],
    helpers: tuple[Column, ...] = HELPERS,
) -> DataFrame:
    """The declared columns of a stream and helpers; where a file lacks any but HELPERS, NULL."""
    columns = record.definition.columns + helpers
    written = [s for s in segments if not taken.is_taken(s)]
    as_they_lie = [s for s in segments if taken.is_taken(s)]
    parts = []
    if written:
        reader = spark.read.schema(struct_of(columns))
        parts.append(reader.parquet(*intact_paths(root, written)))
    if as_they_lie:
        parts.append(_read_taken(spark, root, record, as_they_lie))
    if not parts:
        return nothing(spark, columns)
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)


def _read_taken(
    spark: SparkSession, root: Path, record: StreamRecord, segments: list[Segment]
) -> DataFrame:
    """Files that lie as their source wrote them; what they lack is in their paths (storage/taken.py)."""
    definition = record.definition
    in_path = (Column(TICK, "BIGINT"), Column(taken.FILE, "BIGINT"))
    reader = spark.read.schema(struct_of(definition.columns + in_path))
    reader = reader.option("basePath", spark_path(root / "streams" / str(record.id)))
    order = F.col(taken.FILE) * taken.FILE_SPAN + F.col("_metadata.row_index")
    return reader.parquet(*intact_paths(root, segments)).select(
        *[quote(c.name) for c in definition.columns],
        F.col(quote(definition.time_column)).alias(TIME),
        TICK,
        order.alias(ORDER),
    )


def _between(rows: DataFrame, low: int | None, high: int | None) -> DataFrame:
    if low is not None:
        rows = rows.where(F.col(TIME) >= instant(low))
    if high is not None:
        rows = rows.where(F.col(TIME) <= instant(high))
    return rows


def table_versions(spark: SparkSession, world: World, state: TableState) -> DataFrame:
    """Every version of a table's rows with the ticks [from, to) between which it was current."""
    columns = state.record.definition.columns
    helpers = (Column(ROW, "BIGINT"), Column(FROM, "BIGINT"))
    rows = read_segments(
        spark, world, [s for s in state.segments if s.part == "rows"], columns + helpers
    )
    gone = [s for s in state.segments if s.part == "gone"]
    if not gone:
        return rows.withColumn(TO, F.lit(FOREVER)).drop(ROW)
    ends = read_segments(spark, world, gone, (Column(ROW, "BIGINT"), Column(TO, "BIGINT")))
    joined = rows.join(F.broadcast(ends), ROW, "left")
    return joined.withColumn(TO, F.coalesce(F.col(TO), F.lit(FOREVER))).drop(ROW)


def table_now(spark: SparkSession, world: World, state: TableState) -> DataFrame:
    versions = table_versions(spark, world, state)
    return versions.where(F.col(TO) == FOREVER).drop(FROM, TO)


WINDOW_COLUMNS = (Column(START, "TIMESTAMP"), Column(END, "TIMESTAMP"), Column(NUMBER, "BIGINT"))


def answer_columns(state: QueryState) -> tuple[Column, ...]:
    """The stored columns of an answer: the user's, then sort keys and window helpers."""
    record = state.record
    named = {c.name for c in record.columns}
    keys = tuple(Column(k, t) for k, t in _sort_columns(state) if k not in named)
    return record.columns + keys + (WINDOW_COLUMNS if record.is_per_window else ())


def _sort_columns(state: QueryState) -> list[tuple[str, str]]:
    return [(key[0], key[3]) for key in state.record.order if len(key) > 3]


def answer_log(spark: SparkSession, world: World, state: QueryState) -> DataFrame:
    """The current answer as signed rows: the newest base and the changes after it."""
    bases = [s for s in state.segments if s.part == "base"]
    newest = max((s.evaluation for s in bases), default=0)
    later = [s for s in state.segments if s.part == "changes" and s.evaluation > newest]
    columns = (*answer_columns(state), Column(DIFF, "BIGINT"), Column(EVALUATION, "BIGINT"))
    changes = read_segments(spark, world, later, columns).where(F.col(EVALUATION) > newest)
    settled = [s for s in bases if s.evaluation == newest]
    return changes.unionAll(read_segments(spark, world, settled, columns)) if settled else changes


def window_answers(
    spark: SparkSession, world: World, state: QueryState, low: int | None, high: int | None
) -> DataFrame:
    """Closed windows of another query as a stream whose event time is window_end less 1 µs."""
    columns = (*answer_columns(state), Column(DIFF, "BIGINT"))
    segments = [s for s in state.segments if s.part == "changes"]
    found = overlapping(segments, None if low is None else low, None)
    rows = read_segments(spark, world, found, columns)
    if not state.record.is_append_only:
        rows = settle(rows)
    rows = (
        rows.where(F.col(END) <= instant(state.clock)) if state.clock is not None else rows.limit(0)
    )
    return as_stream(rows, state.record, low, high)


def as_stream(
    windows: DataFrame, record: QueryRecord, low: int | None, high: int | None
) -> DataFrame:
    """Closed windows as rows of a stream."""
    time = F.timestamp_micros(F.unix_micros(END) - 1)
    rows = windows.withColumn(TIME, time).withColumn(WINDOW_TIME, time)
    if record.shows_window:
        rows = rows.withColumn("window_start", F.col(START)).withColumn("window_end", F.col(END))
    rows = rows.withColumn(TICK, F.lit(0).cast("bigint")).withColumn(ORDER, F.lit(0).cast("bigint"))
    return _between(rows.drop(START, END, NUMBER, DIFF), low, high)


def summed(log: DataFrame) -> DataFrame:
    """Signed rows, equal ones as one with the sum of their diffs.

    Spark 4.3 groups by a map after sorting it, and the sort makes 0 of NULL in values of fixed
    width. So rows with maps are grouped by the maps' entries, and keep one of the maps.
    """
    columns = {f.name: (F.col(quote(f.name)), f.dataType) for f in log.schema if f.name != DIFF}
    total = F.sum(DIFF).alias(DIFF)
    if not any(_has_map(type_) for _, type_ in columns.values()):
        return log.groupBy(*[value for value, _ in columns.values()]).agg(total)
    keys = {f"_weft_g{i}": _grouped(*column) for i, column in enumerate(columns.values())}
    one = [F.first(value).alias(name) for name, (value, _) in columns.items()]
    found = log.groupBy(*[key.alias(name) for name, key in keys.items()]).agg(*one, total)
    return found.drop(*keys)


def _has_map(type_: DataType) -> bool:
    return "map<" in type_.simpleString()


def _grouped(value: F.Column, type_: DataType) -> F.Column:
    """A value that is equal where `value` is, without maps in it."""
    if not _has_map(type_):
        return value
    if isinstance(type_, MapType):
        entries = StructType().add("key", type_.keyType).add("value", type_.valueType)
        return F.array_sort(_grouped(F.map_entries(value), ArrayType(entries)))
    if isinstance(type_, ArrayType):
        return F.transform(value, lambda each: _grouped(each, type_.elementType))
    parts = [_grouped(value[f.name], f.dataType).alias(f.name) for f in type_.fields]
    return F.when(value.isNotNull(), F.struct(*parts))


def settle(log: DataFrame) -> DataFrame:
    """Signed rows → the bag they add up to: each row as often as its diffs say."""
    counted = summed(log.drop(EVALUATION))
    repeated = counted.where(F.col(DIFF) > 0).withColumn(
        DIFF, F.explode(F.sequence(F.lit(1).cast("bigint"), F.col(DIFF)))
    )
    return repeated.withColumn(DIFF, F.lit(1).cast("bigint"))
