"""What the PSoup experiments play with: warehouses with the paper's stream, and rows for Spark itself."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

import weft
from bench.psoup.data import STREAM
from bench.stage import Stage


class PSoupStage(Stage):
    @contextmanager
    def warehouse(self) -> Iterator[weft.Database]:
        folder = self.fresh("warehouse")
        with weft.connect(folder, spark=self.spark) as db:
            db.sql(STREAM)
            yield db
        shutil.rmtree(folder, ignore_errors=True)

    def stored(self, table: pa.Table):
        """Rows as Spark reads them from Parquet, with the helper column that matching asks for."""
        path = self.fresh("rows").with_suffix(".parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, row_group_size=len(table) // 4 + 1)
        return self.spark.read.parquet(str(path)).selectExpr("*", "ts AS _weft_time")

    def written(self, frame) -> float:
        """Seconds to compute a frame and write it as Parquet."""
        folder = self.fresh("written")
        begun = time.perf_counter()
        frame.write.option("compression", "zstd").parquet(folder.as_uri())
        taken = time.perf_counter() - begun
        shutil.rmtree(folder, ignore_errors=True)
        return taken
