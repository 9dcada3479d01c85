"""Eager windows are merged and kept once for all classes of a family, and each class finds its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
import sqlalchemy as sa

import weft

LENGTHS = ((20, 10), (20, 20), (30, 10), (30, 15), (60, 20))


def body(length: int, slide: int, columns: str = "count(*) AS n, sum(v) AS s") -> str:
    return f"SELECT k, {columns} FROM s [RANGE {length} SECONDS SLIDE {slide} SECONDS] GROUP BY k"


def rows(first: int) -> list[dict]:
    times = range(first, first + 40)
    return [
        {"k": "ab"[i % 2], "v": i, "ts": f"2026-01-01T00:{i // 60:02d}:{i % 60:02d}Z"}
        for i in times
    ]


@pytest.fixture
def db(tmp_path):
    with weft.connect(tmp_path) as db:
        db.sql("CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        yield db


def feed(db: weft.Database, first: int) -> None:
    db.push("s", rows(first))
    db.run()


def stored(db: weft.Database) -> list[str]:
    found = db.sql("SELECT owner, path FROM weft.segments WHERE part = 'results'").to_pylist()
    assert {each["owner"] for each in found} == {"stream:1"}
    return [str(Path(db._engine.root) / each["path"]) for each in found]


def history(db: weft.Database, name: str) -> list[tuple]:
    return sorted(tuple(row.values()) for row in db.query(name).history().to_pylist())


def test_a_window_that_several_classes_want_is_kept_once(db):
    for i, (length, slide) in enumerate(LENGTHS):
        for policy in ("eager", "lazy"):
            sql = body(length, slide).replace(
                "sum(v)", "sum(v + 0)" if policy == "lazy" else "sum(v)"
            )
            db.sql(f"CREATE CONTINUOUS QUERY {policy}{i} WITH (answers = '{policy}') AS {sql}")
    for first in (0, 40, 80):
        feed(db, first)
    once = duckdb.sql(
        f"SELECT count(*), count(DISTINCT (_weft_family, _weft_start, _weft_end,"
        f" COLUMNS('g_.*'))) FROM read_parquet({stored(db)}, union_by_name = true)"
    ).fetchall()[0]
    assert once[0] == once[1] > 0
    for i in range(len(LENGTHS)):
        assert history(db, f"eager{i}") == history(db, f"lazy{i}") != []
        assert db.query(f"eager{i}").results().num_rows == 2


def test_a_statistic_that_an_eager_class_did_not_have_is_there_at_once(db):
    """The node has it already, for another class: nothing moves, but what is ready lacks it."""
    db.sql(f"CREATE CONTINUOUS QUERY other AS {body(40, 10)}")
    db.sql(
        f"CREATE CONTINUOUS QUERY ready WITH (answers = 'eager') AS {body(20, 10, 'count(*) AS n')}"
    )
    feed(db, 0)
    db.sql(f"CREATE CONTINUOUS QUERY late AS {body(20, 10, 'sum(v) AS s, count(*) AS n')}")
    assert "strategy   shared, eager" in db.query("late").explain()
    assert [row[-2:] for row in history(db, "late")][-1] == (sum(range(11, 30, 2)), 10)
    feed(db, 40)
    assert len(history(db, "late")) == len(history(db, "ready"))


def test_files_of_families_are_merged_and_go_when_nobody_is_eager(db, monkeypatch):
    db.sql(f"CREATE CONTINUOUS QUERY a WITH (answers = 'eager') AS {body(20, 10)}")
    db.sql(f"CREATE CONTINUOUS QUERY b WITH (answers = 'eager') AS {body(30, 10, 'max(v) AS m')}")
    for first in (0, 40, 80):
        feed(db, first)
    before = history(db, "a"), history(db, "b")
    engine = db._engine
    monkeypatch.setattr(engine, "settings", replace(engine.settings, compact_after=2))
    engine.maintain()
    assert len(stored(db)) == 1
    assert (history(db, "a"), history(db, "b")) == before
    db.sql("DROP QUERY a")
    feed(db, 120)
    assert len(history(db, "b")) > len(before[1])
    db.sql("DROP QUERY b")
    engine.maintain()
    assert db.sql("SELECT * FROM weft.segments WHERE part = 'results'").num_rows == 0


def test_windows_kept_by_class_are_not_read_any_more(tmp_path):
    """A warehouse of the version before: its eager classes start anew at the stream's clock."""
    with weft.connect(tmp_path) as db:
        db.sql("CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        db.sql(f"CREATE CONTINUOUS QUERY a WITH (answers = 'eager') AS {body(20, 10)}")
        feed(db, 0)
        right = history(db, "a")
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'catalog.db'}")
    with engine.begin() as c:
        c.execute(sa.text("UPDATE segments SET owner = 'node:1' WHERE part = 'results'"))
        c.execute(sa.text("UPDATE alembic_version SET version_num = '0004'"))
    with weft.connect(tmp_path) as db:
        assert history(db, "a") == right
        feed(db, 40)
        assert history(db, "a")[: len(right)] == right
        assert len(history(db, "a")) > len(right)
