"""Weft's side: register, warm up with the first file, time the others, read."""

from __future__ import annotations

import itertools
import json
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import weft
from bench.windows.check import Oracle, digest_of
from bench.windows.queries import SEED, WindowQuery, script
from bench.windows.spec import Spec
from bench.windows.trades import WATERMARK_SECONDS, feed

Tell = Callable[[str, int], None]
CHECKED = 24  # of the queries that are read, how many are compared with the oracle


def run(spec: Spec, folder: Path, tell: Tell) -> dict:
    source = folder / "source"
    feed([], source)
    with weft.connect(folder / "warehouse") as db:
        _ = db.spark  # started before anything is timed
        declare(db, source)
        queries = spec.generate()
        registration = register(db, queries, spec.answers or "auto")
        tell("warming up", 0)
        feed(spec.trades.warming, source)
        warming = timed_run(db, lambda _rows: None)
        feed(spec.trades.timed, source)
        tell("running", 0)
        batches = timed_run(db, lambda rows: tell("running", rows))
        tell("reading", 0)
        return {
            "seconds": sum(batches),
            "batch_seconds": batches,
            "warm_up_seconds": sum(warming),
            "registration_seconds": registration,
            "distinct": len(set(queries)),
            **read(db, queries, spec),
            "strategies": strategies(db, len(queries)),
        }


def declare(db: weft.Database, source: Path) -> None:
    db.sql(
        "CREATE STREAM trades (sym STRING, venue STRING, price DOUBLE, qty INT, ts TIMESTAMP,"
        f" WATERMARK FOR ts AS ts - INTERVAL {WATERMARK_SECONDS} SECONDS)"
        f" WITH (source = 'files', path = '{source}', format = 'parquet', maxFilesPerTrigger = 1)"
    )


def register(db: weft.Database, queries: list[WindowQuery], answers: str) -> float:
    """All of them in one script. → seconds"""
    begun = time.perf_counter()
    db.sql(script(queries, answers))
    return time.perf_counter() - begun


def timed_run(db: weft.Database, tell: Callable[[int], None]) -> list[float]:
    """Process what is there. → seconds by the clock on the wall from batch to batch.

    They add up to the whole run: what happens between batches (listing files, Spark's own log,
    maintenance) is part of the batch that follows, what comes after the last is part of the last.
    """
    marks = [time.perf_counter()]

    def on_batch(report) -> None:
        marks.append(time.perf_counter())
        tell(report.rows)

    db.run(progress=on_batch)
    ended = time.perf_counter()
    marks = [*marks[:-1], ended] if len(marks) > 1 else [*marks, ended]
    return [after - before for before, after in itertools.pairwise(marks)]


def read(db: weft.Database, queries: list[WindowQuery], spec: Spec) -> dict:
    """Read the newest window of queries drawn at random, and compare some with the oracle."""
    drawn = draw(len(queries), spec.reads)
    db.query(f"q{drawn[-1]}").results()  # loads the reading engine
    taken, found = [], {}
    for i in drawn:
        query = db.query(f"q{i}")
        begun = time.perf_counter()
        found[i] = query.results()
        taken.append(((time.perf_counter() - begun) * 1000, found[i].num_rows))
    checked = check(spec, {i: (queries[i], found[i]) for i in found if not queries[i].finish})
    return {**read_figures(taken), "checked": checked}


def strategies(db: weft.Database, count: int) -> dict[str, int]:
    """How some of the queries were really computed: a figure must not bear another one's name."""
    drawn = random.Random(SEED).sample(range(count), min(count, CHECKED))
    plans = [json.loads(db.query(f"q{i}").explain(format="json")) for i in drawn]
    return dict(Counter(plan["strategy"] for plan in plans))


def draw(count: int, reads: int) -> list[int]:
    """Each query at most once where there are enough of them."""
    dice = random.Random(SEED)
    if count >= reads:
        return dice.sample(range(count), reads)
    return dice.choices(range(count), k=reads)


def read_figures(taken: list[tuple[float, int]]) -> dict:
    times = sorted(ms for ms, _ in taken)
    large = [ms for ms, rows in taken if rows >= 500]
    return {
        "reads": len(times),
        "read_ms_median": statistics.median(times),
        "read_ms_p95": times[min(len(times) - 1, int(len(times) * 0.95))],
        "read_ms_median_500_groups": statistics.median(large) if large else None,
    }


def check(spec: Spec, found: dict) -> int:
    oracle = Oracle([*spec.trades.warming, *spec.trades.timed])
    chosen = list(found.items())[:CHECKED]
    for i, (query, table) in chosen:
        oracle.check(f"Weft's q{i}", query, digest_of(table))
    return len(chosen)
