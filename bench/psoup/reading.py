"""Fig 7 and Table 2: how long a read takes, by window size and by number of interval predicates."""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from collections.abc import Callable

import pyarrow as pa

import weft
from bench.psoup.data import Query, equality, interval, rows
from bench.psoup.options import Sizes
from bench.psoup.stage import Stage

POLICIES = ("none", "partial", "complete")
WARM = 20_000  # rows before the queries come, by which densities are measured
TABLE_2 = 2**15


def measure(stage: Stage, sizes: Sizes, tell: Callable[[str], None]) -> dict:
    """Response times in milliseconds: medians over the reads of a point's queries."""
    points = list(drawn(sizes))
    most = max(max(sizes.windows), TABLE_2)
    with stage.warehouse() as db:
        db.push("r", rows(0, WARM))
        db.run()
        tell(f"registering {len(points) * len(POLICIES)} queries")
        script = [q.create(name(i, p), p) for i, (_, q) in enumerate(points) for p in POLICIES]
        db.sql(";\n".join(script))
        db._engine.maintain()  # densities are measured, and lists begun
        tell("filling the windows")
        db.push("r", rows(WARM, most))
        db.run()
        db.push("r", rows(WARM + most, 1_000))
        db.run()
        every = pa.concat_tables([rows(WARM, most), rows(WARM + most, 1_000)])
        found, drawn_so_far = [], Counter()
        for i, (point, query) in enumerate(points):
            is_sampled = drawn_so_far[point] < sizes.on_spark
            found.append(read(db, i, point, query, every, sizes, is_sampled, tell))
            drawn_so_far[point] += 1
        kept = dict(zip(*_kept(db), strict=True))
    return {"points": summary(found), "kept": kept}


def drawn(sizes: Sizes):
    """What is measured: (experiment, kind, x) and a query of it."""
    rng = random.Random(7)
    for window in sizes.windows:
        for i in range(sizes.per_point):
            factors = 1 + i % 4
            yield ("window", "equality", window), equality(rng, factors, window)
            yield ("window", "interval", window), interval(rng, factors, window)
    for count in sizes.predicates:
        for _ in range(sizes.per_point):
            yield ("predicates", "interval", count), interval(rng, count, TABLE_2)


def name(i: int, policy: str) -> str:
    return f"q{i}_{policy}"


def read(
    db: weft.Database, i: int, point: tuple, query: Query, every: pa.Table, sizes: Sizes,
    is_sampled: bool, tell: Callable[[str], None],
) -> dict:  # fmt: skip
    times = {policy: reads(db, name(i, policy), sizes.repeat) for policy in POLICIES}
    wanted = query.count(every)
    for policy in POLICIES:
        found = db.query(name(i, policy)).results().num_rows
        assert found == wanted, (query, policy, found, wanted)
    if is_sampled:
        tell(f"reading {point[1]} queries, {point[0]} {point[2]:,}")
        times["none, on Spark"] = [on_spark(db, name(i, "none"), wanted)]
    return {"point": point, "times": times, "rows": wanted}


def reads(db: weft.Database, query: str, repeat: int) -> list[float]:
    found = db.query(query)
    found.results()
    times = []
    for _ in range(repeat):
        begun = time.perf_counter()
        found.results()
        times.append((time.perf_counter() - begun) * 1000)
    return times


def on_spark(db: weft.Database, query: str, wanted: int) -> float:
    """The same query from scratch on Spark, as it would be without anything kept."""
    from weft.spark.frames import answer_at

    engine = db._engine
    with engine.catalog.read() as view:
        record = view.find(query)
    begun = time.perf_counter()
    found = answer_at(engine, record, record.clock)
    taken = (time.perf_counter() - begun) * 1000
    assert found.num_rows == wanted
    return taken


def summary(found: list[dict]) -> list[dict]:
    points = {}
    for each in found:
        points.setdefault(each["point"], []).append(each)
    made = []
    for (experiment, kind, x), group in points.items():
        ways = dict.fromkeys(way for each in group for way in each["times"])
        medians = {
            way: statistics.median(t for each in group for t in each["times"].get(way, ()))
            for way in ways
        }
        rows_out = statistics.mean(each["rows"] for each in group)
        made.append({
            "experiment": experiment, "kind": kind, "x": x, "ms": medians, "rows": rows_out,
        })  # fmt: skip
    return made


def _kept(db: weft.Database) -> tuple[list, list]:
    text = "SELECT strategy, count(*) AS n FROM weft.queries GROUP BY strategy ORDER BY strategy"
    table = db.sql(text)
    return table["strategy"].to_pylist(), table["n"].to_pylist()
