"""Parquet files that a stream takes as they lie answer as if Spark had written their rows again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest

import weft
from weft.storage import taken

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("v", pa.int64()), ("price", pa.float64()),
        ("day", pa.date32()), ("paid", pa.decimal128(12, 2)),
    ]
)  # fmt: skip
STREAM = """
    CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT, price DOUBLE, day DATE, paid DECIMAL(12, 2),
                     WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS)
    WITH (source = 'files', path = '{path}', format = 'parquet')
"""
QUERIES = {
    "totals": "SELECT k, COUNT(*) AS n, SUM(v) AS total, MAX(price) AS high FROM s GROUP BY k",
    "minutes": "SELECT k, COUNT(*) AS n, SUM(paid) AS paid FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL 1 MINUTE) GROUP BY k",
    "chosen": "SELECT ts, k, v, paid FROM s [RANGE 2 MINUTES] WHERE v % 7 = 3",
    "derived": "SELECT k, v FROM s [RANGE 90 SECONDS] WHERE soundex(k) = 'K000' AND v > 50",
    "last": "SELECT ts, k, v FROM s [ROWS 25]",
    "middle": "SELECT k, MEDIAN(v) AS middle FROM s GROUP BY k",
}


@pytest.fixture
def taking(monkeypatch) -> None:
    monkeypatch.setenv("WEFT_TAKE_ROWS", "1")


def rows(first: int, count: int, step: int = 1) -> pa.Table:
    numbers = range(first, first + count)
    return pa.Table.from_pydict(
        {
            "ts": [START + timedelta(seconds=n // step) for n in numbers],
            "k": [None if n % 11 == 0 else f"k{n % 5}" for n in numbers],
            "v": [n * 37 % 101 for n in numbers],
            "price": [float("nan") if n % 13 == 0 else n / 8 for n in numbers],
            "day": [START.date() + timedelta(days=n % 3) for n in numbers],
            "paid": [None if n % 17 == 0 else n for n in numbers],
        },
        SCHEMA,
    )


def put(folder: Path, name: str, table: pa.Table) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / f"_{name}", row_group_size=40)
    (folder / f"_{name}").rename(folder / name)


def forms(db: weft.Database) -> list[bool]:
    with db._engine.catalog.read() as view:
        stream = view.streams()[0]
        return [taken.is_taken(s) for s in view.segments(stream.owner, "rows")]


def answers(db: weft.Database) -> dict[str, list]:
    found = {name: bag(db.query(name).results()) for name in QUERIES}
    instant = START + timedelta(seconds=130)
    for name in ("chosen", "derived", "last"):
        found[f"{name} at"] = bag(db.query(name).results(at=instant))
    found["pull"] = bag(db.sql("SELECT count(*) AS n, sum(v) AS v, min(ts) AS first FROM s"))
    return found


def bag(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def run_through(root: Path, spark, source: Path, batches: list[list[tuple[str, pa.Table]]]):
    """Answers after each batch, and whether each file of rows was taken."""
    seen = []
    with weft.connect(root, spark=spark) as db:
        db.sql(STREAM.format(path=source))
        for name, body in QUERIES.items():
            db.sql(f"CREATE CONTINUOUS QUERY {name} AS {body}")
        for files in batches:
            for name, table in files:
                put(source, name, table)
            db.run()
            seen.append(answers(db))
        db.sql("CREATE CONTINUOUS QUERY late_comer AS SELECT k, SUM(v) AS v FROM s GROUP BY k")
        seen.append(bag(db.query("late_comer").results()))
        return seen, forms(db)


BATCHES = [
    [("a.parquet", rows(0, 120)), ("b.parquet", rows(120, 60))],  # two files, one batch
    [("c.parquet", rows(300, 100, 2))],  # about half of them behind the clock
    [("d.parquet", rows(300, 90))],
]


def test_the_answers_are_the_same_and_equal_an_oracle(tmp_path, spark, monkeypatch) -> None:
    monkeypatch.setenv("WEFT_TAKE_ROWS", "1")
    ours, kept = run_through(tmp_path / "taken", spark, tmp_path / "one", BATCHES)
    monkeypatch.setenv("WEFT_TAKE_ROWS", "1000000")
    theirs, written = run_through(tmp_path / "written", spark, tmp_path / "two", BATCHES)
    assert kept.count(True) == 3 and not all(kept)
    assert not any(written)
    assert ours == theirs
    second = rows(300, 100, 2)
    behind = pa.compute.less(second["ts"], START + timedelta(seconds=174))
    assert 0 < pa.compute.sum(behind).as_py() < 100
    everything = pa.concat_tables(
        [rows(0, 180), second.filter(pa.compute.invert(behind)), rows(300, 90)]
    )
    clock = everything["ts"].to_pylist()[-1] - timedelta(seconds=5)
    seen = everything.filter(pa.compute.less_equal(everything["ts"], clock))
    sql = "SELECT k, CAST(SUM(v) AS BIGINT) AS v FROM seen GROUP BY k"
    assert ours[-1] == bag(duckdb.from_arrow(seen).query("seen", sql).to_arrow_table())


@pytest.mark.usefixtures("taking")
def test_taken_files_are_compacted_swept_and_restarted_from(tmp_path, spark, monkeypatch) -> None:
    monkeypatch.setenv("WEFT_COMPACT_AFTER", "3")
    monkeypatch.setenv("WEFT_MAINTAIN_EVERY", "1")
    monkeypatch.setenv("WEFT_GRACE_SECONDS", "0")
    source, root = tmp_path / "in", tmp_path / "w"
    with weft.connect(root, spark=spark) as db:
        db.sql(STREAM.format(path=source))
        for name, body in QUERIES.items():
            db.sql(f"CREATE CONTINUOUS QUERY {name} AS {body}")
        for number in range(4):
            put(source, f"{number}.parquet", rows(number * 50, 50))
            db.run()
        before = answers(db)
        assert False in forms(db)
    for path in source.iterdir():
        path.unlink()  # what was taken is ours
    with weft.connect(root, spark=spark) as db:
        assert answers(db) == before
        totals = db.query("totals").results().to_pylist()
    assert sum(row["n"] for row in totals) == 195  # five seconds wait for the clock


@pytest.mark.usefixtures("taking")
def test_a_damaged_file_is_set_aside_and_not_taken(tmp_path, spark) -> None:
    source = tmp_path / "in"
    put(source, "a.parquet", rows(0, 60))
    damaged = bytearray((source / "a.parquet").read_bytes())
    damaged[10:400] = bytes(390)
    with weft.connect(tmp_path / "w", spark=spark) as db:
        db.sql(STREAM.format(path=source))
        db.sql(f"CREATE CONTINUOUS QUERY q AS {QUERIES['minutes']}")
        db.run()
        (source / "_b.parquet").write_bytes(damaged)
        (source / "_b.parquet").rename(source / "b.parquet")
        put(source, "c.parquet", rows(60, 70))
        db.run()
        rejected = db.sql("SELECT reason FROM s.rejected").to_pylist()
        assert len(rejected) == 1 and "cannot be read" in rejected[0]["reason"]
        assert db.sql("SELECT count(*) AS n FROM s").to_pylist() == [{"n": 130}]


@pytest.mark.usefixtures("taking")
@pytest.mark.parametrize("point", ["batch.rows-written", "batch.before-commit", "batch.committed"])
def test_a_process_that_dies_leaves_every_row_once(point, tmp_path, spark) -> None:
    source, root = tmp_path / "in", tmp_path / "w"
    put(source, "a.parquet", rows(0, 120))
    with weft.connect(root, spark=spark) as db:
        db.sql(STREAM.format(path=source))
        db.sql(f"CREATE CONTINUOUS QUERY q AS {QUERIES['minutes']}")
    script = f"import weft\nwith weft.connect({str(root)!r}) as db: db.run()"
    died = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "WEFT_CRASH_AT": point}, timeout=300
    )
    assert died.returncode == -signal.SIGKILL
    with weft.connect(root, spark=spark) as db:
        db.run()
        put(source, "b.parquet", rows(120, 70))
        db.run()
        assert db.sql("SELECT count(*) AS n, count(DISTINCT ts) AS d FROM s").to_pylist() == [
            {"n": 190, "d": 190}
        ]
        counted = db.query("q").history().to_pylist()
        assert sum(row["n"] for row in counted) == 180
        named = set(db.sql("SELECT path FROM weft.segments")["path"].to_pylist())
        found = {str(p.relative_to(root)) for p in (root / "streams").rglob("*.parquet")}
        assert found <= named, "an orphan was not swept"


def refused(tmp_path: Path, table: pa.Table, clock: int | None = None, **options) -> bool:
    """Whether a file with a table is not taken."""
    from weft.catalog.records import StreamRecord
    from weft.logical.relations import Column, StreamDefinition

    columns = ("ts TIMESTAMP", "k STRING", "v BIGINT", "price DOUBLE", "day DATE")
    declared = tuple(Column(*c.split()) for c in columns)
    definition = StreamDefinition(
        "s", declared, "ts", timedelta(0), None, {"source": "files", "path": "/x", **options}
    )
    record = StreamRecord(1, definition, clock, None, -1, 0, 0, 0, 0, None, 0)
    path = tmp_path / "x.parquet"
    pq.write_table(table, path)
    return not (taken.can_be_taken(definition) and taken.fits([path], record, 1))


def test_what_is_not_taken(tmp_path) -> None:
    good = rows(0, 50)
    micros = int(START.timestamp() * 1_000_000)
    assert not refused(tmp_path, good)
    assert not refused(tmp_path, good, clock=micros)
    assert not refused(tmp_path, good.append_column("more", good["v"]))
    assert not refused(tmp_path, good.set_column(1, "k", good["k"].dictionary_encode()))
    assert refused(tmp_path, good, clock=micros + 1)  # a late row
    assert refused(tmp_path, good, mergeSchema="true")
    assert refused(tmp_path, good, format="orc")
    assert refused(tmp_path, good.drop(["v"]))
    assert refused(tmp_path, good.append_column("K", good["v"]))
    assert refused(tmp_path, good.append_column("_weft_tick", good["v"]))
    assert refused(tmp_path, good.set_column(2, "v", good["v"].cast(pa.int32())))
    naive = good["ts"].cast(pa.timestamp("us"))
    assert refused(tmp_path, good.set_column(0, "ts", naive))
    none = pa.array([None] * 50, pa.timestamp("us", "UTC"))
    assert refused(tmp_path, good.set_column(0, "ts", none))
    old = pa.array([datetime(1500, 1, 1).date()] * 50, pa.date32())
    assert refused(tmp_path, good.set_column(4, "day", old))
