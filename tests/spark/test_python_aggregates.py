"""User-defined aggregates in Python: shared, incremental, restart-safe; against plain Python."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from own_aggregates import NamesSeen, Spread

import weft
from weft.errors import SqlError, WeftError
from weft.logical import declared

STREAM = """
    CREATE STREAM trades (sym STRING, price DOUBLE, qty INT, ts TIMESTAMP,
                          WATERMARK FOR ts AS ts - INTERVAL '30' SECOND)"""
QUERIES = """
    CREATE CONTINUOUS QUERY each_minute AS
    SELECT sym, spread(price) AS v, count(*) AS n,
           spread(price) FILTER (WHERE qty > 2) AS big
    FROM trades [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY sym;
    CREATE CONTINUOUS QUERY hopping AS
    SELECT spread(price) AS v, names_seen(sym, qty) AS seen
    FROM trades [RANGE 3 MINUTES SLIDE 1 MINUTE];
    CREATE CONTINUOUS QUERY ready WITH (answers = 'eager') AS
    SELECT sym, spread(price) AS v, count(*) AS n, spread(price) FILTER (WHERE qty > 2) AS big
    FROM trades [RANGE 1 MINUTE SLIDE 1 MINUTE] WHERE qty > 0 GROUP BY sym;
    CREATE CONTINUOUS QUERY total AS
    SELECT sym, spread(price) AS v, sum(qty) AS q FROM trades GROUP BY sym EMIT CHANGES;
    CREATE CONTINUOUS QUERY alone AS
    SELECT sym, round(spread(price) + median(qty), 3) AS v
    FROM trades [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY sym"""
FIRST = [("a", 10.0, 1, 10), ("a", 20.5, 3, 20), ("b", None, 2, 30), ("a", 7.25, 5, 70)]
SECOND = [("b", 5.0, 4, 50), ("a", 30.0, 1, 55), ("b", 1.5, 3, 130), ("b", 4.0, 1, 140)]  # two late
LAST = [("c", 0.0, 1, 400)]
START = datetime(2026, 1, 1, tzinfo=UTC)


def push(db: weft.Database, rows: list[tuple]) -> None:
    made = [(sym, price, qty, START + timedelta(seconds=at)) for sym, price, qty, at in rows]
    db.push("trades", [dict(zip(("sym", "price", "qty", "ts"), row, strict=True)) for row in made])
    db.run()


def spread(rows: list[tuple]) -> float | None:
    """The same in plain Python."""
    prices = [price for _, price, *_ in rows if price is not None]
    return max(prices) - min(prices) if prices else None


def by_minute(rows: list[tuple], upto: int) -> dict[tuple, list[tuple]]:
    groups = defaultdict(list)
    for row in rows:
        if row[3] // 60 < upto:
            groups[row[3] // 60 + 1, row[0]].append(row)
    return groups


def minute(window_end: datetime) -> int:
    return (window_end - START) // timedelta(minutes=1)


def check(db: weft.Database, rows: list[tuple], closed: int) -> None:
    """Every query against plain Python over all the rows so far."""
    groups = by_minute(rows, closed)
    for name in ("each_minute", "ready"):
        found = db.query(name).history().to_pylist()
        assert {(minute(w["window_end"]), w["sym"]): (w["v"], w["n"], w["big"]) for w in found} == {
            key: (spread(g), len(g), spread([r for r in g if r[2] > 2]))
            for key, g in groups.items()
        }
    for window in db.query("hopping").history().to_pylist():
        end = minute(window["window_end"])
        inside = [r for r in rows if end - 3 <= r[3] // 60 < end]
        names = {sym: sum(r[2] for r in inside if r[0] == sym) for sym, *_ in inside}
        assert (window["v"], dict(window["seen"])) == (spread(inside), names)
    clock = max(at for *_, at in rows) - 30
    reached = [row for row in rows if row[3] <= clock]
    found = db.query("total").results().to_pylist()
    assert {row["sym"]: (row["v"], row["q"]) for row in found} == {
        sym: (spread(g), sum(r[2] for r in g))
        for sym in {r[0] for r in reached}
        if (g := [r for r in reached if r[0] == sym])
    }


def code_of(work) -> str:
    with pytest.raises(WeftError) as refused:
        work()
    return refused.value.code


def test_shared_late_and_restarted(tmp_path: Path, spark, monkeypatch) -> None:
    monkeypatch.setenv("WEFT_COMPACT_AFTER", "2")
    with weft.connect(tmp_path, spark=spark) as db:
        db.register_aggregate(Spread)
        db.sql("""CREATE AGGREGATE names_seen(name STRING, n INT) RETURNS MAP<STRING, BIGINT>
                  AS PYTHON 'own_aggregates:NamesSeen'""")
        db.sql(f"{STREAM}; {QUERIES}")
        for name in ("each_minute", "hopping", "total"):
            assert "strategy   shared" in db.query(name).explain()
        assert "for 2 queries: each_minute, hopping" in db.query("hopping").explain()
        assert "not shared" in db.query("alone").explain()
        push(db, FIRST)
        check_refusals(db)
    with weft.connect(tmp_path, spark=spark) as db:  # only the catalog knows the classes now
        push(db, SECOND)
        check(db, FIRST + SECOND, closed=1)
        push(db, LAST)
        rows = FIRST + SECOND + LAST
        check(db, rows, closed=6)
        db._engine.maintain()
        check(db, rows, closed=6)  # from compacted partials
        alone = {
            (minute(w["window_end"]), w["sym"]): w["v"]
            for w in db.query("alone").history().to_pylist()
        }
        assert alone[1, "a"] == 20.0 + 1 and alone[3, "b"] == 2.5 + 2
        pulled = db.sql("SELECT sym, spread(price) AS v FROM trades GROUP BY sym ORDER BY sym")
        assert pulled.column("v").to_pylist() == [22.75, 3.5, 0.0]
        db.sql("""
            CREATE CONTINUOUS QUERY older AS
            SELECT spread(price) AS v FROM trades [RANGE 2 MINUTES SLIDE 2 MINUTES]""")
        older = {minute(w["window_end"]): w["v"] for w in db.query("older").history().to_pylist()}
        assert older == {2: 30.0 - 5.0, 4: 4.0 - 1.5}, "filled from what is kept"
        log = db.sql("SELECT change, v FROM total.history WHERE sym = 'a'").to_pylist()
        assert [(c["change"], c["v"]) for c in log] == [
            ("insert", 10.5), ("retract", 10.5), ("insert", 22.75),
        ]  # fmt: skip
        check_failure(db)


def check_refusals(db: weft.Database) -> None:
    @weft.aggregate("local(x DOUBLE) RETURNS DOUBLE")
    class Local(Spread):
        pass

    assert code_of(lambda: db.register_aggregate(Local)) == "WEFT_NOT_IMPORTABLE"
    form = "CREATE AGGREGATE {}(x DOUBLE) RETURNS DOUBLE AS PYTHON '{}'"
    for target, code in {
        "no_such_module:Spread": "WEFT_NOT_IMPORTABLE",
        "own_aggregates:Nothing": "WEFT_NOT_IMPORTABLE",
        "__main__:Spread": "WEFT_NOT_IMPORTABLE",
        "own_aggregates:Unfinished": "WEFT_SQL",
        "own_aggregates.Spread": "WEFT_SYNTAX",
    }.items():
        assert code_of(lambda target=target: db.sql(form.format("other", target))) == code
    other = form.format("spread", "own_aggregates:NamesSeen").replace("CREATE", "CREATE OR REPLACE")
    assert code_of(lambda: db.sql(other)) == "WEFT_IN_USE"
    db.register_aggregate(Spread)  # means the same
    assert code_of(lambda: db.register_aggregate(int)) == "WEFT_SQL"
    listed = {row["name"]: row for row in db.sql("SHOW AGGREGATES").to_pylist()}
    assert listed["spread"]["origin"] == "user-defined"


def check_failure(db: weft.Database) -> None:
    """An error in the class is the answer of the windows that meet it, and of no other query."""
    push(db, [("bad", 1.0, 1, 500), ("a", 3.0, 1, 1000)])
    with pytest.raises(WeftError, match="a bad name") as refused:
        db.query("hopping").history()
    assert refused.value.code == "WEFT_AGGREGATE_FAILED"
    newest = db.query("hopping").results(at="2026-01-01T00:07:00Z").to_pylist()
    assert newest[0]["v"] == 0.0
    assert {w["sym"] for w in db.query("each_minute").history().to_pylist()} == {
        "a",
        "b",
        "c",
        "bad",
    }


@pytest.mark.parametrize("work", [Spread(), NamesSeen()])
def test_the_law(work) -> None:
    """Any split, in any order, with empty parts, finishes as the whole does."""
    rows = [{"x": float(i * 7 % 5), "name": f"n{i % 3}", "n": i} for i in range(9)]
    kind = pa.struct([("x", pa.float64()), ("name", pa.string()), ("n", pa.int32())])
    whole = declared.fold_all(work, pa.array([rows], pa.list_(kind)))
    for parts in ([rows[:4], [], rows[4:]], [rows[5:], rows[:2], rows[2:5]], [[r] for r in rows]):
        states = declared.fold_all(work, pa.array(parts, pa.list_(kind))).to_pylist()
        merged = declared.merge_all(work, pa.array([states], pa.list_(pa.binary())))
        value = declared.finished(work, merged.to_pylist()[0])
        assert value == declared.finished(work, whole.to_pylist()[0])
    assert declared.finished(work, None) == work.finish(work.zero())


def test_only_declared_classes_are_registered() -> None:
    with pytest.raises(SqlError, match="has no step, merge, finish"):
        weft.aggregate("nothing(x INT) RETURNS INT")(type("Nothing", (), {"zero": lambda s: b""}))
