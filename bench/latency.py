"""How quickly Weft answers: import, command line, reads. Medians; the bounds are the issue's.

Machines differ and are noisy, so each figure stands beside a yardstick of the same run: starting a
bare Python interpreter.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

import weft
from bench.report import parser, write_json

ROWS = 10_000


def run(words: list[str]) -> list[dict]:
    arguments = parser(
        "latency", "How quickly Weft answers: import, command line, reads."
    ).parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder)
        figures = measure(folder)
    draw(figures)
    write_json(arguments.json, {"latency": figures})
    return figures


def prepare(folder: str) -> None:
    """A warehouse with one answer of 10,000 rows."""
    with weft.connect(folder) as db:
        db.sql("CREATE STREAM s (k INT, v DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        start = datetime(2026, 1, 1, tzinfo=UTC)
        rows = [{"k": i, "v": i / 7, "ts": start + timedelta(milliseconds=i)} for i in range(ROWS)]
        db.push("s", [*rows, {"k": -1, "v": 0.0, "ts": start + timedelta(hours=2)}])
        db.sql(
            "CREATE CONTINUOUS QUERY big AS SELECT k, sum(v) AS v FROM s [RANGE 1 HOUR SLIDE 1 HOUR] GROUP BY k"
        )
        db.sql(
            "CREATE CONTINUOUS QUERY live AS SELECT k, v FROM s [SINCE '2026-01-01'] WHERE k >= 0"
        )
        db.run()
        assert len(db.query("big").results()) == ROWS


def measure(folder: str) -> list[dict]:
    bare = command([sys.executable, "-c", "pass"])
    cli = [str(Path(sys.executable).with_name("weft")), "sql", "-w", folder, "-c"]
    found = [
        figure("python -c pass (yardstick)", bare, bare, None),
        figure("import weft", command([sys.executable, "-c", "import weft"]), bare, 500),
        figure(
            "import weft; weft.connect",
            command([sys.executable, "-c", f"import weft; weft.connect({folder!r})"]),
            bare,
            None,
        ),
        figure('weft sql -c "SHOW QUERIES"', command([*cli, "SHOW QUERIES"]), bare, 1000),
        figure("weft sql -c pull SELECT", command([*cli, "SELECT count(*) FROM big"]), bare, 1000),
    ]
    with weft.connect(folder) as db:
        for name in ("big", "live"):
            query = db.query(name)
            query.results()
            kind = "newest window" if name == "big" else "standing answer"
            label = f"results(), {ROWS:,} rows, {kind}, warm"
            found.append(figure(label, median(query.results), bare, 50))
        found.append(
            figure(
                "pull SELECT, join of two answers, warm",
                median(lambda: db.sql("SELECT count(*) FROM big b JOIN live l ON b.k = l.k")),
                bare,
                None,
            )
        )
    return found


def command(words: list[str], times: int = 7) -> float:
    environment = {**os.environ, "COLUMNS": "100"}
    return median(
        lambda: subprocess.run(words, check=True, capture_output=True, env=environment), times
    )


def median(work, times: int = 15) -> float:
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(taken)


def figure(what: str, ms: float, bare: float, bound: int | None) -> dict:
    return {
        "what": what,
        "median_ms": round(ms, 1),
        "of_bare_python": round(ms / bare, 1),
        "bound_ms": bound,
    }


def draw(figures: list[dict]) -> None:
    table = Table(title="Latency (medians)")
    for name in ("what", "median ms", "× bare python", "bound ms"):
        table.add_column(name, justify="left" if name == "what" else "right")
    for f in figures:
        bound = "" if f["bound_ms"] is None else f"{f['bound_ms']}"
        table.add_row(f["what"], f"{f['median_ms']:,.1f}", f"{f['of_bare_python']}", bound)
    Console().print(table)
