"""Spark compiles the stages of a batch once: nothing that changes from batch to batch is in them."""

from __future__ import annotations

import weft

QUERIES = """
CREATE CONTINUOUS QUERY lazy WITH (answers = 'lazy') AS
  SELECT k, count(*) AS n FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY k;
CREATE CONTINUOUS QUERY ready WITH (answers = 'eager') AS
  SELECT k, max(v) AS n FROM s [RANGE 30 SECONDS SLIDE 10 SECONDS] WHERE v > 3 GROUP BY k;
CREATE CONTINUOUS QUERY total AS SELECT k, max(v) AS n FROM s GROUP BY k;
CREATE CONTINUOUS QUERY told AS
  SELECT k, min(v) AS n FROM s [RANGE 30 SECONDS SLIDE 10 SECONDS] GROUP BY k EMIT CHANGES;
CREATE CONTINUOUS QUERY loud AS
  SELECT upper(k) AS k, count(*) AS n FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY k;
CREATE CONTINUOUS QUERY top AS SELECT k, max(v) AS n FROM s GROUP BY k ORDER BY n DESC LIMIT 1;
CREATE CONTINUOUS QUERY picked WITH (materialize = 'complete') AS
  SELECT upper(k) AS u, v FROM s [RANGE 30 SECONDS] WHERE v > 3 AND k LIKE 'a%'
"""


def rows(first: int) -> list[dict]:
    seconds = range(first, first + 40)
    return [
        {"k": "abc"[t % 3], "v": t, "ts": f"2026-01-01T00:{t // 60:02d}:{t % 60:02d}Z"}
        for t in seconds
    ]


def test_a_batch_compiles_nothing_that_an_earlier_one_compiled(tmp_path, spark) -> None:
    codegen = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics

    def compiled() -> int:
        return codegen.METRIC_COMPILATION_TIME().getCount()

    with weft.connect(tmp_path, spark=spark) as db:
        db.sql("CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        db.sql(QUERIES)
        counts = []
        for batch in range(5):
            db.push("s", rows(40 * batch))
            db.run()
            counts.append(compiled())
        assert counts[0] > 0
        assert counts[2:] == [counts[2]] * 3
