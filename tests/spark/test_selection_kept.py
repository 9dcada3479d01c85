"""What is kept for selections: how many jobs that takes, when it is chosen, when it goes."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft

STREAM = "CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"


def rows(first: int, count: int) -> list[dict]:
    return [
        {"k": "abc"[t % 3], "v": t % 100, "ts": f"2026-01-01T00:{t // 60:02d}:{t % 60:02d}Z"}
        for t in range(first, first + count)
    ]


def push(db: weft.Database, first: int, count: int = 200) -> None:
    db.push("s", rows(first, count))
    db.run()


def jobs(spark) -> int:
    return spark._jsc.sc().statusStore().jobsList(None).size()


def keeps(db: weft.Database, name: str) -> str:
    return next(line for line in db.query(name).explain().splitlines() if line.startswith("keeps"))


def parts(db: weft.Database) -> dict[str, int]:
    found = db.sql("SELECT part, sum(rows) AS n FROM weft.segments GROUP BY part")
    return dict(zip(found["part"].to_pylist(), found["n"].to_pylist(), strict=True))


def script(count: int) -> str:
    """Every way of keeping: derived columns, lists, ready windows; each query with its constants."""
    kinds = (
        ("partial", "SELECT upper(k) AS u FROM s WHERE v = {n} AND k <> 'c'"),
        ("complete", "SELECT v FROM s [RANGE 100 SECONDS] WHERE v > {n} AND lower(k) = 'a'"),
        ("none", "SELECT DISTINCT k FROM s [ROWS 50] WHERE v < {n}"),
    )
    return ";\n".join(
        f"CREATE CONTINUOUS QUERY q{n}_{policy} WITH (materialize = '{policy}') AS {text.format(n=n)}"
        for n in range(count)
        for policy, text in kinds
    )


def jobs_of_a_batch(folder: Path, spark, count: int) -> tuple[int, dict]:
    with weft.connect(folder, spark=spark) as db:
        db.sql(STREAM)
        push(db, 0)
        db.sql(script(count))
        db._engine.maintain()
        push(db, 200)
        before = jobs(spark)
        push(db, 400)
        batch = jobs(spark) - before
        before = jobs(spark)
        for n in range(0, count, 5):
            for policy in ("partial", "complete", "none"):
                query = db.query(f"q{n}_{policy}")
                query.results()
                query.results(at="2026-01-01T00:05:00Z")
                query.history()
        assert jobs(spark) == before, "reading started a job"
        return batch, parts(db)


def test_a_batch_runs_as_many_jobs_for_many_queries_as_for_few(tmp_path, spark) -> None:
    few, kept = jobs_of_a_batch(tmp_path / "few", spark, 2)
    many, _ = jobs_of_a_batch(tmp_path / "many", spark, 60)
    assert {"derived", "lists", "ready"} <= set(kept)
    assert many == few


def test_what_is_kept_follows_reads_and_density(tmp_path, spark) -> None:
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM)
        push(db, 0)
        db.sql("""
            CREATE CONTINUOUS QUERY sparse AS SELECT k FROM s WHERE v = 7;
            CREATE CONTINUOUS QUERY idle AS SELECT k FROM s WHERE v = 8;
            CREATE CONTINUOUS QUERY dense AS SELECT k FROM s WHERE v > 7;
            CREATE CONTINUOUS QUERY busy AS SELECT v FROM s [RANGE 50 SECONDS] WHERE v > 20
        """)
        db._engine.maintain()
        push(db, 200)
        for name in ("sparse", "dense"):
            db.query(name).results()
        for _ in range(5):
            db.query("busy").results()
        db._engine.maintain()
        assert keeps(db, "sparse").startswith(
            "keeps      list (auto): its rows of event times from"
        )
        assert keeps(db, "sparse").endswith("1.000% of the newest rows satisfies its predicate")
        assert "once per row" in keeps(db, "idle")
        assert "once per row" in keeps(db, "dense")
        assert "window (auto)" in keeps(db, "busy")
        push(db, 400)
        assert db.query("sparse").results().num_rows == 6
        assert db.query("busy").results().num_rows == 50
        kept = parts(db)
        assert (kept["lists"], kept["ready"]) == (2, 50)
        push(db, 600)
        push(db, 800)
        db._engine.maintain()  # nobody read it meanwhile
        assert "once per row" in keeps(db, "busy")
        push(db, 1000)
        assert "ready" not in parts(db)


def test_dropping_frees(tmp_path, spark, monkeypatch) -> None:
    monkeypatch.setenv("WEFT_COMPACT_AFTER", "2")
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM)
        push(db, 0)
        db.sql(script(3))
        db._engine.maintain()
        for first in (200, 400, 600):
            push(db, first)
        assert {"derived", "lists", "ready"} <= set(parts(db))
        names = [f"q{n}_{p}" for n in range(3) for p in ("partial", "complete", "none")]
        for name in names:
            db.sql(f"DROP QUERY {name}")
        assert db.sql("SELECT count(*) AS n FROM weft.classes")["n"].to_pylist() == [0]
        push(db, 800)
        db._engine.maintain()
        left = parts(db)
        assert set(left) == {"rows"}, left
        assert left["rows"] == 1000


def test_rows_and_lists_are_pruned_and_old_tokens_refused(tmp_path, spark) -> None:
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM + " RETAIN 2 MINUTES")
        push(db, 0)
        db.sql(script(2))
        db.sql(
            "CREATE CONTINUOUS QUERY brief AS SELECT v, ts FROM s [RANGE 30 SECONDS] WHERE v > 50"
        )
        for n in range(2):  # whole-stream queries would keep every row
            db.sql(f"DROP QUERY q{n}_partial")
        token = next(change.token for change in db.query("brief").subscribe(follow=False))
        for first in (200, 400, 600, 800):
            push(db, first)
        db._engine.maintain()
        first = db.sql("SELECT min(min_time) AS t FROM weft.segments")["t"].to_pylist()[0]
        assert first > 1_767_225_600_000_000 + 500_000_000, "old files of every part are gone"
        assert db.query("brief").results().num_rows == 30
        assert db.query("brief").results(at="2026-01-01T00:15:00Z").num_rows == 29
        for read in (
            lambda: db.query("brief").results(at="2026-01-01T00:01:00Z"),
            lambda: list(db.query("brief").subscribe(token, follow=False)),
        ):
            with pytest.raises(weft.WeftError) as caught:
                read()
            assert caught.value.code == "WEFT_NOT_RETAINED"


def test_options_are_checked(tmp_path, spark) -> None:
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM)
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT k FROM s")
        db.sql("CREATE CONTINUOUS QUERY n AS SELECT count(*) AS n FROM s")
        for text in (
            "ALTER QUERY q SET (materialize = 'sometimes')",
            "ALTER QUERY q SET (answers = 'often')",
            "ALTER QUERY n SET (materialize = 'none')",
            "ALTER QUERY q SET (colour = 'red')",
            "CREATE CONTINUOUS QUERY m WITH (materialize = 'none') AS SELECT count(*) AS n FROM s",
        ):
            with pytest.raises(weft.WeftError) as caught:
                db.sql(text)
            assert caught.value.code == "WEFT_UNKNOWN_OPTION", text
        with pytest.raises(weft.WeftError, match="nobody"):
            db.sql("ALTER QUERY nobody SET (materialize = 'none')")
