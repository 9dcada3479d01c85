"""Lazy and eager answers: switchable while running, and alike in what they answer."""

from __future__ import annotations

import weft

BODY = "SELECT k, count(*) AS n, sum(v) AS s FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY k"


def rows(first: int) -> list[dict]:
    return [
        {"k": "ab"[i % 2], "v": i, "ts": f"2026-01-01T00:{(first + i) // 60:02d}:{(first + i) % 60:02d}Z"}
        for i in range(40)
    ]  # fmt: skip


def strategies(db: weft.Database) -> dict[str, str]:
    return {row["name"]: row["strategy"] for row in db.sql("SHOW QUERIES").to_pylist()}


def read(db: weft.Database) -> list[list[str]]:
    """The answer and the history, in an order of our own: the query asks for none."""
    found = db.query("again")
    return [sorted(map(str, t.to_pylist())) for t in (found.results(), found.history())]


def test_a_class_that_is_read_often_is_kept_ready_and_goes_back(tmp_path):
    with weft.connect(tmp_path) as db:
        db.sql("CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        db.sql(f"CREATE CONTINUOUS QUERY auto AS {BODY}; CREATE CONTINUOUS QUERY again AS {BODY}")
        db.push("s", rows(0))
        db.run()
        db._engine.maintain()  # the first look only notes the clock
        assert strategies(db)["auto"] == "shared, lazy"
        db.push("s", rows(40))
        db.run()
        for _ in range(40):
            db.query("auto").results()
        db._engine.maintain()
        assert strategies(db) == {"auto": "shared, eager", "again": "shared, eager"}
        db.push("s", rows(80))
        db.run()
        ready = read(db)
        changes = [(c.kind, c.row, c.at) for c in db.query("again").subscribe()]
        db._engine.reads._counts.clear()
        db._engine.maintain()
        assert strategies(db)["auto"] == "shared, lazy"
        assert read(db) == ready
        assert [(c.kind, c.row, c.at) for c in db.query("again").subscribe()] == changes


def test_a_class_that_somebody_follows_is_kept_ready(tmp_path):
    with weft.connect(tmp_path) as db:
        db.sql("CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        followed = db.sql(f"CREATE CONTINUOUS QUERY auto AS {BODY}")
        db.sql(
            f"CREATE CONTINUOUS QUERY pinned WITH (answers = 'lazy') AS {BODY.replace('20', '30')}"
        )
        for first in (0, 40):
            db.push("s", rows(first))
            db.run()
            for query in (followed, db.query("pinned")):
                told = query.subscribe(follow=True, timeout=0.1)
                assert next(iter(told)).kind == "insert"
            db._engine.maintain()
        assert strategies(db) == {"auto": "shared, eager", "pinned": "shared, lazy"}
        for first in (80, 120):
            db.push("s", rows(first))
            db.run()
            db._engine.maintain()
        assert strategies(db)["auto"] == "shared, lazy"
