"""A batch of source rows → segments: rows, late rows and rejected rows, written in one pass.

Retained history is Parquet by part and day, sorted by event time, so that a range read opens few
files and retention deletes whole ones. What each file holds is read back from its footer.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.catalog.records import Segment, StreamRecord
from weft.spark.constants import with_constants
from weft.spark.rows import TIME, quote
from weft.storage.coerce import RAW, REASON
from weft.storage.files import footer_segment, largest, parquet_files, spark_path, sync_file
from weft.storage.inbox import ARRIVED, ORDER, TICK

PART, DAY = "_weft_part", "_weft_day"
NOW, THIS, CLOCK = "_weft_now", "_weft_this_tick", "_weft_clock"
ROW_GROUP = 2 * 1024 * 1024  # a window's reader skips the groups before it


@dataclass(frozen=True, slots=True)
class Ingested:
    """What a batch brought, by part, and the largest tick of its rows."""

    segments: tuple[Segment, ...]
    max_tick: int

    def of(self, part: str) -> list[Segment]:
        return [s for s in self.segments if s.part == part]

    def count(self, part: str) -> int:
        return sum(s.rows for s in self.of(part))

    def max_time(self) -> int | None:
        return max((s.max_time for s in self.of("rows")), default=None)

    def min_time(self) -> int | None:
        return min((s.min_time for s in self.of("rows")), default=None)


def ingest(
    classified: DataFrame, record: StreamRecord, tick: int, root: Path, batch_id: int
) -> Ingested:
    """Write a batch; no catalog is touched."""
    folder = root / "streams" / str(record.id) / f"{tick:019d}-{batch_id}-{uuid.uuid4().hex[:8]}"
    ordered = classified.sortWithinPartitions(PART, DAY, TIME)
    writer = ordered.write.partitionBy(PART, DAY).option("compression", "zstd")
    writer.option("parquet.block.size", ROW_GROUP).parquet(spark_path(folder))
    found, ticks = [], [-1]
    for path in parquet_files(folder):
        sync_file(path)
        part = next(p.split("=")[1] for p in path.parts if p.startswith(f"{PART}="))
        found.append(footer_segment(path, root, record.owner, part, tick, TIME))
        ticks.append(largest(path, TICK))
    return Ingested(tuple(s for s in found if s.rows), max(ticks))


def classify(frame: DataFrame, record: StreamRecord, tick: int, arrived: int) -> DataFrame:
    """Give each row its time, its place in the order of arrival, and the part it belongs to."""
    definition = record.definition
    frame = with_constants(frame, **{NOW: arrived, THIS: tick, CLOCK: record.clock})
    now, clock = F.timestamp_micros(NOW), F.timestamp_micros(CLOCK)
    frame = frame.withColumn(ARRIVED, F.coalesce(F.col(ARRIVED), now))
    frame = frame.withColumn(TICK, F.coalesce(F.col(TICK), F.col(THIS)))
    frame = frame.withColumn(ORDER, F.coalesce(F.col(ORDER), F.monotonically_increasing_id()))
    time = F.col(quote(definition.time_column)) if definition.time_column else F.col(ARRIVED)
    if definition.time_column is None:
        time = F.greatest(time, clock)  # arrival never runs backwards, a wall clock may
    frame = frame.withColumn(TIME, time).withColumn(REASON, _reason(record))
    is_rejected = F.col(REASON).isNotNull()
    part = F.when(is_rejected, "rejected").when(F.col(TIME) < clock, "late").otherwise("rows")
    names = definition.relation().column_names()
    raw = F.when(F.col(REASON).isNotNull(), F.to_json(F.struct(*[quote(n) for n in names])))
    frame = frame.withColumn(RAW, F.coalesce(F.col(RAW), raw)).withColumn(PART, part)
    frame = frame.withColumn(DAY, F.coalesce(F.col(TIME), F.col(ARRIVED)).cast("date"))
    return frame.drop(NOW, THIS, CLOCK)


def rows_only(classified: DataFrame) -> DataFrame:
    """The rows that count: neither late nor rejected."""
    return classified.where(F.col(PART) == "rows")


def _reason(record: StreamRecord) -> F.Column:
    definition = record.definition
    reason = F.coalesce(
        F.col(REASON), F.when(F.col(RAW).isNotNull(), "does not parse as the stream's columns")
    )
    if definition.time_column is None:
        return reason
    missing = F.col(quote(definition.time_column)).isNull()
    return F.coalesce(reason, F.when(missing, f'event time "{definition.time_column}" is NULL'))
