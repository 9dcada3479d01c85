"""Answers that were once wrong, each as the smallest case; and queries that fail, change or go."""

from __future__ import annotations

import pytest

import weft
from weft.errors import NameTaken, SqlError, TypeProblem, UnknownName, Unsupported

STREAM = "CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
MINUTE = "[RANGE 1 MINUTE SLIDE 1 MINUTE]"


def at(seconds: int) -> str:
    return f"2026-01-01T00:{seconds // 60:02d}:{seconds % 60:02d}Z"


def row(k: str | None, v: int | None, seconds: int) -> dict:
    return {"k": k, "v": v, "ts": at(seconds)}


def values(table, *names: str) -> list[tuple]:
    """The named columns, sorted; all but the window's when none is named."""
    names = names or tuple(n for n in table.column_names if not n.startswith("window_"))
    return sorted(zip(*(table.column(n).to_pylist() for n in names), strict=True), key=repr)


@pytest.fixture
def create(db):
    return lambda name, sql: db.sql(f"CREATE CONTINUOUS QUERY {name} AS {sql}")


# shapes of windows


def test_a_subquery_over_a_cte_stays_in_its_window(db, create) -> None:
    db.sql(STREAM)
    hot = f"WITH c AS (SELECT k FROM s {MINUTE} WHERE v > 5)"
    listed = create("listed", f"{hot} SELECT k, v FROM s {MINUTE} WHERE k IN (SELECT k FROM c)")
    counts = create(
        "counts",
        f"SELECT a.n, b.m FROM (SELECT count(*) AS n FROM s {MINUTE} WHERE v > 5) a"
        f" CROSS JOIN (SELECT count(*) AS m FROM s {MINUTE} WHERE v < 5) b",
    )
    json = create("json", f"SELECT to_json(struct(*)) AS j FROM s {MINUTE} WHERE v = 9 AND k = 'a'")
    db.push(
        "s", [row("a", 9, 1), row("a", 6, 61), row("b", 9, 62), row("b", 1, 63), row("z", 0, 200)]
    )
    db.run()
    assert values(listed.history()) == [("a", 6), ("a", 9), ("b", 1), ("b", 9)]
    assert values(counts.history()) == [(1, 0), (2, 1)]
    assert values(json.history()) == [('{"k":"a","v":9,"ts":"2026-01-01T00:00:01.000Z"}',)]


def test_a_filter_above_a_session_does_not_lose_its_first_rows(db, create) -> None:
    db.sql(STREAM)
    sessions = "TABLE(SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '20' SECONDS))"
    inner = f"SELECT k, count(*) AS n, window_start, window_end FROM {sessions} GROUP BY k, window_start, window_end"
    query = create("q", f"SELECT k, n FROM ({inner}) x WHERE n > 1")
    for batch in ([row("a", 9, 1), row("z", 9, 10)], [row("a", 9, 15)], [row("y", 9, 100)]):
        db.push("s", batch)
        db.run()
    assert values(query.history()) == [("a", 2)]


def test_last_rows_windows_with_equal_times(db, create) -> None:
    db.sql(STREAM)
    db.push("s", [row("a", v, 10) for v in (1, 2, 3, 4)])
    db.run()
    db.push("s", [row("a", v, 10) for v in (5, 6)])  # waits while the query is registered
    query = create("q", "SELECT sum(v) AS t FROM s [ROWS 2 SLIDE 2]")
    db.run()
    assert values(query.history()) == [(11,), (3,), (7,)]
    assert values(query.results()) == [(11,)]
    assert [r.t for r in query.spark().collect()] == [11]


def test_columns_may_have_any_name(db, create) -> None:
    db.sql("CREATE STREAM s (`n` INT, `range` STRING, `order` INT, `a b` INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")  # fmt: skip
    standing = create("standing", "SELECT * FROM s")
    changes = create("changes", f"SELECT n, range, `order`, `a b` FROM s {MINUTE} EMIT CHANGES")
    db.push("s", [{"n": 3, "range": "x", "order": 2, "a b": 5, "ts": at(1)}])
    db.run()
    assert values(standing.results(), "n", "range", "order", "a b") == [(3, "x", 2, 5)]
    assert values(changes.results()) == [(3, "x", 2, 5)]
    assert [c.row["n"] for c in standing.subscribe()] == [3]


