"""Functions that the user has registered in the session that Weft adopts."""

from __future__ import annotations

import pytest
from pyspark.sql.types import IntegerType

import weft
from weft.errors import UnknownName, WeftError

COLUMNS = "k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts"
QUERIES = {
    "chosen": "SELECT v FROM s WHERE test_bump(v) > 3 ORDER BY v",
    "minutes": """SELECT k, sum(test_bump(v)) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE]
                  WHERE test_bump(v) > 3 GROUP BY k ORDER BY k""",
    "finished": "SELECT k, test_bump(count(*)) AS n FROM s GROUP BY k ORDER BY k",
    "grouped": "SELECT test_bump(v) % 2 AS g, count(*) AS n FROM s GROUP BY test_bump(v) % 2 ORDER BY g",
}


def rows(*values: int, minute: int = 0) -> list[dict]:
    times = [f"2026-01-01T00:{minute:02d}:{v * 7:02d}Z" for v in values]
    return [{"k": "ab"[v % 2], "v": v, "ts": t} for v, t in zip(values, times, strict=True)]


def test_they_can_be_called_everywhere(tmp_path, spark) -> None:
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(f"CREATE STREAM s ({COLUMNS})")
        db.push("s", rows(0))
        db.run()
        with pytest.raises(UnknownName) as refused:
            db.sql(f"CREATE CONTINUOUS QUERY chosen AS {QUERIES['chosen']}")
        assert refused.value.code == "WEFT_UNKNOWN_FUNCTION"
        spark.udf.register("test_bump", lambda v: None if v is None else v + 1, IntegerType())
        db.sql("CREATE CONTINUOUS QUERY plain AS SELECT count(*) AS n FROM s")
        queries = {
            name: db.sql(f"CREATE CONTINUOUS QUERY {name} AS {select}")
            for name, select in QUERIES.items()
        }
        db.push("s", rows(1, 2, 3, 4))
        db.advance("s", "2026-01-01T00:01:00Z")
        db.run()
        shown = {name: query.results().to_pylist() for name, query in queries.items()}
        assert shown["chosen"] == [{"v": 3}, {"v": 4}]
        assert [(r["k"], r["n"]) for r in shown["minutes"]] == [("a", 5), ("b", 4)]
        assert [(r["k"], r["n"]) for r in shown["finished"]] == [("a", 4), ("b", 3)]
        assert [(r["g"], r["n"]) for r in shown["grouped"]] == [(0, 2), (1, 3)]
    spark.sql("DROP TEMPORARY FUNCTION test_bump")
    with weft.connect(tmp_path, spark=spark) as db:  # what needs it fails by itself
        db.push("s", rows(8, minute=1))
        db.run()
        assert db.query("plain").results().to_pylist() == [{"n": 6}]
        with pytest.raises(WeftError) as failed:
            db.query("chosen").results()
        assert failed.value.code == "WEFT_QUERY_FAILED"
        spark.udf.register("test_bump", lambda v: None if v is None else v + 1, IntegerType())
        db.push("s", rows(8, minute=2))
        db.run()
        assert [r["v"] for r in db.query("chosen").results().to_pylist()] == [3, 4, 8, 8]


def test_one_that_raises_stops_its_query_only(tmp_path, spark) -> None:
    spark.udf.register("test_inverse", lambda v: 12 // v, IntegerType())
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(f"CREATE STREAM s ({COLUMNS})")
        inverse = db.sql("CREATE CONTINUOUS QUERY inverse AS SELECT test_inverse(v) AS w FROM s")
        plain = db.sql("CREATE CONTINUOUS QUERY plain AS SELECT count(*) AS n FROM s")
        db.push("s", rows(1))
        db.run()
        db.push("s", rows(0, minute=1))
        db.run()
        assert plain.results().to_pylist() == [{"n": 2}]
        with pytest.raises(WeftError) as failed:
            inverse.results()
        assert failed.value.code == "WEFT_QUERY_FAILED"
        assert "ZeroDivisionError" in failed.value.detail
        with pytest.raises(WeftError) as refused:
            db.sql("CREATE CONTINUOUS QUERY other AS SELECT test_inverse(v) AS w FROM s")
        assert refused.value.code == "WEFT_DATA_ERROR"
