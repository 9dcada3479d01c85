"""Answers in memory are those of the newest commit, by whatever process, and of the query that is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import weft

STREAM = "CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
COMPLETE = "WITH (materialize = 'complete')"
KINDS = {
    "plain": "SELECT * FROM s [RANGE 100 SECONDS] WHERE v > 20",
    "other": "SELECT * FROM s [RANGE 50 SECONDS] WHERE v <= 30 AND k = 'b'",
    "nobody": "SELECT * FROM s [RANGE 50 SECONDS] WHERE v > 1000",
    "spoken": "SELECT v > 50 AS big, k FROM s [SINCE '2026-01-01'] WHERE v = 7",
    "kinds": "SELECT DISTINCT k FROM s [RANGE 10 SECONDS] WHERE v > 5",
    "sorted": "SELECT k, v FROM s [RANGE 30 SECONDS] WHERE v > 3 ORDER BY v DESC, k",
    "hidden": "SELECT k FROM s [RANGE 30 SECONDS] WHERE v > 3 ORDER BY ts DESC",
    "few": "SELECT v, ts FROM s [RANGE 60 SECONDS] WHERE v > 2 ORDER BY v DESC LIMIT 5 OFFSET 2",
    "one": "SELECT DISTINCT k, v > 9 AS big FROM s [RANGE 99 SECONDS] ORDER BY k, big LIMIT 3",
    "derived": "SELECT initcap(k) AS u FROM s [RANGE 60 SECONDS] WHERE v > 4",
}


def rows(first: int, count: int) -> list[dict]:
    return [
        {"k": "abc"[t % 3], "v": t % 100, "ts": f"2026-01-01T00:{t // 60:02d}:{t % 60:02d}Z"}
        for t in range(first, first + count)
    ]


def push(db: weft.Database, first: int, count: int = 200) -> None:
    db.push("s", rows(first, count))
    db.run()


def create(name: str, text: str) -> str:
    return f"CREATE CONTINUOUS QUERY {name} {COMPLETE} AS {text}"


def in_memory(db: weft.Database, name: str):
    engine = db._engine
    found = engine.kept.get(name, engine.catalog.version())
    return None if found is None else found.table


def as_set(table) -> list:
    return sorted(map(repr, table.to_pylist()))


@pytest.fixture
def db(tmp_path: Path, spark):
    with weft.connect(tmp_path, spark=spark) as found:
        found.sql(STREAM)
        push(found, 0)
        yield found


def test_what_is_ready_is_in_memory_before_somebody_asks(db, tmp_path) -> None:
    db.sql(";".join(create(name, text) for name, text in KINDS.items()))
    for first in (200, 400):
        push(db, first)
        check(db, tmp_path)
    db.advance("s", "2026-01-01T00:10:30Z")
    check(db, tmp_path)


def check(db: weft.Database, folder: Path) -> None:
    with weft.connect(folder) as reader:
        for name, text in KINDS.items():
            found, read = in_memory(db, name), reader.query(name).results()
            if name == "derived":
                assert found is None
                continue
            assert found is not None, name
            assert found.schema == read.schema, name
            if "ORDER BY" in text:
                assert found.to_pylist() == read.to_pylist(), name
            assert as_set(found) == as_set(read), name
            assert db.query(name).results() is found


WRITER = """
import json, sys, weft
with weft.connect(sys.argv[1]) as db:
    db.push("s", json.loads(sys.argv[2]))
    db.run()
