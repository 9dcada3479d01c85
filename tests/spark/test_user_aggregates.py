"""User-defined aggregates in SQL, from CREATE AGGREGATE to answers, and after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from weft.errors import SqlError

VWAP = """
    CREATE AGGREGATE vwap(price DOUBLE, qty INT)
      WITH STATISTICS (pv DOUBLE = sum(price * qty) MERGE sum, q BIGINT = sum(qty))
      FINISH pv / nullif(q, 0)"""
# Not one call of a built-in: how it merges is the user's word, and queries with it are recomputed.
TURNOVER = """
    CREATE AGGREGATE turnover(price DOUBLE, qty INT)
      WITH STATISTICS (pv DOUBLE = coalesce(sum(price * qty), 0D) MERGE sum) FINISH pv"""
MINUTES = "trades [RANGE 1 MINUTE SLIDE 1 MINUTE]"
FIRST = [("a", 10.0, 1, "00:10"), ("a", 20.0, 3, "00:20"), ("b", 5.0, 2, "00:30")]
SECOND = [("a", 7.0, 2, "01:10"), ("b", None, 4, "01:20"), ("b", 8.0, 1, "01:30")]
LAST = [("a", 1.0, 1, "02:00")]  # moves the clock on


def push(db: weft.Database, rows: list[tuple]) -> None:
    names = ("sym", "price", "qty", "ts")
    made = [(sym, price, qty, f"2026-01-01T00:{at}Z") for sym, price, qty, at in rows]
    db.push("trades", [dict(zip(names, row, strict=True)) for row in made])
    db.run()


def answers(query: weft.Query, column: str) -> list[tuple]:
    rows = query.history().to_pylist()
    return sorted((f"{row['window_end']:%M:%S}", row["sym"], row[column]) for row in rows)


def code_of(db: weft.Database, statement: str) -> str:
    with pytest.raises(SqlError) as refused:
        db.sql(statement)
    return refused.value.code


def test_a_user_defined_aggregate(tmp_path: Path, spark) -> None:
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql("""
            CREATE STREAM trades (sym STRING, price DOUBLE, qty INT, ts TIMESTAMP,
                                  WATERMARK FOR ts AS ts)""")
        db.sql(f"{VWAP}; {TURNOVER}")
        shared = db.sql(f"""
            CREATE CONTINUOUS QUERY shared AS SELECT sym, vwap(price, qty) AS v,
              vwap(price, qty) FILTER (WHERE qty > 1) AS big FROM {MINUTES} GROUP BY sym""")
        total = db.sql(f"""
            CREATE CONTINUOUS QUERY total AS SELECT sym, sum(qty) AS q FROM {MINUTES} GROUP BY sym""")
        alone = db.sql(f"""
            CREATE CONTINUOUS QUERY alone AS SELECT sym, turnover(price, qty), vwap(price, qty) AS v
            FROM {MINUTES} GROUP BY sym HAVING turnover(price, qty) > 7.5""")
        push(db, FIRST)
        assert shared.explain().split("\n")[1] == "strategy   shared, lazy"
        assert "for 2 queries: shared, total" in total.explain(), "sum(qty) is kept once for both"
        assert "not shared" in alone.explain()
        assert alone.columns[-2:] == ["turnover(price, qty)", "v"]
        check_refusals(db)
        check_shown(db)
    with weft.connect(tmp_path, spark=spark) as db:
        push(db, SECOND + LAST)
        shared, alone = db.query("shared"), db.query("alone")
        by_hand = [
            ("01:00", "a", (10 * 1 + 20 * 3) / 4), ("01:00", "b", 5.0),
            ("02:00", "a", 7.0), ("02:00", "b", 8 * 1 / (4 + 1)),
        ]  # fmt: skip
        assert answers(shared, "v") == by_hand
        assert answers(shared, "big") == [
            ("01:00", "a", 20.0), ("01:00", "b", 5.0), ("02:00", "a", 7.0), ("02:00", "b", None),
        ]  # fmt: skip
        assert answers(alone, "turnover(price, qty)") == [
            ("01:00", "a", 70.0), ("01:00", "b", 10.0), ("02:00", "a", 14.0), ("02:00", "b", 8.0),
        ]  # fmt: skip
        assert answers(alone, "v") == by_hand
        pulled = db.sql("SELECT sym, vwap(price, qty) AS v FROM trades GROUP BY sym ORDER BY sym")
        assert [row["sym"] for row in pulled.to_pylist()] == ["a", "b"]
        assert pulled.column("v").to_pylist() == [(70 + 14 + 1) / 7, (10 + 8) / 7]
        check_dropping(db)


def check_refusals(db: weft.Database) -> None:
    select = f"EXPLAIN SELECT sym, {{}} FROM {MINUTES} GROUP BY sym"
    assert code_of(db, select.format("vwap(price)")) == "WEFT_WRONG_ARGUMENTS"
    assert code_of(db, select.format("vwap(DISTINCT price, qty)")) == "WEFT_UNSUPPORTED"
    assert code_of(db, select.format("vwap(price, qty) OVER ()")) == "WEFT_UNSUPPORTED"
    assert code_of(db, select.format("vwamp(price, qty)")) == "WEFT_UNKNOWN_FUNCTION"
    assert code_of(db, VWAP) == "WEFT_NAME_TAKEN"
    assert code_of(db, "DROP AGGREGATE vwap") == "WEFT_IN_USE"
    assert code_of(db, "DROP AGGREGATE sum") == "WEFT_UNKNOWN_AGGREGATE"
    replaced = VWAP.replace("CREATE", "CREATE OR REPLACE")
    assert code_of(db, replaced.replace("price * qty", "price")) == "WEFT_IN_USE"
    db.sql(replaced)  # means the same
    db.sql(VWAP.replace("AGGREGATE", "AGGREGATE IF NOT EXISTS"))
    bad = "CREATE AGGREGATE bad(d DATE) WITH STATISTICS (s DOUBLE = sum(d)) FINISH s"
    assert code_of(db, bad) == "WEFT_TYPE_MISMATCH"


def check_shown(db: weft.Database) -> None:
    found = {row["name"]: row for row in db.sql("SHOW AGGREGATES").to_pylist()}
    assert found["vwap"]["origin"] == "user-defined"
    assert found["vwap"]["kind"] == "algebraic"
    assert "bad" not in found
    rule = db.sql("SELECT * FROM weft.aggregate_basics WHERE aggregate = 'vwap'")
    assert rule.num_rows == 2


def check_dropping(db: weft.Database) -> None:
    assert code_of(db, "DROP AGGREGATE turnover") == "WEFT_IN_USE"
    db.sql("DROP QUERY alone; DROP QUERY shared; DROP AGGREGATE turnover; DROP AGGREGATE vwap")
    db.sql("DROP AGGREGATE IF EXISTS vwap")
    assert code_of(db, f"EXPLAIN SELECT vwap(price, qty) FROM {MINUTES}") == "WEFT_UNKNOWN_FUNCTION"
