"""Incremental against naive (Table 4, Fig 9), and shared against unshared (Fig 10).

*Incremental, shared* is one warehouse in which all queries stand: the time of one increment.
*Incremental, alone* is a warehouse for one query; a sample of them is measured and scaled up.
*Naive* is the same SQL, run by Spark over all rows again, its answer written as Parquet: one after
the other for the time of each, and four at a time, as Weft evaluates, for the time of all.
Each has a fixed cost that Spark asks for however few the rows are; it is measured and reported
beside them: a batch with no query at all, and the same SQL over a single row.
"""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from bench.argus.options import Sizes
from bench.argus.queries import generate
from bench.argus.stage import ArgusStage, Standing, Stream, beside_idle, groups_and_rows, over
from bench.stage import Tell

CHECKED = 10
AT_ONCE = 4  # Weft's own setting `parallel`


class Alone(NamedTuple):
    """Seconds of an increment with one query, and with none at the same time."""

    seconds: float
    floor: float


def measure(stage: ArgusStage, stream: Stream, sizes: Sizes, tell: Tell) -> dict:
    queries = generate(stream.dataset, sizes.queries)
    extents = sizes_of(stream, queries)
    sample = spaced([i for i, _ in ranked(extents)], sizes.sample)
    naive, at_once, naive_floor = naively(stage, stream, queries, sizes, tell)
    alone = {i: by_itself(stage, stream, queries[i], sizes, tell) for i in sample}
    shared = [
        together(stage, stream, queries[:n], sizes, tell) for n in steps(len(queries), sizes.steps)
    ]
    return {
        "dataset": stream.dataset.name,
        "history": stream.history,
        "increment": sizes.increment,
        "queries": len(queries),
        "incremental_seconds": shared[-1]["seconds"],
        "naive_seconds": round(min(sum(naive), at_once), 3),
        "naive_one_by_one_seconds": round(sum(naive), 3),
        "naive_at_once_seconds": round(at_once, 3),
        "batch_floor_seconds": shared[-1]["floor_seconds"],
        "naive_floor_seconds": round(naive_floor, 4),
        "is_recomputed": shared[-1]["is_recomputed"],
        "per_query": per_query(queries, extents, naive, alone, shared[-1]["seconds"]),
        "sharing": [with_unshared(point, alone) for point in shared],
    }


def sizes_of(stream: Stream, queries: list[str]) -> list[tuple[int, int]]:
    duck = over(stream.dataset.name, stream.past())
    return [groups_and_rows(duck, sql) for sql in queries]


def ranked(extents: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """(query, AggreSize = |S_H(A)| · |A_H|), in the paper's order."""
    return sorted(((i, g * n) for i, (g, n) in enumerate(extents)), key=lambda pair: pair[1])


def spaced(values: list[int], count: int) -> list[int]:
    """`count` of the values, evenly spaced, so that small and large ones are among them."""
    if count >= len(values):
        return values
    return [values[int((i + 0.5) * len(values) / count)] for i in range(count)]


def steps(most: int, count: int) -> list[int]:
    return sorted({max(1, most * (i + 1) // count) for i in range(count)})


def naively(
    stage: ArgusStage, stream: Stream, queries: list[str], sizes: Sizes, tell: Tell
) -> tuple[list[float], float, float]:
    """Each query over history and increment, all of them at once, and a query over one row."""
    every = stage.parquet(stream.until(stream.history + sizes.increment))
    warm = queries[: min(5, len(queries))]
    view(stage, stream, every)
    for sql in warm:
        again(stage, sql)
    taken = []
    for sql in queries:
        tell(f"{stream.dataset.name}: naive")
        taken.append(again(stage, sql))
    tell(f"{stream.dataset.name}: naive, {AT_ONCE} at a time")
    begun = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda sql: again(stage, sql), queries))
    at_once = time.perf_counter() - begun
    view(stage, stream, stage.parquet(stream.until(1)))
    return taken, at_once, statistics.median(again(stage, sql) for sql in warm)


def view(stage: ArgusStage, stream: Stream, path: str) -> None:
    stage.spark.read.parquet(path).createOrReplaceTempView(stream.dataset.name)


def again(stage: ArgusStage, sql: str) -> float:
    target = str(stage.fresh("answer"))
    begun = time.perf_counter()
    stage.spark.sql(sql).write.parquet(target)
    return time.perf_counter() - begun


def by_itself(stage: ArgusStage, stream: Stream, sql: str, sizes: Sizes, tell: Tell) -> Alone:
    tell(f"{stream.dataset.name}: one query by itself")
    seconds, floor, _ = beside_idle(stage, stream, [sql], sizes.increment, sizes.repeat)
    return Alone(seconds, floor)


def together(
    stage: ArgusStage, stream: Stream, queries: list[str], sizes: Sizes, tell: Tell
) -> dict:
    tell(f"{stream.dataset.name}: {len(queries)} queries together")
    seconds, floor, found = beside_idle(
        stage, stream, queries, sizes.increment, sizes.repeat, look_at
    )
    return {
        "queries": len(queries),
        "seconds": round(seconds, 3),
        "floor_seconds": round(floor, 3),
        **found,
    }


def look_at(standing: Standing) -> dict:
    return {
        "registration_seconds": round(standing.registration_seconds, 3),
        "history_seconds": round(standing.history_seconds, 3),
        "is_recomputed": standing.is_recomputed(),
        "checked": standing.check(spaced(list(range(len(standing.queries))), CHECKED)),
    }


def per_query(
    queries: list[str], extents: list, naive: list[float], alone: dict, shared: float
) -> list[dict]:
    """Fig 9, sorted by AggreSize. A query's part of the shared time is an equal one."""
    return [
        {
            "sql": queries[i],
            "groups": extents[i][0],
            "rows": extents[i][1],
            "aggregation_size": size,
            "naive_seconds": round(naive[i], 4),
            "shared_seconds": round(shared / len(queries), 4),
            "alone_seconds": round(alone[i].seconds, 4) if i in alone else None,
        }
        for i, size in ranked(extents)
    ]


def with_unshared(point: dict, alone: dict[int, Alone]) -> dict:
    """Fig 10: n times the mean of the sample; and with the batch's fixed cost paid once."""
    n = point["queries"]
    mean = statistics.mean(one.seconds for one in alone.values())
    net = statistics.mean(one.seconds - one.floor for one in alone.values())
    return {
        **point,
        "unshared_seconds": round(n * mean, 3),
        "unshared_seconds_one_floor": round(point["floor_seconds"] + n * net, 3),
        "sampled": len(alone),
    }
