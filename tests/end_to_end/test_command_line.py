"""The command line against the real engine, as a user types it. One Spark start in all."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import weft

WEFT = Path(sys.executable).with_name("weft")
SCRIPT = """
-- a script with comments; and several statements
CREATE STREAM trades (sym STRING, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE TABLE symbols (sym STRING, company STRING);
INSERT INTO symbols VALUES ('a', 'Alpha; Inc'), ('b', 'Beta');
"""


def command(*words: str, warehouse: Path, check: bool = True) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [str(WEFT), *words, "--warehouse", str(warehouse)],
        capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "120"},
    )  # fmt: skip
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "warehouse"
    script = folder.parent / "make.sql"
    script.write_text(SCRIPT)
    command("sql", "-f", str(script), warehouse=folder)
    with weft.connect(folder) as db:
        times = ("2026-01-01T00:00:10Z", "2026-01-01T00:00:20Z", "2026-01-01T00:05:00Z")
        db.push(
            "trades",
            [
                {"sym": s, "price": p, "ts": t}
                for s, p, t in zip("aba", (1.5, 2.5, 9.0), times, strict=True)
            ],
        )
    create = "CREATE CONTINUOUS QUERY hot AS SELECT sym, count(*) AS n, max(price) AS top FROM trades [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY sym ORDER BY sym"
    command("sql", "-c", create, "--run", warehouse=folder)
    return folder


def test_answers_come_as_csv_and_json(warehouse: Path) -> None:
    sql = "SELECT h.sym, h.n, s.company FROM hot h JOIN symbols s ON h.sym = s.sym ORDER BY h.sym"
    text = command("sql", "-c", sql, "--format", "csv", warehouse=warehouse).stdout
    assert list(csv.reader(io.StringIO(text))) == [
        ["sym", "n", "company"], ["a", "1", "Alpha; Inc"], ["b", "1", "Beta"],
    ]  # fmt: skip
    text = command("sql", "-c", sql, "--format", "json", warehouse=warehouse).stdout
    rows = (
        json.loads(text)
        if text.lstrip().startswith("[")
        else [json.loads(line) for line in text.splitlines()]
    )
    assert [row["company"] for row in rows] == ["Alpha; Inc", "Beta"]


def test_tables_are_drawn(warehouse: Path) -> None:
    text = command("sql", "-c", "SELECT * FROM hot", warehouse=warehouse).stdout
    assert "window_start" in text and "2026-01-01" in text and "2.5" in text
    assert "hot" in command("sql", "-c", "SHOW QUERIES", warehouse=warehouse).stdout


def test_explain_and_top(warehouse: Path) -> None:
    assert "shared, lazy" in command("explain", "hot", warehouse=warehouse).stdout
    assert (
        json.loads(command("explain", "hot", "--format", "json", warehouse=warehouse).stdout)[
            "name"
        ]
        == "hot"
    )
    assert command("explain", "hot", "--format", "mermaid", warehouse=warehouse).stdout.startswith(
        "flowchart"
    )
    text = command("top", "--once", warehouse=warehouse).stdout
    assert "trades" in text and "hot" in text and "not running" in text.lower()


def test_an_error_points_at_the_place(warehouse: Path) -> None:
    done = command("sql", "-c", "SELECT prise FROM trades", warehouse=warehouse, check=False)
    assert done.returncode == 1
    shown = done.stdout + done.stderr
    assert "prise" in shown and 'did you mean "price"?' in shown and "WEFT_UNKNOWN_COLUMN" in shown
    assert "^" in shown
    assert "Traceback" not in shown


def test_reading_needs_no_spark(warehouse: Path) -> None:
    code = f"""
import sys, weft
db = weft.connect({str(warehouse)!r})
assert len(db.query("hot").results()) == 2
db.sql("SELECT count(*) FROM hot"); db.sql("SHOW QUERIES"); db.query("hot").history(); db.query("hot").explain()
list(db.query("hot").subscribe())
assert "pyspark" not in sys.modules, "reading imported pyspark"
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
