"""Queries that share but are finished on Spark: stored like recomputed ones, over shared partials."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import weft
from weft.errors import SqlError

STREAM = """CREATE STREAM s (k STRING, v INT, d DECIMAL(10,2), ts TIMESTAMP,
                             WATERMARK FOR ts AS ts)"""
TUMBLING = "s [RANGE 1 MINUTE SLIDE 1 MINUTE]"
ON_SPARK = {
    "loud": f"SELECT upper(k) AS k, count(*) AS n FROM {TUMBLING} GROUP BY k",
    "louder": f"SELECT upper(k) AS k, sum(v) AS t FROM {TUMBLING} GROUP BY k",
    "top": "SELECT k, sum(v) AS t FROM s GROUP BY k ORDER BY t DESC, k LIMIT 1",
    "kinds": "SELECT DISTINCT count(*) AS n FROM s GROUP BY k",
    "none": "SELECT format_number(sum(v), 1) AS t, count(*) AS n FROM s WHERE v > 1000",
    "open": f"SELECT k, count(*) AS n FROM {TUMBLING} GROUP BY k ORDER BY n DESC, k LIMIT 1 EMIT CHANGES",
    "about": "SELECT approx_count_distinct(v) AS n FROM s",
    "ranked": "SELECT k, rank() OVER (ORDER BY count(*) DESC) AS r FROM s GROUP BY k",
}


def row(time: str, k: str, v: int, d: str = "1.00") -> dict:
    return {"k": k, "v": v, "d": d, "ts": f"2026-01-01T{time}Z"}


def push(db: weft.Database, *rows: dict) -> None:
    db.push("s", list(rows))
    db.run()


FIRST = (row("10:00:10", "a", 1), row("10:00:20", "ß", 5), row("10:01:30", "a", 2))
SECOND = (row("10:01:40", "b", 9), row("10:01:50", "b", 9), row("10:02:10", "b", 1))


def rows(table) -> list[tuple]:
    return sorted(tuple(r.values()) for r in table.to_pylist())


def shown(query: weft.Query) -> list[tuple]:
    """The answer without instants."""
    return [tuple(v for v in r if not hasattr(v, "hour")) for r in rows(query.results())]


def strategies(db: weft.Database) -> dict[str, str]:
    return {r["name"]: r["strategy"] for r in db.sql("SHOW QUERIES").to_pylist()}


def test_they_share_and_are_stored(tmp_path: Path, spark) -> None:
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM)
        push(db, *FIRST)
        script = [f"CREATE CONTINUOUS QUERY {name} AS {text}" for name, text in ON_SPARK.items()]
        db.sql(";".join(script))
        db.sql(
            f"CREATE CONTINUOUS QUERY plain AS SELECT k, count(*) AS n FROM {TUMBLING} GROUP BY k"
        )
        db.sql("""CREATE CONTINUOUS QUERY above AS SELECT sum(n) AS n
                  FROM loud [RANGE 2 MINUTES SLIDE 2 MINUTES]""")
        wanted = dict.fromkeys(ON_SPARK, "shared, finished on Spark") | {"plain": "shared, lazy"}
        assert {n: s for n, s in strategies(db).items() if n in wanted} == wanted
        assert shown(db.query("loud")) == [("A", 1), ("SS", 1)]
        assert shown(db.query("top")) == [("ß", 5)]
        assert shown(db.query("kinds")) == [(1,), (2,)]
        assert shown(db.query("none")) == [(None, 0)]
        assert shown(db.query("open")) == [("a", 1)]
    with weft.connect(tmp_path, spark=spark) as db:
        push(db, *SECOND)
        assert shown(db.query("loud")) == [("A", 1), ("B", 2)]
        assert shown(db.query("louder")) == [("A", 2), ("B", 18)]
        assert shown(db.query("top")) == [("b", 19)]
        assert shown(db.query("kinds")) == [(1,), (2,), (3,)]
        assert shown(db.query("about")) == [(4,)]
        assert shown(db.query("ranked")) == [("a", 2), ("b", 1), ("ß", 3)]
        assert shown(db.query("above")) == [(5,)]
        assert db.query("loud").history().num_rows == 4
        check_past(db)
        check_explained(db)
        for name in ON_SPARK:
            check_changes(db.query(name))
        db.sql(
            f"CREATE OR REPLACE CONTINUOUS QUERY loud AS {ON_SPARK['loud'].replace('upper', 'lower')}"
        )
        assert shown(db.query("loud")) == [("a", 1), ("b", 2)]
        for name in ("above", *ON_SPARK, "plain"):
            db.sql(f"DROP QUERY {name}")
        for relation in ("weft.classes", "weft.routes", "weft.group_topology"):
            assert db.sql(f"SELECT * FROM {relation}").num_rows == 0, relation
        assert db.sql("SELECT owner FROM weft.segments").to_pylist() == [{"owner": "stream:1"}] * 2


def check_past(db: weft.Database) -> None:
    earlier = "2026-01-01T10:01:30Z"
    assert rows(db.query("top").results(at=earlier)) == [("ß", 5)]
    assert {r[2] for r in rows(db.query("loud").results(at=earlier))} == {"A", "SS"}
    assert db.sql("SELECT max(n) AS n FROM loud.history").to_pylist() == [{"n": 2}]


def check_changes(query: weft.Query) -> None:
    left: Counter = Counter()
    for change in query.subscribe(follow=False):
        left[tuple(change.row.values())] += 1 if change.kind == "insert" else -1
        assert min(left.values()) >= 0
    is_windowed = "window_start" in query.columns
    answer = query.history() if is_windowed else query.results()
    assert sorted((+left).elements()) == rows(answer)


def check_explained(db: weft.Database) -> None:
    text = db.query("loud").explain()
    assert "with 3 other queries: louder, open, plain" in text
    assert "is stored, since DuckDB does not compute UPPER(k) exactly as Spark does" in text
    found = json.loads(db.query("top").explain("json"))
    assert found["evaluations"] == 2 and found["rows_out"] == 3
    assert found["shared"]["answers"] == "finished on Spark"
    assert "changes as a whole" in found["shared"]["answers_why"]
    assert "shared, finished on Spark" in db.query("top").explain("mermaid")


def test_one_that_fails_stops_alone(tmp_path: Path, spark) -> None:
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM)
        db.sql(f"""
            CREATE CONTINUOUS QUERY ratio AS SELECT k, sum(d) / sum(v) AS r FROM {TUMBLING} GROUP BY k;
            CREATE CONTINUOUS QUERY loud AS {ON_SPARK["loud"]};
            CREATE CONTINUOUS QUERY standing AS SELECT sum(d) / sum(v) AS r FROM s""")
        push(db, row("10:00:00", "a", 0), row("10:01:00", "a", 1))
        assert shown(db.query("loud")) == [("A", 1)]
        assert [float(r[0]) for r in shown(db.query("standing"))] == [2.0]
        with pytest.raises(SqlError) as failed:
            db.query("ratio").results()
        assert failed.value.code == "WEFT_QUERY_FAILED" and "zero" in failed.value.detail
        assert db.query("ratio").history().num_rows == 0
        push(db, row("10:01:10", "a", -1), row("10:02:00", "b", 0))
        errors = {r["name"]: r["error"] for r in db.sql("SHOW QUERIES").to_pylist()}
        assert errors["loud"] is None and "zero" in errors["ratio"] and "zero" in errors["standing"]
        push(db, row("10:03:00", "a", 4))
        assert [float(r[0]) for r in shown(db.query("standing"))] == [1.25]
        assert shown(db.query("loud")) == [("B", 1)]


def test_one_that_fails_on_what_is_there_is_refused_and_those_before_it_stand(
    tmp_path, spark
) -> None:
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM)
        push(db, row("10:00:00", "a", 0), row("10:01:00", "a", 1))
        with pytest.raises(SqlError) as refused:
            db.sql(f"""
                CREATE CONTINUOUS QUERY loud AS {ON_SPARK["loud"]};
                CREATE CONTINUOUS QUERY ratio AS SELECT sum(d) / sum(v) AS r FROM {TUMBLING};
                CREATE CONTINUOUS QUERY louder AS {ON_SPARK["louder"]}""")
        assert refused.value.code == "WEFT_DATA_ERROR"
        assert db.names() == {"s": "stream", "loud": "query"}
        assert shown(db.query("loud")) == [("A", 1)]


def test_batches_merge_once_for_all_of_them(tmp_path: Path, spark, monkeypatch) -> None:
    """Whatever their number, queries of a batch share one merge; a quiet batch runs nothing."""
    from weft.spark import answers, merged

    counts: Counter = Counter()
    for module, name in ((merged, "assemble"), (answers, "footer_segment")):
        work = getattr(module, name)

        def counted(*given, work=work, name=name):
            counts[name] += 1
            return work(*given)

        monkeypatch.setattr(module, name, counted)
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM)
        script = [f"CREATE CONTINUOUS QUERY {name} AS {text}" for name, text in ON_SPARK.items()]
        db.sql(";".join(script))
        assert counts.pop("assemble") == 1
        push(db, *FIRST)
        assert counts.pop("assemble") == 1
        counts.clear()
        db.advance("s", "2026-01-01T10:01:40Z")  # no window closes, no row is reached
        assert not counts["footer_segment"]
        push(db, *SECOND)
        assert counts["assemble"] == 1


def test_compacted_and_pruned(tmp_path: Path, spark, monkeypatch) -> None:
    """Rows go, partials are summed up to bases, and the answers go on from them."""
    monkeypatch.setenv("WEFT_COMPACT_AFTER", "2")
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(f"{STREAM} RETAIN 1 MINUTE")
        for name in ("top", "kinds", "open"):
            db.sql(f"CREATE CONTINUOUS QUERY {name} AS {ON_SPARK[name]}")
        for day in range(6):
            push(db, row("10:00:00", "ab"[day % 2], day) | {"ts": f"2026-01-0{day + 1}T10:00:00Z"})
            db._engine.maintain()
        assert db.sql("SELECT count(*) AS n FROM s").to_pylist()[0]["n"] < 6
        parts = {r["part"] for r in db.sql("SELECT part FROM weft.segments").to_pylist()}
        assert {"totals", "base"} <= parts
        assert shown(db.query("top")) == [("b", 9)]
        assert shown(db.query("kinds")) == [(3,)]
        assert shown(db.query("open")) == [("b", 1)]
        assert db.query("open").history().num_rows == 6
        check_changes(db.query("top"))
