"""Where the experiments play: one warm Spark session, and warehouses that come and go on it."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import weft
from bench.psoup.data import STREAM


class Stage:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._anchor = weft.connect(folder / "anchor")
        self.spark = self._anchor.spark
        self._numbers = itertools.count()

    def close(self) -> None:
        self._anchor.close()

    def fresh(self) -> Path:
        return self._folder / str(next(self._numbers))

    @contextmanager
    def warehouse(self) -> Iterator[weft.Database]:
        folder = self.fresh()
        with weft.connect(folder, spark=self.spark) as db:
            db.sql(STREAM)
            yield db
        shutil.rmtree(folder, ignore_errors=True)

    def stored(self, table: pa.Table):
        """Rows as Spark reads them from Parquet, with the helper column that matching asks for."""
        path = self.fresh().with_suffix(".parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, row_group_size=len(table) // 4 + 1)
        return self.spark.read.parquet(str(path)).selectExpr("*", "ts AS _weft_time")

    def written(self, frame) -> float:
        """Seconds to compute a frame and write it as Parquet."""
        folder = self.fresh()
        begun = time.perf_counter()
        frame.write.option("compression", "zstd").parquet(folder.as_uri())
        taken = time.perf_counter() - begun
        shutil.rmtree(folder, ignore_errors=True)
        return taken