def test_a_replaced_query_reaches_those_that_read_it(db, create) -> None:
    db.sql(STREAM)
    db.push("s", [row("a", 1, 10), row("a", 9, 10)])
    db.run()
    create("below", "SELECT k, v FROM s")
    above = create("above", "SELECT count(*) AS n FROM below")
    top = create("top", "SELECT n + 1 AS m FROM above")
    db.sql("CREATE OR REPLACE CONTINUOUS QUERY below AS SELECT k, v FROM s WHERE v > 5")
    assert values(above.results()) == [(1,)]
    assert values(top.results()) == [(2,)]
    with pytest.raises(SqlError) as refused:
        db.sql("DROP QUERY below")
    assert refused.value.code == "WEFT_IN_USE"
    with pytest.raises(SqlError) as refused:
        db.sql("CREATE OR REPLACE CONTINUOUS QUERY below AS SELECT k AS other FROM s")
    assert refused.value.code == "WEFT_IN_USE"
    assert values(above.results()) == [(1,)]


def test_a_retroactive_change_goes_all_the_way_up(db, create) -> None:
    db.sql(
        f"{STREAM}; CREATE TABLE u (k STRING, lim INT) RETROACTIVE; INSERT INTO u VALUES ('a', 1)"
    )
    create("w", f"SELECT s.k, u.lim FROM s {MINUTE} JOIN u ON s.k = u.k EMIT CHANGES")
    above = create("above", "SELECT k, lim FROM w [RANGE 1 HOUR]")
    db.push("s", [row("a", 9, 1), row("z", 0, 90)])
    db.run()
    assert values(above.results()) == [("a", 1)]
    db.sql("UPDATE u SET lim = 5")
    assert values(above.results()) == [("a", 5)]


# queries that fail, and statements that are refused


def test_a_failing_query_is_marked_and_the_others_go_on(db, create) -> None:
    db.sql(STREAM)
    bad = create("bad", "SELECT k, 10 DIV v AS q FROM s")
    good = create("good", "SELECT count(*) AS n FROM s")
    db.push("s", [row("a", 5, 1)])
    db.run()
    assert values(bad.results()) == [("a", 2)]
    db.push("s", [row("a", 0, 2)])
    db.run()
    assert values(good.results()) == [(2,)]
    with pytest.raises(SqlError) as failed:
        bad.results()
    assert failed.value.code == "WEFT_QUERY_FAILED"
    assert "zero" in failed.value.detail
    errors = {r["name"]: r["error"] for r in db.sql("SHOW QUERIES").to_pylist()}
    assert errors["good"] is None
    assert "zero" in errors["bad"]
    with pytest.raises(SqlError) as refused:
        create("late", "SELECT 10 DIV v AS q FROM s")
    assert refused.value.code == "WEFT_DATA_ERROR"
    db.sql("CREATE OR REPLACE CONTINUOUS QUERY bad AS SELECT k, try_divide(10, v) AS q FROM s")
    assert values(bad.results()) == [("a", 2.0), ("a", None)]