"""


def test_a_commit_of_another_process_is_seen_at_once(tmp_path, spark) -> None:
    import json

    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM)
        push(db, 0)
        db.sql(create("ready", "SELECT v FROM s [RANGE 50 SECONDS] WHERE v >= 0"))
        db.sql("CREATE CONTINUOUS QUERY rowwise AS SELECT v FROM s [RANGE 20 SECONDS]")
        db.sql("CREATE CONTINUOUS QUERY total AS SELECT count(*) AS n FROM s")
        db.sql("CREATE CONTINUOUS QUERY middle AS SELECT median(v) AS m FROM s [RANGE 9 SECONDS]")
        push(db, 200)
    names = ("ready", "rowwise", "total", "middle")
    with weft.connect(tmp_path) as reader:
        before = {name: reader.query(name).results() for name in names}
        assert all(reader.query(name).results() is before[name] for name in names)
        text = json.dumps(rows(400, 10))
        subprocess.run([sys.executable, "-c", WRITER, str(tmp_path), text], check=True, timeout=300)
        after = {name: reader.query(name).results() for name in names}
    assert before["ready"]["v"].to_pylist() == list(range(50, 100))
    assert sorted(after["ready"]["v"].to_pylist()) == [*range(10), *range(60, 100)]
    assert sorted(after["rowwise"]["v"].to_pylist()) == [*range(10), *range(90, 100)]
    assert (before["total"]["n"][0].as_py(), after["total"]["n"][0].as_py()) == (400, 410)
    assert (before["middle"]["m"][0].as_py(), after["middle"]["m"][0].as_py()) == (95, 5)


def test_another_query_of_the_same_name(db) -> None:
    db.sql(create("q", "SELECT v FROM s [RANGE 5 SECONDS]"))
    push(db, 200)
    query = db.query("q")
    assert query.results().num_rows == 5
    db.sql("CREATE OR REPLACE CONTINUOUS QUERY q AS SELECT v FROM s [RANGE 7 SECONDS]")
    assert query.results().num_rows == 7
    db.sql("DROP QUERY q")
    for read in (query.results, lambda: db.query("q")):
        with pytest.raises(weft.WeftError) as caught:
            read()
        assert caught.value.code == "WEFT_UNKNOWN_QUERY"
    db.sql(create("Q", "SELECT k FROM s [RANGE 3 SECONDS]"))
    assert query.results().column_names == ["k"]
    assert query.results().num_rows == 3


def test_altered_and_read_again(db) -> None:
    db.sql("CREATE CONTINUOUS QUERY q AS SELECT v FROM s [RANGE 5 SECONDS]")
    assert db.query("q").results().num_rows == 5
    for i, policy in enumerate(("complete", "none", "complete", "partial")):
        db.sql(f"ALTER QUERY q SET (materialize = '{policy}')")
        wanted = list(range(100))[-5:]
        assert sorted(db.query("q").results()["v"].to_pylist()) == wanted
        push(db, 200 * (i + 1))
        assert sorted(db.query("q").results()["v"].to_pylist()) == wanted
        assert db.query("q").results() is in_memory(db, "q")


def test_what_does_not_touch_an_answer_leaves_it(db) -> None:
    db.sql("CREATE STREAM t (v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
    db.sql("CREATE CONTINUOUS QUERY q AS SELECT v FROM s [RANGE 5 SECONDS]")
    db.sql("CREATE CONTINUOUS QUERY n AS SELECT k, count(*) AS n FROM s GROUP BY k")
    found = {name: db.query(name).results() for name in "qn"}
    db.push("t", [{"v": 1, "ts": "2026-01-01T00:00:00Z"}])
    db.run()
    db._engine.maintain()
    assert in_memory(db, "q") is None  # it has to be looked at
    assert all(db.query(name).results() is found[name] for name in "qn")
    push(db, 200, 10)
    assert db.query("q").results()["v"].to_pylist() == list(range(5, 10))
    assert sum(db.query("n").results()["n"].to_pylist()) == 210


def test_memory_is_bounded(tmp_path, spark, monkeypatch) -> None:
    monkeypatch.setenv("WEFT_ANSWERS_BYTES", str(2**17))
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM)
        push(db, 0)
        names = [f"q{i}" for i in range(60)]
        db.sql(";".join(create(n, f"SELECT * FROM s WHERE v > {i}") for i, n in enumerate(names)))
        push(db, 200, 100)
        assert all(in_memory(db, name) is None for name in names[:-1])  # too many together
        for _ in range(2):
            for i, name in enumerate(names):
                assert db.query(name).results().num_rows == 3 * (99 - i)
                assert db._engine.kept.bytes <= 2**17
        push(db, 300, 100)
        assert db.query("q9").results().num_rows == 4 * 90


def test_reads_are_counted_whether_from_memory_or_not(db) -> None:
    db.sql("CREATE CONTINUOUS QUERY q AS SELECT v FROM s [RANGE 5 SECONDS]")
    for _ in range(5):
        db.query("q").results()
    with db._engine.catalog.read() as view:
        record = view.find("q")
    assert db._engine.reads._queries[record.id] == 5
