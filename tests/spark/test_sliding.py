"""Aggregates over windows that slide: merged from panes and rows, at any instant, like recomputed ones."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

import weft
from weft.errors import SqlError, StorageError

START = datetime(2026, 1, 1, tzinfo=UTC)
STREAM = "CREATE STREAM s (k STRING, v INT, x DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
QUERIES = {
    "groups": "SELECT k, count(*) AS n, sum(v) AS t, max(x) AS m FROM {s} GROUP BY k",
    "whole": "SELECT count(*) AS n, min(v) AS m FROM {s} WHERE v > 3",
    "often": "SELECT k, avg(x) AS a FROM {s} GROUP BY k HAVING count(*) > 2",
    "top": "SELECT k, count(*) AS n FROM {s} GROUP BY k ORDER BY n DESC, k LIMIT 2 OFFSET 1",
    "hidden": "SELECT k FROM {s} GROUP BY k ORDER BY sum(v) DESC, k LIMIT 2",
    "kinds": "SELECT DISTINCT count(*) AS n FROM {s} GROUP BY k",
    "picked": "SELECT k, count(DISTINCT v) AS d, stddev(v) FILTER (WHERE x > 2) AS f FROM {s} GROUP BY k",
}
WINDOW = "s [RANGE 40 SECONDS]"


@pytest.fixture(autouse=True)
def busy_maintenance(monkeypatch):
    settings = {"WEFT_MAINTAIN_EVERY": "1", "WEFT_COMPACT_AFTER": "2", "WEFT_GRACE_SECONDS": "0"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def batch(number: int, dice: random.Random) -> list[dict]:
    first = number * 15
    seconds = [first, *(first + dice.randrange(150) / 10 for _ in range(15)), first + 15]
    return [
        {"k": dice.choice("abc"), "v": dice.randrange(9), "x": dice.randrange(40) / 8, "ts": at(t)}
        for t in seconds
    ]


def register(db, name: str, select: str) -> None:
    db.sql(f"CREATE CONTINUOUS QUERY {name} AS {select}")


def twins(db, names) -> None:
    """Each query twice: shared, and as a subquery, which is recomputed."""
    for name in names:
        select = QUERIES[name].format(s=WINDOW)
        register(db, name, select)
        register(db, f"{name}_again", f"SELECT * FROM ({select}) AS q")
    shown = {row["name"]: row["strategy"] for row in db.sql("SHOW QUERIES").to_pylist()}
    for name in names:
        assert shown[name] == "shared, lazy", (name, shown[name])
        assert shown[f"{name}_again"].startswith("recompute"), name


def bag(rows) -> Counter:
    return Counter(
        tuple(f"{v:.9g}" if isinstance(v, float) else v for v in row.values()) for row in rows
    )


def changes(query) -> list:
    return [(c.at, c.kind, *bag([c.row])) for c in query.subscribe(follow=False)]


def test_answers_and_changes_are_those_of_recomputing(spark, tmp_path) -> None:
    dice = random.Random(7)
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM)
        twins(db, list(QUERIES)[:4])
        for number in range(3):
            db.push("s", batch(number, dice))
            db.run()
        twins(db, list(QUERIES)[4:])
        tokens = {name: list(db.query(name).subscribe(follow=False))[-1].token for name in QUERIES}
        db.push("s", batch(3, dice))
        db.run()
        db.advance("s", at(77))
        db.advance("s", at(300))  # every window is empty
        for name in QUERIES:
            one, other = db.query(name), db.query(f"{name}_again")
            assert bag(one.results().to_pylist()) == bag(other.results().to_pylist()), name
            if name != "hidden":  # it also tells that a row is sorted otherwise
                assert Counter(changes(one)) == Counter(changes(other)), name
                assert bag(one.history().to_pylist()) == bag(other.history().to_pylist()), name
            later = list(one.subscribe(tokens[name], follow=False))
            assert [c.token for c in later] == [
                c.token for c in one.subscribe(follow=False) if c.at and c.at > at(45)
            ]
            for seconds in (-5, 0, 3.3, 15, 29.9, 30, 59, 61.25, 77, 99, 300, 400):
                found, wanted = one.results(at(seconds)), other.results(at(seconds))
                assert bag(found.to_pylist()) == bag(wanted.to_pylist()), (name, seconds)


def test_nothing_yet(spark, tmp_path) -> None:
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM)
        register(db, "whole", QUERIES["whole"].format(s=WINDOW))
        register(db, "groups", QUERIES["groups"].format(s=WINDOW))
        assert db.query("whole").results().to_pylist() == [{"n": 0, "m": None}]
        assert db.query("groups").results().num_rows == 0
        assert list(db.query("groups").subscribe(follow=False)) == []
        assert db.query("whole").results(at(0)).to_pylist() == [{"n": 0, "m": None}]


def test_rows_that_the_window_shows_outlive_retain(spark, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("WEFT_COMPACT_AFTER", "1000")  # whole files are pruned
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM + " RETAIN 10 SECONDS")
        select = "SELECT count(*) AS n, sum(v) AS t FROM s [RANGE 65 SECONDS]"
        register(db, "q", select)
        token = None
        for second in range(0, 300, 7):
            db.push("s", [{"k": "a", "v": second, "x": 1.0, "ts": at(second)}])
            db.run()
            held = [t for t in range(0, second + 1, 7) if t > second - 65]
            assert db.query("q").results().to_pylist() == [{"n": len(held), "t": sum(held)}]
            if second == 21:
                token = list(db.query("q").subscribe(follow=False))[-1].token
        with db._engine.catalog.read() as view:
            assert view.find("s").pruned_rows > 0
        held = [t for t in range(0, 300, 7) if t > 294 - 65]
        assert db.query("q").results(at(294)).to_pylist() == [{"n": len(held), "t": sum(held)}]
        with pytest.raises(StorageError) as refused:
            db.query("q").results(at(60))
        assert refused.value.code == "WEFT_NOT_RETAINED"
        with pytest.raises(StorageError) as refused:
            list(db.query("q").subscribe(token, follow=False))
        assert refused.value.code == "WEFT_NOT_RETAINED"
        told = db.query("q").history().to_pylist()
        assert told[0]["change"] == "insert" and told[-1]["n"] == 10
        register(db, "new", select)  # sees what is retained, counted from now
        (found,) = db.query("new").results().to_pylist()
        assert found["n"] <= 2


def test_plans_come_and_go_beneath_it(spark, tmp_path) -> None:
    """Nodes of other panes take over; what was folded before is still read."""
    dice, rows = random.Random(3), []
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM + " RETAIN 5 MINUTES")
        register(db, "q", "SELECT k, sum(v) AS t FROM s [RANGE 5 MINUTES] GROUP BY k")
        for number in range(8):
            rows += batch(number, dice)
            db.push("s", rows[-17:])
            db.run()
            if number == 2:
                register(db, "m", "SELECT k, max(v) AS m FROM s [RANGE 5 MINUTES] GROUP BY k")
            if number == 4:
                register(db, "hop", "SELECT k, sum(v) AS t FROM s [RANGE 9 SECONDS SLIDE 3 SECONDS]"
                         " GROUP BY k")  # fmt: skip
            clock = max(row["ts"] for row in rows)
            wanted = Counter()
            for row in rows:
                if row["ts"] > clock - timedelta(minutes=5):
                    wanted[row["k"]] += row["v"]
            found = {r["k"]: r["t"] for r in db.query("q").results().to_pylist()}
            assert found == dict(wanted), number
        db.sql("DROP QUERY hop")
        assert {r["k"]: r["t"] for r in db.query("q").results().to_pylist()} == dict(wanted)
        db.sql("CREATE OR REPLACE CONTINUOUS QUERY q AS SELECT k, sum(v) AS t"
               " FROM s [RANGE 30 SECONDS] GROUP BY k")  # fmt: skip
        assert bag(db.query("q").results().to_pylist()) == bag(
            db.sql("SELECT k, sum(v) AS t FROM s [RANGE 30 SECONDS] GROUP BY k").to_pylist()
        )


def test_other_readings(spark, tmp_path) -> None:
    dice = random.Random(1)
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM)
        db.sql("CREATE CONTINUOUS QUERY q WITH (answers = 'eager') AS"
               f" SELECT k, count(*) AS n FROM {WINDOW} GROUP BY k EMIT CHANGES")  # fmt: skip
        db.sql("CREATE CONTINUOUS QUERY above AS SELECT sum(n) AS t FROM q WHERE k <> 'a'")
        for number in range(3):
            db.push("s", batch(number, dice))
            db.run()
        rows = db.query("q").results().to_pylist()
        total = sum(row["n"] for row in rows if row["k"] != "a")
        assert db.query("above").results().to_pylist() == [{"t": total}]
        pulled = db.sql("SELECT sum(n) AS t FROM q WHERE k <> 'a'").to_pylist()
        assert [int(row["t"]) for row in pulled] == [total]
        assert db.sql("SELECT * FROM q.history").num_rows == db.query("q").history().num_rows
        assert bag(db.query("q").spark().toArrow().to_pylist()) == bag(rows)
        assert "shared, lazy" in db.query("q").explain()
        with pytest.raises(SqlError):
            db.sql("ALTER QUERY q SET (keep = '1 hour')")
        with pytest.raises(SqlError):
            db.sql("DROP QUERY q")  # above reads it


def test_a_sum_that_overflows_fails_while_it_is_in_the_window(spark, tmp_path) -> None:
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql("CREATE STREAM s (b BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        register(db, "q", "SELECT sum(b) AS t FROM s [RANGE 10 SECONDS]")
        db.push("s", [{"b": 2**62, "ts": at(0)}, {"b": 2**62, "ts": at(1)}])
        db.run()
        with pytest.raises(SqlError) as failed:
            db.query("q").results()
        assert failed.value.code == "WEFT_QUERY_FAILED"
        db.push("s", [{"b": -5, "ts": at(10.5)}])
        db.run()
        assert db.query("q").results().to_pylist() == [{"t": 2**62 - 5}]
