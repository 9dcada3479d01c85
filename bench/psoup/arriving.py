"""Fig 9: rows a second that are sustained, by the number of standing queries, indexed and not."""

from __future__ import annotations

import random
import statistics
import time

from pyspark.sql import functions as F

from bench.psoup.data import Query, interval, rows
from bench.psoup.options import Sizes
from bench.psoup.stage import PSoupStage
from bench.stage import Tell

WINDOW = 1_000  # tuples, as in the paper
CHUNK = 512  # predicates that are compiled into one pass, where each is evaluated by itself
BATCHES = 3


def measure(stage: PSoupStage, sizes: Sizes, tell: Tell) -> list[dict]:
    """Interval predicates over one attribute."""
    found = []
    for count in sizes.arrivals:
        tell(f"rows arriving at {count:,} queries")
        queries = drawn(count)
        point = {"queries": count, "partial, indexed": partial(stage, queries, sizes)}
        point["partial, not indexed"] = one_by_one(stage, queries, sizes)
        if count <= sizes.most_complete:
            point["complete, indexed"] = complete(stage, queries, sizes)
            point["complete, not indexed"] = nested_loop(stage, queries, sizes)
        found.append(point)
    return found


def drawn(count: int) -> list[Query]:
    rng = random.Random(11)
    return [interval(rng, 1, WINDOW) for _ in range(count)]


def script(queries: list[Query], policy: str) -> str:
    return ";\n".join(q.create(f"q{i}", policy) for i, q in enumerate(queries))


def partial(stage: PSoupStage, queries: list[Query], sizes: Sizes) -> float:
    """Batches as the engine takes them in."""
    return engine_rate(stage, queries, "partial", sizes.batch)


def complete(stage: PSoupStage, queries: list[Query], sizes: Sizes) -> float:
    return engine_rate(stage, queries, "complete", sizes.complete)


def engine_rate(stage: PSoupStage, queries: list[Query], policy: str, batch: int) -> float:
    with stage.warehouse() as db:
        db.push("r", rows(0, batch))
        db.run()
        db.sql(script(queries, policy))
        times = []
        for i in range(BATCHES + 1):
            db.push("r", rows((i + 1) * batch, batch))
            begun = time.perf_counter()
            db.run()
            times.append(time.perf_counter() - begun)
    return batch / statistics.median(times[1:])  # the first warms up


def one_by_one(stage: PSoupStage, queries: list[Query], sizes: Sizes) -> float:
    """Each predicate evaluated for each row, the bits written in words; several passes, if many."""
    source = stage.stored(rows(0, sizes.unindexed))
    taken = 0.0
    for first in range(0, len(queries), CHUNK):
        part = queries[first : first + CHUNK]
        passes = [stage.written(source.selectExpr("ts", *words(part))) for _ in range(2)]
        taken += passes[-1]  # the first compiles
    return sizes.unindexed / taken


def words(queries: list[Query]) -> list[str]:
    found = []
    for first in range(0, len(queries), 63):
        bits = [
            f"shiftleft(CAST({q.where} AS BIGINT), {i})"
            for i, q in enumerate(queries[first : first + 63])
        ]
        found.append(f"{' | '.join(bits)} AS w{first}")
    return found


def nested_loop(stage: PSoupStage, queries: list[Query], sizes: Sizes) -> float:
    """The rows of every window, found by comparing each row with each query; then as the engine."""
    source = stage.stored(rows(0, WINDOW))
    bounds = [(i, low, high) for i, q in enumerate(queries) for _, low, high in q.bounds]
    relation = stage.spark.createDataFrame(bounds, "q INT, low BIGINT, high BIGINT")
    pairs = source.join(F.broadcast(relation), F.expr("a >= low AND a <= high"))
    pairs = pairs.drop("low", "high").repartition(1).sortWithinPartitions("q", "ts")
    taken = [stage.written(pairs) for _ in range(BATCHES)]
    stored = stage.written(stage.stored(rows(0, sizes.complete)))
    return sizes.complete / (min(taken) + stored)
