"""Background work of the loop: retention, compaction, sweeping. Each step is crash-safe by itself."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from weft.catalog.store import Catalog
from weft.plan.recompute import RecomputePlan
from weft.storage.sweep import sweep_dropped


def maintain(
    spark: SparkSession, catalog: Catalog, root: Path, plans: dict[int, RecomputePlan], ticks
) -> None:
    sweep_dropped(catalog, root)