@pytest.mark.parametrize(
    ("sql", "kind", "code", "place"),
    [
        ("SELECT k + DATE '2026-01-01' AS x FROM s", TypeProblem, None, (None, None)),
        ("SELECT v, count(*) AS n FROM s", SqlError, "WEFT_NOT_GROUPED", (None, None)),
        ("SELECT v, count(*) AS n FROM s GROUP BY k", SqlError, "WEFT_NOT_GROUPED", (1, 41)),
        ("SELECT sum(k || 'x', v) AS x FROM s", SqlError, None, (None, None)),
        ("SELECT k FROM s UNION SELECT k, v FROM s", SqlError, "WEFT_COLUMN_COUNT", (None, None)),
        ("SELECT array(v) + 1 AS x FROM s", TypeProblem, "WEFT_TYPE_MISMATCH", (1, None)),
        ("SELECT prise FROM s", UnknownName, "WEFT_UNKNOWN_COLUMN", (1, 41)),
        ("SELECT k FROM nowhere", UnknownName, "WEFT_UNKNOWN_RELATION", (1, 48)),
        ("SELECT nofunction(k) AS x FROM s", UnknownName, "WEFT_UNKNOWN_FUNCTION", (1, 41)),
        ("SELECT rand() AS x FROM s", Unsupported, "WEFT_NOT_REPRODUCIBLE", (1, 41)),
    ],
)
def test_what_spark_refuses_is_refused_at_once(db, sql, kind, code, place) -> None:
    db.sql(STREAM)
    with pytest.raises(kind) as refused:
        db.sql(f"CREATE CONTINUOUS QUERY wrong AS {sql}")
    error = refused.value
    assert code is None or error.code == code
    assert (place[0] is None) or error.line == place[0]
    assert (place[1] is None) or error.column == place[1]
    assert "weft_s0" not in str(error)
    assert "wrong" not in db.names()


def test_names_are_unique_across_kinds_and_ignore_case(db, create) -> None:
    db.sql(STREAM)
    create("q", "SELECT k FROM s")
    for statement, column in (
        ("CREATE STREAM Q (a INT)", 15),
        ("CREATE TABLE S (a INT)", 14),
        ("CREATE CONTINUOUS QUERY s AS SELECT 1 AS x", 25),
        ("CREATE CONTINUOUS QUERY Q AS SELECT 1 AS x", 25),
    ):
        with pytest.raises(NameTaken) as taken:
            db.sql(statement)
        assert (taken.value.line, taken.value.column) == (1, column)
    with pytest.raises(SqlError) as refused:
        db.sql("DROP STREAM s")
    assert refused.value.code == "WEFT_IN_USE"
    db.sql("CREATE CONTINUOUS QUERY IF NOT EXISTS q AS SELECT v FROM s")
    assert db.query("Q").columns == ["k"]
    db.sql("DROP QUERY q; DROP STREAM s; DROP QUERY IF EXISTS q")
    assert db.names() == {}
    with pytest.raises(UnknownName):
        db.query("q")


def test_a_token_of_a_replaced_query_is_refused(db, create) -> None:
    db.sql(STREAM)
    db.push("s", [row("a", 1, 1)])
    db.run()
    token = create("q", "SELECT k FROM s").subscribe().token
    db.sql("CREATE OR REPLACE CONTINUOUS QUERY q AS SELECT v FROM s")
    for bad in (token, "nonsense"):
        with pytest.raises(weft.InputError) as refused:
            db.query("q").subscribe(bad)
        assert refused.value.code == "WEFT_BAD_TOKEN"


# retention


def test_a_new_query_sees_what_is_retained_and_no_more(tmp_path, spark) -> None:
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM + " RETAIN 1 MINUTE")
        early = db.sql("CREATE CONTINUOUS QUERY early AS SELECT count(*) AS n FROM s")
        db.push("s", [row("a", 1, 0), row("a", 2, 50)])
        db.run()
        db.push("s", [row("a", 3, 100)])
        db.run()
        late = db.sql("CREATE CONTINUOUS QUERY late AS SELECT count(*) AS n FROM s")
        tumbling = db.sql(f"CREATE CONTINUOUS QUERY w AS SELECT sum(v) AS t FROM s {MINUTE}")
        db.sql("CREATE STREAM r (k STRING, w INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        db.push("r", [{"k": "a", "w": 7, "ts": at(s)} for s in (1, 200)])
        db.run()
        full = f"SELECT a.v, b.w FROM s {MINUTE} a FULL JOIN r {MINUTE} b ON a.k = b.k"
        both = db.sql(f"CREATE CONTINUOUS QUERY both AS {full}")
        assert len(both.history()) == 0  # s was not seen whole in r's first minute
        assert values(early.results()) == [(3,)]
        assert values(late.results()) == [(2,)]
        db.push("s", [row("a", 4, 200)])
        db.run()
        assert values(tumbling.history()) == [(3,)]  # the first minute was not seen whole
        assert values(early.results()) == [(4,)]
        assert values(late.results()) == [(3,)]
