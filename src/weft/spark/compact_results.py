"""Keeping the windows that eager classes have ready in few files.

Those of families that are no more, or that nobody needs any more, go when files are merged. Files on
two sides of a change of plan may be merged: a class asks only for windows that closed since its last.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weft.catalog.records import RESULTS, Segment, stream_owner
from weft.catalog.store import Catalog
from weft.optimizer.network import Network, load_network
from weft.settings import Settings
from weft.spark.eager import FAMILY, columns_of, results_ddl, write_results
from weft.spark.forget import Bounds, least
from weft.spark.rows import END, START
from weft.storage.crash import crash_point
from weft.storage.files import intact_paths


class ResultsCompactor:
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

    def run(self, stream_id: int) -> None:
        """Merge the windows of a stream, or let them go, if it is worth it."""
        with self._catalog.read() as view:
            network = load_network(view, stream_id)
            ready = view.segments(stream_owner(stream_id), RESULTS)
        if ready and not network.eager():
            with self._catalog.write() as change:
                change.drop_segments(ready)
        elif len(ready) >= self._settings.compact_after:
            self._merge(network, ready)

    def _merge(self, network: Network, group: list[Segment]) -> None:
        reader = self._spark.read.schema(results_ddl(columns_of(network.eager())))
        rows = reader.parquet(*intact_paths(self._root, group))
        cuts = self._spark.createDataFrame(self._cuts(network), f"{FAMILY} BIGINT, cut BIGINT")
        rows = rows.join(F.broadcast(cuts), FAMILY)
        rows = rows.where(F.col("cut").isNull() | (F.unix_micros(END) > F.col("cut"))).drop("cut")
        last = group[-1]
        name = f"{last.tick:019d}-results-{uuid.uuid4().hex[:8]}"
        folder = self._root / "nodes" / str(network.stream_id) / name
        rows = rows.coalesce(1).sortWithinPartitions(FAMILY, END, START)
        made = write_results(
            rows, folder, self._root, network.stream_id, last.tick, last.evaluation
        )
        crash_point("compact-results.written")
        with self._catalog.write() as change:
            change.add_segments(made)
            change.drop_segments(group)
        crash_point("compact-results.committed")

    def _cuts(self, network: Network) -> list[tuple[int, int | None]]:
        """Up to when nobody needs the windows of each family; None: all are needed."""
        found: dict[int, list[int | None]] = defaultdict(list)
        for each in network.eager():
            found[each.family].append(self._bounds.classes.get(each.id))
        return [(family, least(cuts)) for family, cuts in found.items()]
