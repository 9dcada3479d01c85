"""The few knobs, in one frozen value. Each says who would turn it."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Settings:
    """Read from the environment: WEFT_COMPACT_AFTER=32 sets compact_after, and so on."""

    compact_after: int = (
        16  # small files of one owner before they are merged; for very small batches
    )
    maintain_every: int = (
        8  # batches between rounds of maintenance in run(); for very small batches
    )
    compact_bytes: int = 64 * 2**20  # a file this large is left alone; for large batches
    take_rows: int = (
        10_000  # rows a file that make it worth taking as it lies; for many small files
    )
    grace_seconds: int = 60  # how long dropped files stay for readers; for slow readers
    answers_bytes: int = 128 * 2**20  # of answers kept in memory; for dashboards, or 0 for none
    weave_tolerance: float = (
        0.2  # a plan may cost this share more than a fresh one; for streams that change
    )
    parallel: int = 4  # evaluations at a time; for larger machines
    driver_memory: str = "2g"  # of the embedded Spark; for large batches on one machine
    java_options: str = ""  # for Spark's JVM; -XX:TieredStopAtLevel=1 halves the cost of short runs
    master: str = "local[*]"  # Spark's master; for a cluster
    spark_jars: str = ""  # connectors to load, comma-separated; for Kafka, Delta


def load_settings() -> Settings:
    found = {}
    for field in fields(Settings):
        text = os.environ.get(f"WEFT_{field.name.upper()}")
        if text is not None:
            found[field.name] = type(field.default)(text)
    return Settings(**found)
