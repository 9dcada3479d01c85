"""Windows that somebody waits for, merged as they fall due: one job for all eager classes.

What is kept is the merged statistics, not the answer: queries that differ only in their finish share
it, and it is finished when it is read, as a lazy one is (PSoup projects just in time).

Classes of a *family* (the same groups, predicate and route) differ only in which windows they want,
and of an hour that slides by ten minutes and one that slides by fifteen, every third is the same
window. It is merged and kept once for all of them (Weave Share merges it for each query, §3.2).
Sound because what a window holds depends on its edges and its family alone.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.catalog.records import RESULTS, Segment, stream_owner
from weft.logical.panes import Windows
from weft.logical.statistics import Dimension, Statistic
from weft.optimizer.network import Network
from weft.optimizer.nodes import LiveClass
from weft.spark.assemble import WINDOW, Wanted, assemble, labelled
from weft.spark.closed import due_windows, parts_of
from weft.spark.hot import HotPartials
from weft.spark.partials import ROW_GROUP
from weft.spark.rows import END, START, quote
from weft.spark.shared import Advance
from weft.spark.world import World
from weft.storage.files import footer_segment, parquet_files, spark_path, sync_file

FAMILY = "_weft_family"
Columns = dict[str, Dimension | Statistic]


def assemble_due(
    spark: SparkSession, world: World, network: Network, advance: Advance, hot: HotPartials
) -> list[Segment]:
    """Write the windows of eager classes that this batch closes."""
    eager = network.eager()
    hot.keep_only({r.node_id for found in eager for r in found.routes})
    wanted = by_family(_wanted(world, network, advance))
    if not wanted:
        return []
    merged = assemble(spark, parts_of(spark, world, network.nodes, wanted, hot))
    if merged is None:
        return []
    tasks = int(spark.conf.get("spark.sql.shuffle.partitions"))
    # windows are numbered by family and end, and sorted while they are narrow
    rows = merged.coalesce(tasks).sortWithinPartitions(WINDOW)
    rows = labelled(spark, rows, wanted, FAMILY, [w.found.family for w in wanted])
    name = f"{advance.tick:019d}-{uuid.uuid4().hex[:8]}"
    folder = world.root / "nodes" / str(network.stream_id) / name
    rows = with_columns(rows, columns_of(eager))
    return write_results(
        rows, folder, world.root, network.stream_id, advance.tick, advance.evaluation
    )


def _wanted(world: World, network: Network, advance: Advance) -> Iterable[Wanted]:
    """The windows of each eager class that end after what was kept before, by the clock."""
    known: dict = {}
    for found in network.eager():
        after = found.eager_from
        if advance.before is not None:
            after = max(after, advance.before)
        windows = due_windows(world, found, network.nodes, after, advance.clock, known)
        if len(windows):
            yield Wanted(found, windows)


def by_family(wanted: Iterable[Wanted]) -> list[Wanted]:
    """Each window of a family once, by end, with the statistics that any of its classes needs."""
    families: dict[int, list[Wanted]] = defaultdict(list)
    for each in wanted:
        families[each.found.family].append(each)
    return [_united(group) for _, group in sorted(families.items())]


def _united(group: list[Wanted]) -> Wanted:
    statistics = frozenset().union(*(w.found.statistics for w in group))
    starts = np.concatenate([w.windows.starts for w in group])
    ends = np.concatenate([w.windows.ends for w in group])
    edges = np.unique(np.stack([ends, starts], axis=1), axis=0)
    return Wanted(replace(group[0].found, statistics=statistics), Windows(edges[:, 1], edges[:, 0]))


def columns_of(classes: Iterable[LiveClass]) -> Columns:
    """What the windows of some classes consist of, by column."""
    found: Columns = {}
    for each in classes:
        found |= {d.column: d for d in each.value.dimensions}
        found |= {s.column: s for s in each.statistics}
    return dict(sorted(found.items()))


def with_columns(rows: DataFrame, columns: Columns) -> DataFrame:
    """The same columns in each batch, also those of classes that no window fell due of."""
    made = [
        F.col(name) if name in rows.columns else F.lit(None).cast(column.type).alias(name)
        for name, column in columns.items()
    ]
    return rows.select(FAMILY, START, END, *made)


def results_ddl(columns: Columns) -> str:
    shown = "".join(f", {quote(name)} {column.type}" for name, column in columns.items())
    return f"{FAMILY} BIGINT, {START} TIMESTAMP, {END} TIMESTAMP{shown}"


def write_results(
    rows: DataFrame, folder: Path, root: Path, stream_id: int, tick: int, evaluation: int
) -> list[Segment]:
    """Write windows that are kept ready, in the order they come; no catalog is touched."""
    writer = rows.write.option("compression", "zstd").option("parquet.block.size", ROW_GROUP)
    for name in rows.columns:
        if name.startswith("s_"):
            writer = writer.option(f"parquet.enable.dictionary#{name}", "false")  # hardly two alike
    writer.parquet(spark_path(folder))
    found = []
    for path in parquet_files(folder):
        sync_file(path)
        owner = stream_owner(stream_id)
        segment = footer_segment(path, root, owner, RESULTS, tick, END, evaluation)
        if segment.rows:
            found.append(segment)
    return found
