"""Keeping partials few: segments of a node merged into one, and totals summed up to a base.

A merged segment holds the same partials, those of one pane and group merged: merging is
associative, so every cover gives what it gave before. Segments on two sides of a route's boundary
are never merged, since some class reads only one of them. Partials of totals and of versioned nodes
keep the evaluation that brought them. Crash-safe like all maintenance: new files first, then one
transaction that swaps the catalog's rows.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.catalog.records import Segment
from weft.catalog.store import Catalog
from weft.optimizer.network import Network, load_network
from weft.optimizer.nodes import LiveNode
from weft.settings import Settings
from weft.spark.fold import LEVEL, PANE, VERSION, merged
from weft.spark.forget import Bounds, cut_off
from weft.spark.partials import ROW_GROUP, read_partials
from weft.storage.crash import crash_point
from weft.storage.files import footer_segment, parquet_files, spark_path, sync_file

BASE = "totals"


class NodeCompactor:
    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        root: Path,
        settings: Settings,
        bounds: Bounds,
    ) -> None:
        self._spark, self._catalog, self._root, self._settings = spark, catalog, root, settings
        self._bounds = bounds

    def run(self, stream_id: int, most: int) -> int:
        """Merge what is worth it, at most so many times; returns how many merges were made."""
        with self._catalog.read() as view:
            network = load_network(view, stream_id)
            segments = {
                n.id: view.segments(n.owner, "partials", BASE) for n in network.nodes.values()
            }
        works = [
            work
            for live in network.nodes.values()
            for work in self._due(network, live, segments[live.id])
        ]
        for work in works[:most]:
            work()
        return min(len(works), most)

    def _due(
        self, network: Network, live: LiveNode, segments: list[Segment]
    ) -> list[Callable[[], None]]:
        """What is worth doing for a node; what readers gain most from comes first."""
        parts = [s for s in segments if s.part == "partials"]
        bases = [s for s in segments if s.part == BASE]
        found: list[Callable[[], None]] = []
        if live.node.panes is None and self._is_base_due(parts, bases):
            found.append(lambda: self._base(live, parts, bases))
        elif groups := self._groups(network, live, parts):
            cut = self._bounds.of_node(network, live)
            found += [partial(self._merge, live, group, cut) for group in groups]
        return found

    def _groups(
        self, network: Network, live: LiveNode, parts: list[Segment]
    ) -> list[list[Segment]]:
        """Small segments between two boundaries of routes, where there are many of them."""
        fences = sorted(boundaries(network, live.id))
        groups: dict[int, list[Segment]] = defaultdict(list)
        for segment in parts:
            if segment.bytes < self._settings.compact_bytes:
                groups[sum(segment.tick > fence for fence in fences)].append(segment)
        most = self._settings.compact_after
        return [group for _, group in sorted(groups.items()) if len(group) >= most]

    def _is_base_due(self, parts: list[Segment], bases: list[Segment]) -> bool:
        newest = max((s.evaluation for s in bases), default=0)
        later = {s.evaluation for s in parts if s.evaluation > newest}
        return len(later) >= self._settings.compact_after

    def _merge(self, live: LiveNode, group: list[Segment], cut: int | None) -> None:
        partials = read_partials(self._spark, self._root, live, group)
        first = None if cut is None else live.node.panes.number(cut)
        is_cut = first is not None and any(s.min_time < first for s in group)
        if is_cut:
            widths = F.array(*map(F.lit, live.node.pyramid))
            end = F.col(PANE) + F.element_at(widths, F.col(LEVEL) + 1)
            partials = partials.where(end > first)
        keys = [LEVEL, PANE]
        if live.node.is_versioned:
            keys.append(VERSION)
        rows = merged(partials, live.node, keys)
        if not live.node.is_versioned:
            newest = max(s.evaluation for s in group)
            rows = rows.withColumn(VERSION, F.lit(newest).cast("bigint"))
        made = self._write(rows, live, "partials", group[-1].tick, group[-1].evaluation)
        crash_point("compact-nodes.written")
        with self._catalog.write() as change:
            change.add_segments(made)
            change.drop_segments(group)
            cut_off(change, live, group if is_cut else ())
        crash_point("compact-nodes.committed")

    def _base(self, live: LiveNode, parts: list[Segment], bases: list[Segment]) -> None:
        """Everything that the partials add up to, so that reading need not add it up again."""
        upto, tick = max(s.evaluation for s in parts), max(s.tick for s in parts)
        partials = read_partials(self._spark, self._root, live, parts)
        rows = merged(partials, live.node, [])
        rows = rows.withColumns(
            {
                LEVEL: F.lit(0),
                PANE: F.lit(upto).cast("bigint"),
                VERSION: F.lit(upto).cast("bigint"),
            }
        )
        made = self._write(rows, live, BASE, tick, upto)
        crash_point("compact-nodes.base-written")
        with self._catalog.write() as change:
            change.drop_segments(bases)
            change.add_segments(made)
        crash_point("compact-nodes.base-committed")

    def _write(
        self, rows: DataFrame, live: LiveNode, part: str, tick: int, evaluation: int
    ) -> list[Segment]:
        name = f"{tick:019d}-{part}-{uuid.uuid4().hex[:8]}"
        folder = self._root / "nodes" / str(live.stream_id) / name
        ordered = rows.coalesce(1).sortWithinPartitions(LEVEL, PANE)
        writer = ordered.write.option("compression", "zstd")
        writer.option("parquet.block.size", ROW_GROUP).parquet(spark_path(folder))
        found = []
        for path in parquet_files(folder):
            sync_file(path)
            segment = footer_segment(path, self._root, live.owner, part, tick, PANE, evaluation)
            if segment.rows:
                found.append(segment)
        return found


def boundaries(network: Network, node_id: int) -> set[int]:
    """Ticks after which some class stops or starts to read a node."""
    found = set()
    for each in network.classes.values():
        for route in each.routes:
            if route.node_id == node_id:
                found |= {route.from_tick - 1, route.to_tick if route.to_tick is not None else -1}
    return found
