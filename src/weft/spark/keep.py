"""What is kept for selections beside the rows, written by a batch, a heartbeat or a registration.

    derived    a column for each expression that only Spark evaluates, by row
    lists      the rows of sparse predicates, by class and time: found by the Query SteM
    ready      the rows in the windows of queries that are read all the time, by query

Each is one job, whatever the number of queries; each returns segments to commit, no catalog is
touched. Source: PSoup §5: none, partial and complete materialisation.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from weft.catalog.records import Segment
from weft.logical.relations import ARRIVAL, Column
from weft.optimizer.selections import Derived, LiveSelection, Selections
from weft.optimizer.stem import Stem, Target, build
from weft.spark import rows as stored
from weft.spark.match import TARGET, match
from weft.spark.rows import HELPERS, ORDER, TICK, TIME
from weft.spark.shared import Advance
from weft.spark.world import StreamState, World
from weft.storage.files import footer_segment, parquet_files, spark_path, sync_file

ROW_GROUP = 2 * 1024 * 1024  # small enough that reading one query skips most of a file
PARTS = ("derived", "lists", "ready")
FILTERED = 500_000  # rows above which a filter by time pays for its compilation


def keep_batch(
    spark: SparkSession, world: World, state: StreamState, found: Selections, advance: Advance
) -> list[Segment]:
    """What a batch or a heartbeat adds."""
    segments: list[Segment] = []
    if advance.fresh:
        fresh = list(advance.fresh)
        if found.derived:
            rows = stored.read_rows(spark, world, state, fresh)
            segments += keep_derived(rows, found.derived, world.root, state, advance)
        if (stem := found.listing()) is not None:
            rows = stored.read_rows(spark, world, state, fresh)
            segments += _keep_matches(rows, stem, "lists", world.root, state, advance)
    ready = found.ready(advance.evaluation)
    if ready and advance.clock is not None:
        segments += _keep_ready(spark, world, state, ready, advance)
    return segments


def fill_derived(
    spark: SparkSession, world: World, state: StreamState, derived: tuple[Derived, ...],
    advance: Advance,
) -> list[Segment]:  # fmt: skip
    """Derived columns of everything that is retained."""
    if not state.segments:
        return []
    rows = stored.read_rows(spark, world, state, state.segments)
    return keep_derived(rows, derived, world.root, state, advance)


def keep_derived(
    rows: DataFrame, derived: Iterable[Derived], root: Path, state: StreamState, advance: Advance
) -> list[Segment]:
    shown = [f"{d.expression} AS {d.column}" for d in derived]
    made = rows.selectExpr(TIME, TICK, ORDER, *shown).sortWithinPartitions(TIME)
    return _write(made, "derived", root, state, advance)


def _keep_ready(
    spark: SparkSession,
    world: World,
    state: StreamState,
    ready: list[LiveSelection],
    advance: Advance,
) -> list[Segment]:
    windows = {s.record.id: s.window_at(advance.clock) for s in ready}
    targets = [Target(s.record.id, s.value.predicate, *windows[s.record.id]) for s in ready]
    lows = [low for low, _ in windows.values()]
    low = None if None in lows else min(lows)
    high = max(high for _, high in windows.values())
    rows = _rows_between(spark, world, state, low, high)
    return _keep_matches(rows, build(targets), "ready", world.root, state, advance)


def _rows_between(
    spark: SparkSession, world: World, state: StreamState, low: int | None, high: int
) -> DataFrame:
    """Rows that may lie between two instants; their times are verified by the entries.

    A filter with this batch's instants in it would be compiled anew for every batch, which is dearer
    than to read a few rows too many.
    """
    found = stored.overlapping(state.segments, low, high)
    if sum(s.rows for s in found) > FILTERED:
        return stored.stream_rows(spark, world, state, low, high)
    return stored.read_rows(spark, world, state, found)


def _keep_matches(
    rows: DataFrame, stem: Stem, part: str, root: Path, state: StreamState, advance: Advance
) -> list[Segment]:
    rows = rows.drop(ARRIVAL) if state.record.definition.time_column is None else rows
    found = match(rows, stem).repartition(1).sortWithinPartitions(TARGET, TIME)
    return _write(found, part, root, state, advance)


def _write(
    made: DataFrame, part: str, root: Path, state: StreamState, advance: Advance
) -> list[Segment]:
    name = f"{advance.tick:019d}-{part}-{uuid.uuid4().hex[:8]}"
    folder = root / "matches" / str(state.record.id) / name
    writer = made.write.option("compression", "zstd").option("parquet.block.size", ROW_GROUP)
    writer.parquet(spark_path(folder))
    found = described(folder, root, state.record.owner, part, advance.tick, advance.evaluation)
    if not found:
        shutil.rmtree(folder)  # leave no litter for the next sweep
    return found


def described(
    folder: Path, root: Path, owner: str, part: str, tick: int, evaluation: int
) -> list[Segment]:
    found = []
    for path in parquet_files(folder):
        sync_file(path)
        segment = footer_segment(path, root, owner, part, tick, TIME, evaluation)
        if segment.rows:
            found.append(segment)
    return found


def schema_of(part: str, columns: tuple[Column, ...], derived: Iterable[Derived]) -> str:
    """The stored columns of a part, as DDL."""
    if part == "derived":
        extra = tuple(Column(d.column, d.type) for d in derived)
        return stored.ddl_of(HELPERS + extra)
    return stored.ddl_of(columns + HELPERS + (Column(TARGET, "BIGINT"),))
