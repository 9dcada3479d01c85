"""Answers may have columns with any name, also those that Weft's own SQL would like to use."""

from __future__ import annotations


def test_answers_with_columns_named_like_helpers(db):
    db.sql("CREATE STREAM s (id INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS)")
    query = db.sql(
        "CREATE CONTINUOUS QUERY q AS SELECT 3 AS n, 4 AS range, 5 AS rows, 6 AS e, 7 AS l,"
        " 8 AS clock, count(*) AS copies FROM s [SINCE '2026-01-01']"
    )
    db.push("s", [{"id": 1, "ts": "2026-01-01T00:00:01Z"}, {"id": 2, "ts": "2026-01-01T00:00:02Z"}])
    db.run()
    row = {"n": 3, "range": 4, "rows": 5, "e": 6, "l": 7, "clock": 8, "copies": 2}
    assert query.results().to_pylist() == [row]
    assert [c.row for c in query.subscribe()][-1] == row
    assert {k: v for k, v in query.history().to_pylist()[-1].items() if k in row} == row
