"""Windows that somebody waits for, merged as they fall due: one job for all eager classes.

What is kept is the merged statistics, not the answer: queries that differ only in their finish share
it, and it is finished when it is read, as a lazy one is (PSoup projects just in time).
"""

from __future__ import annotations

import uuid

from pyspark.sql import SparkSession

from weft.catalog.records import Segment
from weft.optimizer.network import Network
from weft.spark.assemble import HOME, WINDOW, Wanted, assemble, with_edges
from weft.spark.closed import due_windows, parts_of
from weft.spark.hot import HotPartials
from weft.spark.rows import END
from weft.spark.shared import Advance
from weft.spark.world import World
from weft.storage.files import footer_segment, parquet_files, spark_path, sync_file


def assemble_due(
    spark: SparkSession, world: World, network: Network, advance: Advance, hot: HotPartials
) -> list[Segment]:
    """Write the windows of eager classes that this batch closes."""
    hot.keep_only({r.node_id for found in network.eager() for r in found.routes})
    wanted = sorted(_wanted(world, network, advance), key=lambda w: (_home(w), w.found.id))
    if not wanted:
        return []
    merged = assemble(spark, parts_of(spark, world, network.nodes, wanted, hot))
    if merged is None:
        return []
    tasks = int(spark.conf.get("spark.sql.shuffle.partitions"))
    rows = with_edges(spark, merged.coalesce(tasks), wanted, [_home(w) for w in wanted])
    folder = (
        world.root
        / "nodes"
        / str(network.stream_id)
        / f"{advance.tick:019d}-{uuid.uuid4().hex[:8]}"
    )
    # windows are numbered by home, class and end; a long is quicker to sort by than three columns
    ordered = rows.sortWithinPartitions(WINDOW).drop(WINDOW)
    writer = ordered.write.partitionBy(HOME).option("compression", "zstd")
    for name in {s.column for each in wanted for s in each.found.statistics}:
        writer = writer.option(f"parquet.enable.dictionary#{name}", "false")  # hardly two are alike
    writer.parquet(spark_path(folder))
    found = []
    for path in parquet_files(folder):
        sync_file(path)
        home = next(p.split("=")[1] for p in path.parts if p.startswith(f"{HOME}="))
        segment = footer_segment(
            path, world.root, f"node:{home}", "results", advance.tick, END, advance.evaluation
        )
        if segment.rows:
            found.append(segment)
    return found


def _home(wanted: Wanted) -> int:
    """The node that keeps a class's windows."""
    return wanted.found.open_route.node_id


def _wanted(world: World, network: Network, advance: Advance):
    """The windows of each eager class that end after what was kept before, by the clock."""
    known: dict = {}
    for found in network.eager():
        after = found.eager_from
        if advance.before is not None:
            after = max(after, advance.before)
        windows = due_windows(world, found, network.nodes, after, advance.clock, known)
        if len(windows):
            yield Wanted(found, windows)
