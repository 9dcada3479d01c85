"""The pipeline in the background: pushes, registrations and reads while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

import weft
from weft.errors import SqlError

COLUMNS = "k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts"


def row(v: int) -> dict:
    return {"k": "a", "v": v, "ts": f"2026-01-01T00:{v // 60:02d}:{v % 60:02d}Z"}


def eventually(holds: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.1)


def test_pushes_and_queries_while_it_runs(tmp_path, spark) -> None:
    reports = []
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(f"CREATE STREAM s ({COLUMNS})")
        first = db.sql("CREATE CONTINUOUS QUERY first AS SELECT count(*) AS n FROM s")
        db.start(trigger="100 milliseconds", progress=reports.append)
        assert db.is_running
        with pytest.raises(SqlError) as twice:
            db.start()
        assert twice.value.code == "WEFT_RUNNING"
        for number in range(10):
            db.push("s", [row(number)])
        eventually(lambda: first.results().column("n").to_pylist() == [10])
        second = db.sql("CREATE CONTINUOUS QUERY second AS SELECT max(v) AS top FROM s")
        assert second.results().column("top").to_pylist() == [9]
        db.sql(f"CREATE STREAM r ({COLUMNS})")
        third = db.sql("CREATE CONTINUOUS QUERY third AS SELECT v FROM r")
        db.push("r", [row(1)])
        db.push("s", [row(20)])
        db.run()  # waits for what was pushed
        assert second.results().column("top").to_pylist() == [20]
        eventually(lambda: len(third.results()) == 1)
        db.advance("s", "2026-01-01T00:00:25Z")
        db.sql("DROP QUERY first")
        changes = second.subscribe(timeout=60)
        assert next(changes).row == {"top": 9}
        db.stop()
        assert not db.is_running
        assert [c.kind for c in changes] == ["retract", "insert"]
        assert sum(r.rows for r in reports) == 12
        db.push("s", [row(30)])
        assert second.results().column("top").to_pylist() == [20]
    with weft.connect(tmp_path, spark=spark) as db:
        db.start()
        eventually(lambda: db.query("second").results().column("top").to_pylist() == [30])
        db.stop()
        db.stop()


def test_a_failing_query_does_not_stop_the_pipeline(db) -> None:
    db.sql(f"CREATE STREAM s ({COLUMNS})")
    bad = db.sql("CREATE CONTINUOUS QUERY bad AS SELECT 10 DIV v AS q FROM s")
    good = db.sql("CREATE CONTINUOUS QUERY good AS SELECT count(*) AS n FROM s")
    db.start(trigger="100 milliseconds")
    db.push("s", [row(0)])
    eventually(lambda: good.results().column("n").to_pylist() == [1])
    db.push("s", [row(1)])
    eventually(lambda: good.results().column("n").to_pylist() == [2])
    with pytest.raises(SqlError):
        bad.results()
    db.stop()


def test_a_bad_trigger_is_refused(db) -> None:
    db.sql(f"CREATE STREAM s ({COLUMNS})")
    with pytest.raises(weft.WeftError):
        db.start(trigger="now and then")
    assert not db.is_running
    db.push("s", [row(1)])
    assert db.run().rows == 1


def test_a_kill_while_spark_planned_its_first_batch_is_survived(db):
    """Spark leaves a half-written offset, and refuses such a folder by itself."""
    db.sql("CREATE STREAM first (v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
    total = db.sql("CREATE CONTINUOUS QUERY first_total AS SELECT sum(v) AS n FROM first")
    with db._engine.catalog.read() as view:
        folder = db._engine.root / "checkpoints" / str(view.find("first").id)
    (folder / "offsets").mkdir(parents=True)
    (folder / "offsets" / ".0.6c1b.tmp").write_text("v1")
    (folder / "metadata").write_text('{"id":"6935807f-b756-43d7-ab15-e4310841fcae"}')
    db.push("first", [{"v": 1, "ts": "2026-01-01T00:00:00Z"}])
    db.run()
    assert total.results().to_pylist() == [{"n": 1}]


def test_a_warehouse_whose_name_has_blanks_and_signs(tmp_path, spark) -> None:
    folder = tmp_path / "a b,c é %20 100% %"
    for second in range(2):
        with weft.connect(folder, spark=spark) as db:
            if second == 0:
                db.sql("CREATE STREAM s (k STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
                db.sql("CREATE CONTINUOUS QUERY q AS SELECT k, count(*) AS n FROM s GROUP BY k")
                db.sql("CREATE CONTINUOUS QUERY r AS SELECT k, median(1) AS m FROM s GROUP BY k")
            db.push("s", [{"k": "a", "ts": f"2026-01-01T00:00:0{second}Z"}])
            db.run()
            assert db.query("q").results().to_pylist() == [{"k": "a", "n": second + 1}]
            assert db.query("r").results().to_pylist() == [{"k": "a", "m": 1.0}]


def test_maintenance_that_fails_is_told(tmp_path, spark, monkeypatch) -> None:
    monkeypatch.setattr("weft.spark.loop.MAINTAIN_EVERY", 0.0)

    def fail(self) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr("weft.spark.maintain.Maintainer.run", fail)
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(f"CREATE STREAM s ({COLUMNS})")
        db.start(trigger="200 milliseconds")
        eventually(lambda: not db._engine.is_running)
        with pytest.raises(weft.WeftError, match="maintenance"):
            db.stop()
