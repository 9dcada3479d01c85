"""Partials as segments: written by a batch or a back-fill, read back as DataFrames."""

from __future__ import annotations

import uuid
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from weft.catalog.records import Segment
from weft.logical.statistics import Dimension
from weft.optimizer.nodes import Atom, LiveNode
from weft.optimizer.predicates import Ranking
from weft.spark.fold import LEVEL, NODE, PANE, VERSION
from weft.spark.rows import quote
from weft.storage.files import footer_segment, intact_paths, parquet_files, spark_path, sync_file

ROW_GROUP = 4 * 1024 * 1024  # small enough that a reader skips most of a merged segment


def write_partials(
    partials: DataFrame, root: Path, stream_id: int, tick: int, evaluation: int
) -> list[Segment]:
    """Write partials, one folder a node; no catalog is touched."""
    folder = root / "nodes" / str(stream_id) / f"{tick:019d}-{uuid.uuid4().hex[:8]}"
    tasks = int(partials.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    ordered = partials.coalesce(tasks).sortWithinPartitions(NODE, LEVEL, PANE)
    writer = ordered.write.partitionBy(NODE).option("compression", "zstd")
    writer.option("parquet.block.size", ROW_GROUP).parquet(spark_path(folder))
    found = []
    for path in parquet_files(folder):
        sync_file(path)
        node = next(p.split("=")[1] for p in path.parts if p.startswith(f"{NODE}="))
        segment = footer_segment(path, root, f"node:{node}", "partials", tick, PANE, evaluation)
        if segment.rows:
            found.append(segment)
    return found


def partials_ddl(live: LiveNode) -> str:
    return f"{LEVEL} INT, {PANE} BIGINT, {VERSION} BIGINT, {columns_ddl(live)}"


def columns_ddl(live: LiveNode) -> str:
    columns = {atom.column: stored_type(atom) for atom in live.node.columns}
    columns |= {s.column: s.type for s in live.node.statistics}
    return ", ".join(f"{quote(name)} {kind}" for name, kind in columns.items())


def stored_type(atom: Atom) -> str:
    if isinstance(atom, Dimension):
        return atom.type
    return "INT" if isinstance(atom, Ranking) else "BOOLEAN"


def read_partials(
    spark: SparkSession, root: Path, live: LiveNode, segments: list[Segment]
) -> DataFrame:
    reader = spark.read.schema(partials_ddl(live))
    return reader.parquet(*intact_paths(root, segments))
