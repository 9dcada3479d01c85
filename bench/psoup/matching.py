"""The costs that the issue bounds: matching a row, and registering a thousand queries on old data.

*Matched* here is the strictest reading: the rank of each row among all constants, through the index,
and the number of queries that it satisfies, both written with the row. The engine writes less: the
row's own value says as much as its rank.
"""

from __future__ import annotations

import random
import statistics
import time

from bench.psoup.arriving import drawn, script
from bench.psoup.data import Query, interval, rows
from bench.psoup.options import Sizes
from bench.psoup.stage import PSoupStage
from bench.stage import Tell

REPEAT = 3
GROWTH = (128, 4_096)


def matching(stage: PSoupStage, sizes: Sizes, tell: Tell) -> dict:
    table = rows(0, sizes.matched)
    source = stage.stored(table)
    tell(f"matching {sizes.matched:,} rows")
    ten = [f"({q.where}) AS p{i}" for i, q in enumerate(drawn(10))]
    plain = fastest(stage, source.selectExpr("*", *ten))
    counts = sorted({*(n for n in GROWTH if n <= max(sizes.arrivals)), sizes.queries})
    seconds = {}
    for count in counts:
        tell(f"matching {sizes.matched:,} rows against {count:,} queries")
        seconds[count] = fastest(stage, matched(source, drawn(count)))
    check(source, drawn(counts[0]), table)
    return {"rows": sizes.matched, "plain_seconds": plain, "seconds": seconds}


def fastest(stage: PSoupStage, frame) -> float:
    return min(stage.written(frame) for _ in range(REPEAT))


def matched(source, queries: list[Query]):
    """Each row with its rank and how many queries it satisfies."""
    from sqlglot import parse_one

    from weft.optimizer.factors import factor
    from weft.optimizer.predicates import signatures
    from weft.spark.signature import with_signature

    predicates = [factor(parse_one(q.where, dialect="spark"), lambda _: "bigint") for q in queries]
    found = signatures(predicates)
    signed = with_signature(source, found.atoms)
    total = []
    for atom in found.atoms:
        tests = [found.conditions[p.key].ranges for p in predicates]
        satisfied = [0] * (len(atom.cuts) + 1)
        for ranges in tests:
            for column, low, high in ranges:
                for rank in range(low, high + 1) if column == atom.column else ():
                    satisfied[rank] += 1
        listed = ",".join(map(str, satisfied))
        total.append(f"CAST(split('{listed}', ',') AS ARRAY<INT>)[{atom.column}]")
    return signed.selectExpr("*", f"{' + '.join(total)} AS satisfied")


def check(source, queries: list[Query], table) -> None:
    found = matched(source, queries).selectExpr("sum(satisfied)").collect()[0][0]
    wanted = sum(Query(q.bounds, table.num_rows).count(table) for q in queries)
    assert found == wanted, (found, wanted)


def registering(stage: PSoupStage, sizes: Sizes, tell: Tell) -> dict:
    """A thousand queries over a million retained rows: until the first answer can be read."""
    table = rows(0, sizes.matched)
    with stage.warehouse() as db:
        db.push("r", table)
        db.run()
        tell(f"scanning {sizes.matched:,} rows")
        scan = statistics.median(scanned(stage, db) for _ in range(REPEAT))
        rng = random.Random(5)
        queries = [interval(rng, 1, sizes.matched) for _ in range(sizes.queries)]
        tell(f"registering {sizes.queries:,} queries")
        begun = time.perf_counter()
        db.sql(script(queries, "auto"))
        registered = time.perf_counter() - begun
        first = db.query("q0").results().num_rows
        readable = time.perf_counter() - begun
        assert first == queries[0].count(table)
        sample = range(0, sizes.queries, max(1, sizes.queries // 10))
        times = []
        for i in sample:
            begun = time.perf_counter()
            found = db.query(f"q{i}").results().num_rows
            times.append(time.perf_counter() - begun)
            assert found == queries[i].count(table), i
    return {
        "rows": sizes.matched, "queries": sizes.queries, "scan_seconds": scan,
        "registered_seconds": registered, "readable_seconds": readable,
        "read_ms": statistics.median(times) * 1000,
    }  # fmt: skip


def scanned(stage: PSoupStage, db) -> float:
    """One Spark pass over the stored rows, all columns."""
    paths = db.sql("SELECT path FROM weft.segments WHERE part = 'rows'")["path"].to_pylist()
    frame = stage.spark.read.parquet(*[str(db._engine.root / path) for path in paths])
    begun = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun
