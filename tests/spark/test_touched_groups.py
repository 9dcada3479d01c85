"""Holistic functions: only the groups whose rows came or went are computed again."""

from __future__ import annotations

import pytest

import weft
from weft.spark import groups
from weft.spark.groups import groups_touched


@pytest.fixture
def seen(monkeypatch) -> list[list[tuple] | None]:
    """The groups that each evaluation computes again; None: all of them."""
    found: list[list[tuple] | None] = []

    def spy(*arguments):
        only = groups_touched(*arguments)
        found.append(None if only is None else sorted(map(tuple, only.keys.collect()), key=str))
        return only

    monkeypatch.setattr("weft.spark.answers.groups_touched", spy)
    return found


@pytest.fixture
def db(tmp_path, spark):
    with weft.connect(tmp_path / "wh", spark=spark) as db:
        db.sql("CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        yield db


def push(db, *rows: tuple[str, int, int]) -> None:
    db.push("s", [{"k": k, "v": v, "ts": f"2026-01-01T00:00:{at:02d}Z"} for k, v, at in rows])
    db.run()


def test_a_median_of_the_whole_stream(db, seen) -> None:
    query = db.sql("CREATE CONTINUOUS QUERY m AS SELECT k, median(v) AS m FROM s GROUP BY k")
    push(db, ("a", 1, 1), ("b", 5, 1))
    push(db, ("a", 3, 2))
    push(db, ("c", 7, 3), (None, 9, 3))
    assert seen[-2:] == [[("a",)], [("c",), (None,)]]
    assert {(r["k"], r["m"]) for r in query.results().to_pylist()} == {
        ("a", 2.0), ("b", 5.0), ("c", 7.0), (None, 9.0),
    }  # fmt: skip


def test_rows_that_leave_a_sliding_window_touch_their_group(db, seen) -> None:
    query = db.sql(
        "CREATE CONTINUOUS QUERY m AS SELECT k, median(v) AS m FROM s [RANGE 10 SECONDS]"
        " WHERE v > 0 GROUP BY k"
    )
    push(db, ("a", 1, 1), ("b", 5, 5), ("d", -1, 5))
    push(db, ("c", 2, 12))
    assert seen[-1] == [("a",), ("c",)]
    assert {(r["k"], r["m"]) for r in query.results().to_pylist()} == {("b", 5.0), ("c", 2.0)}


def test_open_windows_that_emit_changes(db, seen) -> None:
    query = db.sql(
        "CREATE CONTINUOUS QUERY m AS SELECT k, median(v) AS m FROM s"
        " [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k EMIT CHANGES"
    )
    push(db, ("a", 1, 1), ("b", 5, 5))
    push(db, ("b", 7, 6))
    assert seen[-1] == [("b",)]
    assert {(r["k"], r["m"]) for r in query.results().to_pylist()} == {("a", 1.0), ("b", 6.0)}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT median(v) AS m FROM s",
        "SELECT median(v) AS m FROM s GROUP BY k",  # the group is not in the answer
        "SELECT k, median(v) AS m FROM s GROUP BY k ORDER BY m, k LIMIT 2",
        "SELECT k, median(v) AS m, rank() OVER (ORDER BY median(v)) AS r FROM s GROUP BY k",
        "SELECT k, median(v) AS m FROM s [ROWS 3] GROUP BY k",
    ],
)
def test_what_looks_at_all_groups_is_computed_whole(db, seen, sql) -> None:
    db.sql(f"CREATE CONTINUOUS QUERY m AS {sql}")
    push(db, ("a", 1, 1), ("b", 5, 1))
    push(db, ("a", 3, 2))
    assert set(seen[1:]) <= {None}
    assert "came or went" not in db.query("m").explain()


def test_very_many_rows_make_all_groups_be_computed(db, seen, monkeypatch) -> None:
    monkeypatch.setattr(groups, "MOST_ROWS", 1)
    db.sql("CREATE CONTINUOUS QUERY m AS SELECT k, median(v) AS m FROM s GROUP BY k")
    push(db, ("a", 1, 1))
    push(db, ("a", 3, 2), ("b", 3, 2))
    assert seen[-1] is None


def test_explain_says_so(db) -> None:
    db.sql("CREATE CONTINUOUS QUERY m AS SELECT k, median(v) AS m FROM s GROUP BY k")
    assert "the groups by k whose rows came or went are computed again" in db.query("m").explain()
