"""Fig 7 and Table 2: how long a read takes, by window size and by number of interval predicates."""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter, defaultdict

import pyarrow as pa

import weft
from bench.psoup.data import equality, interval, rows
from bench.psoup.options import Sizes
from bench.psoup.stage import PSoupStage
from bench.stage import Tell

POLICIES = ("none", "partial", "complete")
ELSEWHERE = "complete, elsewhere"  # read by a process that does not run the pipeline
AGAIN = "none, again"  # read once more before the next batch
WARM = 20_000  # rows before the queries come, by which densities are measured
BATCH = 1_000  # rows between two reads of a query
TABLE_2 = 2**15


def measure(stage: PSoupStage, sizes: Sizes, tell: Tell) -> dict:
    """Response times in milliseconds: medians over the reads of a point's queries, each the first
    after a batch unless it says otherwise."""
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
        tables = [rows(WARM, most)]
        db.push("r", tables[0])
        db.run()
        times = [defaultdict(list) for _ in points]
        for number in range(sizes.repeat + 1):
            tell(f"reading {len(script)} queries after a batch")
            tables.append(rows(WARM + most + number * BATCH, BATCH))
            db.push("r", tables[-1])
            db.run()
            read_all(db, times)
            if number == 0:  # it warms up
                times = [defaultdict(list) for _ in points]
        found = checked(db, points, times, pa.concat_tables(tables))
        tell("the same from scratch on Spark")
        from_scratch(db, found, sizes.on_spark)
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


def read_all(db: weft.Database, times: list[dict[str, list[float]]]) -> None:
    """One read of each query under each policy."""
    with weft.connect(db._engine.root) as other:  # with a memory of its own
        for i, mine in enumerate(times):
            for policy in POLICIES:
                mine[policy].append(timed(db.query(name(i, policy))))
            mine[AGAIN].append(timed(db.query(name(i, "none"))))
            mine[ELSEWHERE].append(timed(other.query(name(i, "complete"))))


def timed(query: weft.Query) -> float:
    begun = time.perf_counter()
    query.results()
    return (time.perf_counter() - begun) * 1000


def checked(db: weft.Database, points: list, times: list, every: pa.Table) -> list[dict]:
    """The points with their times, once their answers are as large as they must be."""
    found = []
    for i, (point, query) in enumerate(points):
        wanted = query.count(every)
        for policy in POLICIES:
            count = db.query(name(i, policy)).results().num_rows
            assert count == wanted, (query, policy, count, wanted)
        found.append({"point": point, "times": times[i], "rows": wanted})
    return found


def from_scratch(db: weft.Database, found: list[dict], most: int) -> None:
    """Some queries of each point, as they would be answered without anything kept."""
    taken = Counter()
    for i, each in enumerate(found):
        taken[each["point"]] += 1
        if taken[each["point"]] <= most:
            each["times"]["none, on Spark"] = [on_spark(db, name(i, "none"), each["rows"])]


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
