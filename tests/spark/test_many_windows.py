"""A row in very many windows: neither their number nor their distance may cost an expression each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from weft.spark import contents
from weft.spark.contents import Due, assign
from weft.spark.rows import END, START, TIME

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES = (-61_000_001, -1, 0, 1, 59_999_999, 60_000_000, 1_767_225_600_123_456)
BOUNDS = ((None, None), (-5_000_000, 61_000_000), (0, None), (None, 0), (60_000_000, 60_000_001))


@pytest.mark.parametrize(("length", "slide", "offset"), [(60, 7, 0), (60, 20, 3), (7, 7, 0)])
def test_a_sequence_makes_the_windows_that_spark_makes(
    spark, monkeypatch, length, slide, offset
) -> None:
    from weft.logical.windows import Hopping

    window = Hopping(*(timedelta(seconds=n) for n in (length, slide, offset)))
    rows = spark.createDataFrame([(t,) for t in TIMES], "t BIGINT")
    rows = rows.selectExpr("t", f"timestamp_micros(t) AS {TIME}")
    for after, upto in BOUNDS:
        due, found = Due(after, upto), []
        for many in (0, 64):
            monkeypatch.setattr(contents, "MANY", many)
            made = assign(rows, window, due, 0).select("t", START, END)
            found.append(sorted(map(tuple, made.collect())))
        assert found[0] == found[1]
        assert after is not None or upto is not None or len(found[0]) >= len(TIMES)


def test_a_thousand_days_every_second(db) -> None:
    db.sql("CREATE STREAM s (v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
    window = "s [RANGE 1000 DAYS SLIDE 1 SECOND]"
    shared = db.sql(f"CREATE CONTINUOUS QUERY shared AS SELECT max(v) AS m FROM {window}")
    median = db.sql(f"CREATE CONTINUOUS QUERY middle AS SELECT median(v) AS m FROM {window}")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    db.push("s", [{"v": v, "ts": start + timedelta(seconds=v)} for v in range(5)])
    db.run()
    for query in (shared, median):
        row = query.results().to_pylist()[-1]
        assert row["window_end"] == start + timedelta(seconds=4)
        assert row["m"] == (3 if query is shared else 1.5)
    assert median.history().num_rows == 4
