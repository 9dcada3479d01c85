"""The native sides: N Structured Streaming queries in one session, and one plain batch pass.

Both use the session that Weft would use, with its settings (two shuffle partitions, no adaptive
execution): Spark's own defaults, 200 partitions, would make the native side many times slower.
"""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

import weft
from bench.windows.check import Oracle, digest_of
from bench.windows.queries import WindowQuery
from bench.windows.spec import Spec
from bench.windows.trades import WATERMARK_SECONDS, feed
from bench.windows.weft_engine import CHECKED, Tell

SCHEMA = "sym STRING, venue STRING, price DOUBLE, qty INT, ts TIMESTAMP"
PANE = 5  # seconds: every slide and length is a multiple of it
LOOK_EVERY = 0.25  # seconds between looks at the progress


def run(spec: Spec, folder: Path, tell: Tell) -> dict:
    """N streaming queries: warmed up on the first file, started again from their checkpoints on
    the others, as Weft's run is. Timed from the first start until the last has ended."""
    queries = spec.generate()
    with weft.connect(folder / "session") as db:
        feed(spec.trades.warming, folder / "source")
        tell("warming up", 0)
        begun = time.perf_counter()
        wait(start_all(db.spark, queries, folder), folder, 0, lambda _: None)
        warming = time.perf_counter() - begun
        feed(spec.trades.timed, folder / "source")
        tell("running", 0)
        begun = time.perf_counter()
        running = start_all(db.spark, queries, folder)
        starting = time.perf_counter() - begun
        each = spec.rows / (len(queries) * len(spec.trades.timed))
        wait(running, folder, batches_done(folder), lambda n: tell("running", round(n * each)))
        seconds = time.perf_counter() - begun
    return {
        "seconds": seconds,
        "start_seconds": starting,
        "warm_up_seconds": warming,
        "checked": check(spec, queries, folder),
    }


def start_all(spark: SparkSession, queries: list[WindowQuery], folder: Path) -> list:
    return [start(spark, query, i, folder) for i, query in enumerate(queries)]


def start(spark: SparkSession, query: WindowQuery, i: int, folder: Path) -> StreamingQuery:
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    frame = reader.parquet(str(folder / "source"))
    writer = windowed(frame, query).writeStream.format("parquet").outputMode("append")
    writer = writer.option("path", str(folder / "sinks" / str(i)))
    writer = writer.option("checkpointLocation", str(folder / "checkpoints" / str(i)))
    return writer.trigger(availableNow=True).start()


def windowed(frame: DataFrame, query: WindowQuery) -> DataFrame:
    """The query as a user of Structured Streaming would write it."""
    frame = frame.withWatermark("ts", f"{WATERMARK_SECONDS} seconds")
    if query.at_least is not None:
        frame = frame.where(F.col("qty") >= query.at_least)
    window = F.window("ts", f"{query.length} seconds", f"{query.slide} seconds")
    keys = [query.key] if query.key else []
    grouped = frame.groupBy(window, *keys).agg(*aggregates())
    bounds = (F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end"))
    return grouped.select(*bounds, *keys, "n", "total", "lowest", "highest")


def aggregates() -> list:
    return [
        F.count("*").alias("n"),
        F.sum("price").alias("total"),
        F.min("price").alias("lowest"),
        F.max("price").alias("highest"),
    ]


def wait(running: list[StreamingQuery], folder: Path, before: int, tell) -> None:
    """Until all have ended. Progress is read off the checkpoints: asking the JVM costs its time."""
    told = before
    for query in running:
        while not query.awaitTermination(LOOK_EVERY):
            done = batches_done(folder)
            tell(done - told)
            told = done


def batches_done(folder: Path) -> int:
    return sum(1 for path in folder.glob("checkpoints/*/commits/*") if path.name.isdigit())


def check(spec: Spec, queries: list[WindowQuery], folder: Path) -> int:
    oracle = Oracle([*spec.trades.warming, *spec.trades.timed])
    for i, query in enumerate(queries[:CHECKED]):
        files = [str(path) for path in (folder / "sinks" / str(i)).glob("*.parquet")]
        table = ds.dataset(files, format="parquet").to_table()
        if table.num_rows:
            table = table.filter(pc.equal(table["window_end"], pc.max(table["window_end"])))
        oracle.check(f"Spark's query {i}", query, digest_of(table))
    return min(CHECKED, len(queries))


def limit(spec: Spec, folder: Path, tell: Tell) -> dict:
    """One batch pass over the timed rows by pane, symbol and venue, written as Parquet."""
    with weft.connect(folder / "session") as db:
        tell("warming up", 0)
        fold(db.spark, spec.trades.warming, folder / "warm")
        tell("running", 0)
        begun = time.perf_counter()
        fold(db.spark, spec.trades.timed, folder / "panes")
        seconds = time.perf_counter() - begun
        tell("running", spec.rows)
    return {"seconds": seconds}


def fold(spark: SparkSession, files: list[Path], target: Path) -> None:
    pane = F.floor(F.unix_seconds("ts") / PANE).alias("pane")
    frame = spark.read.schema(SCHEMA).parquet(*[str(path) for path in files])
    frame.groupBy(pane, "sym", "venue").agg(*aggregates()).write.parquet(str(target))
