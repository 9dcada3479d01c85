"""What a batch costs on the recompute path, by number of queries; and what pushes cost.

This is the slow path by design: its cost grows with the number of queries. The figure to beat for
the shared strategies that follow.
"""

from __future__ import annotations

import tempfile
import time
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from rich.console import Console
from rich.table import Table

import weft
from bench.report import parser, write_json

QUERIES = (1, 4, 16)
ROWS = 50_000
KINDS = (
    "SELECT sym, count(*) AS n, avg(price) AS a FROM t [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY sym",
    "SELECT count(*) AS n, max(price) AS m FROM t [RANGE 5 MINUTES SLIDE 1 MINUTE] WHERE qty > 3",
    "SELECT sym, price FROM t [RANGE 10 SECONDS] WHERE price > 99",
    "SELECT sym, sum(qty) AS s FROM t GROUP BY sym",
)


def run(words: list[str]) -> list[dict]:
    arguments = parser(
        "pipeline", "What a batch costs on the recompute path, by number of queries."
    ).parse_args(words)
    figures = [pushes()]
    for count in QUERIES:
        figures.append(batches(count))
    draw(figures)
    write_json(arguments.json, {"pipeline": figures})
    return figures


def rows(batch: int) -> pa.Table:
    start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=120 * batch)
    step = timedelta(seconds=120) / ROWS
    return pa.table(
        {
            "sym": [f"s{i % 50}" for i in range(ROWS)],
            "price": [float(i * 7919 % 100) for i in range(ROWS)],
            "qty": pa.array([i % 10 for i in range(ROWS)], pa.int32()),
            "ts": pa.array([start + step * i for i in range(ROWS)], pa.timestamp("us", tz="UTC")),
        }
    )


def declare(db: weft.Database) -> None:
    db.sql(
        "CREATE STREAM t (sym STRING, price DOUBLE, qty INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
    )


def pushes(count: int = 300) -> dict:
    with tempfile.TemporaryDirectory() as folder, weft.connect(folder) as db:
        declare(db)
        begun = time.perf_counter()
        for i in range(count):
            db.push("t", [{"sym": "a", "price": 1.0, "qty": i, "ts": "2026-01-01T00:00:00Z"}])
        each = (time.perf_counter() - begun) / count
    return {
        "what": "push of one row, durable",
        "seconds": round(each, 5),
        "rows_per_second": round(1 / each),
    }


def batches(count: int) -> dict:
    with tempfile.TemporaryDirectory() as folder, weft.connect(folder) as db:
        declare(db)
        for i in range(count):
            db.sql(f"CREATE CONTINUOUS QUERY q{i} AS {KINDS[i % len(KINDS)]}")
        taken = []
        for batch in range(4):
            db.push("t", rows(batch))
            begun = time.perf_counter()
            db.run()
            taken.append(time.perf_counter() - begun)
    best = sorted(taken[1:])[1]  # the first batch warms up
    return {
        "what": f"batch of {ROWS:,} rows, {count} queries",
        "seconds": round(best, 3),
        "rows_per_second": round(ROWS / best),
    }


def draw(figures: list[dict]) -> None:
    table = Table(title="Pipeline (medians after a warm-up batch)")
    for name in ("what", "seconds", "rows/s"):
        table.add_column(name, justify="left" if name == "what" else "right")
    for f in figures:
        table.add_row(f["what"], f"{f['seconds']:.4f}", f"{f['rows_per_second']:,}")
    Console().print(table)
