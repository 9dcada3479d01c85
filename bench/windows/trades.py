"""Trades, written once as Parquet and handed to every engine as the same files.

1,000 rows per event second, in order; 500 symbols, 8 venues, uniform quantity. A file is a batch.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 3
SYMBOLS = 500
VENUES = 8
ROWS_PER_SECOND = 1000
START = datetime(2026, 1, 1, tzinfo=UTC)
START_MICROS = int(START.timestamp()) * 1_000_000
WATERMARK_SECONDS = 0  # the rows are in order, so the clock needs no slack


@dataclass(frozen=True, slots=True)
class Trades:
    """Files of trades: the first `warm` of them warm up, the others are timed."""

    folder: Path
    batch_rows: int
    rows: int  # timed ones
    warm: int = 1

    @property
    def sizes(self) -> list[int]:
        """Rows of each file, those that warm up first."""
        full, rest = divmod(self.rows, self.batch_rows)
        return [self.batch_rows] * (self.warm + full) + ([rest] if rest else [])

    def path(self, batch: int) -> Path:
        return self.folder / f"trades-{self.batch_rows}-{batch:05d}.parquet"

    @property
    def warming(self) -> list[Path]:
        return [self.path(i) for i in range(self.warm)]

    @property
    def timed(self) -> list[Path]:
        return [self.path(i) for i in range(self.warm, len(self.sizes))]


def rows(batch: int, size: int, batch_rows: int) -> pa.Table:
    """The rows of one file; they depend on its number alone, not on how many there are."""
    dice = np.random.default_rng([SEED, batch])
    symbols = pa.array([f"S{i:03d}" for i in range(SYMBOLS)])
    venues = pa.array([f"V{i}" for i in range(VENUES)])
    first = batch * batch_rows
    micros = START_MICROS + (first + np.arange(size)) * (1_000_000 // ROWS_PER_SECOND)
    return pa.table(
        {
            "sym": symbols.take(pa.array(dice.integers(0, SYMBOLS, size))),
            "venue": venues.take(pa.array(dice.integers(0, VENUES, size))),
            "price": dice.integers(100, 100_000, size) / 100,
            "qty": pa.array(dice.integers(1, 1000, size, dtype=np.int32)),
            "ts": pa.array(micros, pa.timestamp("us", tz="UTC")),
        }
    )


def write(trades: Trades, progress: Callable[[int], None] = lambda _: None) -> None:
    """Write the files that are not there yet. Their times ascend: Spark reads by age."""
    trades.folder.mkdir(parents=True, exist_ok=True)
    oldest = time.time() - len(trades.sizes) - 60
    for batch, size in enumerate(trades.sizes):
        path = trades.path(batch)
        if not path.exists() or pq.read_metadata(path).num_rows != size:
            unfinished = path.with_suffix(".part")
            pq.write_table(rows(batch, size, trades.batch_rows), unfinished, compression="snappy")
            unfinished.rename(path)
        os.utime(path, (oldest + batch, oldest + batch))
        progress(size)


def feed(files: list[Path], folder: Path) -> None:
    """Let files appear in a source's folder: hard links, which keep their times."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        try:
            os.link(path, folder / path.name)
        except OSError:  # another file system, or one without links
            shutil.copy2(path, folder / path.name)
