"""Shared queries that fail on a row: their windows say so, and nobody else notices."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from weft.errors import SqlError

STREAM = """CREATE STREAM s (k STRING, v INT, q INT, t STRING, ts TIMESTAMP,
                             WATERMARK FOR ts AS ts)"""
MINUTES = "s [RANGE 1 MINUTE SLIDE 1 MINUTE]"
LARGE = 2_000_000_000
ROWS = [  # the second minute holds what fails
    ("a", 1, 1, "1", "10:00:01"), ("b", 4, 2, "2", "10:00:02"),
    ("a", 3, 0, "x", "10:01:01"), ("b", LARGE, LARGE, "3", "10:01:02"),
    ("a", 5, 1, "7", "10:02:01"), ("a", None, 0, None, "10:03:01"),
]  # fmt: skip
FAILING = {  # query, what its detail says, its first and its third window
    "SELECT k, sum(v * 2) AS a FROM {} GROUP BY k": ("v * 2: overflow", [("a", 2), ("b", 8)], [("a", 10)]),
    "SELECT k, avg(v / q) AS a FROM {} GROUP BY k": ("v / q: division by zero", [("a", 1.0), ("b", 2.0)], [("a", 5.0)]),
    "SELECT sum(CAST(t AS INT)) AS a FROM {}": ("does not fit INT", [(3,)], [(7,)]),
    "SELECT v % q AS m, count(*) AS n FROM {} GROUP BY v % q": ("division by zero", [(0, 2)], [(0, 1)]),
    "SELECT k, count(*) AS n FROM {} WHERE k <> 'z' AND v / q >= 1 GROUP BY k": ("division by zero", [("a", 1), ("b", 1)], [("a", 1)]),
    "SELECT k, max(v + q) AS n FROM {} GROUP BY k HAVING k = 'a'": ("overflow", [("a", 2)], [("a", 6)]),
}  # fmt: skip
FINE = {  # what guards keep out: no window fails
    "SELECT sum(v / q) AS n FROM {} WHERE q <> 0": [(3.0,), (1.0,), (5.0,)],
    "SELECT sum(v / q) FILTER (WHERE q <> 0) AS n FROM {}": [(3.0,), (1.0,), (5.0,)],
    "SELECT sum(CASE WHEN q <> 0 THEN v / q END) AS n FROM {}": [(3.0,), (1.0,), (5.0,)],
    "SELECT sum(CAST(t AS INT)) AS n FROM {} WHERE t <> 'x'": [(3,), (3,), (7,)],
    "SELECT sum(-v) AS n FROM {} WHERE q <> 0 AND v / q >= 1": [(-5,), (-LARGE,), (-5,)],
}


def push(db: weft.Database, rows: list[tuple]) -> None:
    names = ("k", "v", "q", "t", "ts")
    given = [dict(zip(names, row, strict=True)) for row in rows]
    db.push("s", [row | {"ts": f"2026-01-01T{row['ts']}Z"} for row in given])
    db.run()


def shown(table) -> list[tuple]:
    rows = [tuple(v for v in r.values() if not hasattr(v, "hour")) for r in table.to_pylist()]
    return sorted(rows, key=str)


def problem(work) -> str:
    with pytest.raises(SqlError) as failed:
        work()
    assert failed.value.code == "WEFT_QUERY_FAILED"
    return failed.value.detail


@pytest.mark.parametrize("answers", ["lazy", "eager"])
def test_only_the_window_that_holds_the_row_fails(tmp_path: Path, spark, answers: str) -> None:
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM)
        texts = [*FAILING, *FINE]
        script = [
            f"CREATE CONTINUOUS QUERY q{i} WITH (answers = '{answers}') AS {text.format(MINUTES)}"
            for i, text in enumerate(texts)
        ]
        db.sql(";".join(script))
        push(db, ROWS[:3])
        push(db, ROWS[3:5])  # the clock: the second minute is closed
        assert {r["strategy"] for r in db.sql("SHOW QUERIES").to_pylist()} == {f"shared, {answers}"}
        for i, (told, *_) in enumerate(FAILING.values()):
            detail = problem(db.query(f"q{i}").results)
            assert told in detail and "window from 2026-01-01 10:01:00 to" in detail
        push(db, ROWS[5:])
        for i, (told, first, third) in enumerate(FAILING.values()):
            query = db.query(f"q{i}")
            assert shown(query.results()) == third
            assert shown(query.results(at="2026-01-01T10:01:59Z")) == first
            for work in (
                query.history,
                lambda query=query: query.results(at="2026-01-01T10:02:00Z"),
                lambda query=query: list(query.subscribe(follow=False)),
                lambda i=i: db.sql(f"SELECT * FROM q{i}.history"),
            ):
                assert told in problem(work)
        for i, wanted in enumerate(FINE.values(), len(FAILING)):
            assert [
                tuple(r.values())[2:] for r in db.query(f"q{i}").history().to_pylist()
            ] == wanted


def test_they_share_with_those_that_do_not_fail(tmp_path: Path, spark) -> None:
    """One node for both; who never divides never notices; what is told of it is true."""
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM)
        db.sql(f"""
            CREATE CONTINUOUS QUERY ratio AS SELECT k, sum(v / q) AS r FROM {MINUTES} GROUP BY k;
            CREATE CONTINUOUS QUERY guarded AS SELECT k, sum(try_divide(v, q)) AS r, count(*) AS n
              FROM {MINUTES} GROUP BY k""")
        push(db, ROWS)
        assert shown(db.query("guarded").history())[:2] == [("a", 1.0, 1), ("a", 5.0, 1)]
        assert db.sql("SELECT * FROM weft.group_topology").num_rows == 1
        text = db.query("ratio").explain()
        assert (
            "may fail   v / q: division by zero" in text and "with 1 other query: guarded" in text
        )
        assert "may fail" not in db.query("guarded").explain()


def test_totals_and_changes(tmp_path: Path, spark) -> None:
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM)
        db.sql(f"""
            CREATE CONTINUOUS QUERY total AS SELECT sum(v + q) AS n FROM s;
            CREATE CONTINUOUS QUERY groups AS SELECT k, sum(v / q) AS n FROM s GROUP BY k;
            CREATE CONTINUOUS QUERY live AS SELECT k, sum(v * q) AS n FROM {MINUTES} GROUP BY k
              EMIT CHANGES""")
        push(db, ROWS[:2])
        push(db, ROWS[2:])
        assert shown(db.query("total").results(at="2026-01-01T10:00:02Z")) == [(8,)]
        for name, told in (("total", "v + q: overflow"), ("groups", "division by zero")):
            assert told in problem(db.query(name).results)
            assert told in problem(db.query(name).history)
        assert shown(db.query("live").results()) == [("a", None)]
        assert "v * q: overflow" in problem(db.query("live").history)


def test_finished_on_spark_it_is_marked(tmp_path: Path, spark) -> None:
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM)
        db.sql(f"""
            CREATE CONTINUOUS QUERY loud AS SELECT upper(k) AS k, sum(v / q) AS r FROM {MINUTES} GROUP BY k;
            CREATE CONTINUOUS QUERY fine AS SELECT upper(k) AS k, sum(v) AS r FROM {MINUTES} GROUP BY k;
            CREATE CONTINUOUS QUERY lazy AS SELECT k, sum(v / q) AS r FROM {MINUTES} GROUP BY k;
            CREATE CONTINUOUS QUERY above AS SELECT max(r) AS r FROM lazy [RANGE 2 MINUTES SLIDE 2 MINUTES]""")
        push(db, ROWS[:2] + ROWS[2:3])
        assert shown(db.query("loud").results()) == [("A", 1.0), ("B", 2.0)]
        push(db, ROWS[4:])
        errors = {r["name"]: r["error"] for r in db.sql("SHOW QUERIES").to_pylist()}
        assert "v / q: division by zero" in errors["loud"] and errors["fine"] is None
        assert "v / q: division by zero" in errors["above"], "it reads the window that fails"
        assert "v / q" in problem(db.query("loud").results)
        assert shown(db.query("loud").history()) == [("A", 1.0), ("B", 2.0)]
        assert shown(db.query("fine").results()) == [("A", 5)]
