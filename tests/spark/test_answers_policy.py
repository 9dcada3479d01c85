"""Lazy and eager answers: switchable while running, and alike in what they answer."""

from __future__ import annotations

import pytest

import weft
from weft.errors import SqlError

STREAM = "CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
BODY = "SELECT k, count(*) AS n, sum(v) AS s FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY k"


def rows(first: int) -> list[dict]:
    return [
        {"k": "ab"[i % 2], "v": i, "ts": f"2026-01-01T00:{(first + i) // 60:02d}:{(first + i) % 60:02d}Z"}
        for i in range(40)
    ]  # fmt: skip


def strategies(db: weft.Database) -> dict[str, str]:
    return {row["name"]: row["strategy"] for row in db.sql("SHOW QUERIES").to_pylist()}


def read(db: weft.Database, name: str = "again") -> list[list[str]]:
    """The answer and the history, in an order of our own: the query asks for none."""
    found = db.query(name)
    return [sorted(map(str, t.to_pylist())) for t in (found.results(), found.history())]


def test_a_class_that_is_read_often_is_kept_ready_and_goes_back(tmp_path):
    with weft.connect(tmp_path) as db:
        db.sql(STREAM)
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
        db.sql(STREAM)
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


def told(db: weft.Database, name: str, token: str | None = None) -> list[tuple]:
    return [(c.kind, c.row, c.at) for c in db.query(name).subscribe(token, follow=False)]


def ready(db: weft.Database) -> int:
    """How many segments of windows have been kept ready."""
    found = db.sql("SELECT count(*) AS n FROM weft.segments WHERE part = 'results'")
    return found.to_pylist()[0]["n"]


def alter(db: weft.Database, name: str, answers: str) -> None:
    db.sql(f"ALTER QUERY {name} SET (answers = '{answers}')")


def test_answers_are_switched_and_stay_what_they_are(tmp_path):
    """Beside a query that is never switched: its class is another, its answers are the same."""
    steps = ["eager", "lazy", "auto", "eager", "eager", "lazy"]
    seen: list[tuple] = []
    token = None
    for number, answers in enumerate(steps):
        with weft.connect(tmp_path) as db:  # each step starts the system again
            if number == 0:
                db.sql(STREAM)
                db.sql(f"CREATE CONTINUOUS QUERY q AS {BODY}")
                db.sql(f"CREATE CONTINUOUS QUERY again AS {BODY}")
                other = BODY.replace("GROUP", "WHERE v >= 0 GROUP")
                db.sql(f"CREATE CONTINUOUS QUERY other WITH (answers = 'lazy') AS {other}")
            db.push("s", rows(80 * number))
            db.run()
            before, kept, files = read(db, "q"), told(db, "q"), ready(db)
            alter(db, "q", answers)
            kind = "eager" if answers == "eager" else "lazy"
            assert strategies(db) == {
                "q": f"shared, {kind}", "again": f"shared, {kind}", "other": "shared, lazy",
            }  # fmt: skip
            assert (read(db, "q"), told(db, "q")) == (before, kept)
            db.push("s", rows(80 * number + 40))
            db.run()
            assert (ready(db) > files) == (kind == "eager")
            for name in ("q", "again"):
                assert read(db, name) == read(db, "other")
                assert told(db, name) == told(db, "other")
            following = db.query("q").subscribe(token, follow=False)
            seen += [(c.kind, c.row, c.at) for c in following]
            token = following.token
    assert len(seen) > 80
    with weft.connect(tmp_path) as db:
        assert seen == told(db, "q") == told(db, "other")
        assert read(db, "q") == read(db, "again") == read(db, "other")
        db._engine.maintain()
        assert ready(db) == 0  # nobody is eager any more


def test_a_class_is_eager_while_one_of_its_queries_asks_for_it(tmp_path):
    with weft.connect(tmp_path) as db:
        db.sql(STREAM)
        for name in "abc":
            db.sql(f"CREATE CONTINUOUS QUERY {name} AS {BODY}")
        alter(db, "a", "EAGER")  # before the first row: every window is kept
        assert "every window is merged when it falls due" in db.query("c").explain()
        alter(db, "b", "eager")
        db.push("s", rows(0))
        db.run()
        alter(db, "a", "lazy")
        assert set(strategies(db).values()) == {"shared, eager"}
        assert "every window is merged when it falls due" in db.query("c").explain()
        alter(db, "b", "auto")
        assert set(strategies(db).values()) == {"shared, lazy"}
        db.sql("ALTER QUERY b SET (answers = 'eager', keep = '1 day')")
        assert "windows that end after 2026-01-01T00:00:39Z" in db.query("c").explain()
        assert "keeps      closed windows, for 1 d" in db.query("b").explain()
        db.sql("DROP QUERY b")
        assert set(strategies(db).values()) == {"shared, lazy"}


def test_auto_follows_the_readers_again(tmp_path):
    with weft.connect(tmp_path) as db:
        db.sql(STREAM)
        db.sql(f"CREATE CONTINUOUS QUERY again WITH (answers = 'eager') AS {BODY}")
        for first in (0, 40):
            db.push("s", rows(first))
            db.run()
            db._engine.maintain()
        assert strategies(db) == {"again": "shared, eager"}  # nobody reads, but it is asked for
        alter(db, "again", "auto")
        assert strategies(db) == {"again": "shared, lazy"}
        db.push("s", rows(80))
        db.run()
        for _ in range(40):
            db.query("again").results()
        db._engine.maintain()
        assert strategies(db) == {"again": "shared, eager"}
        alter(db, "again", "auto")  # as it is: what was chosen stays
        assert strategies(db) == {"again": "shared, eager"}


def test_a_class_with_a_sketch_is_eager_unless_it_is_asked_to_be_lazy(tmp_path):
    with weft.connect(tmp_path) as db:
        db.sql(STREAM)
        db.sql(
            "CREATE CONTINUOUS QUERY q AS SELECT approx_count_distinct(v) AS n"
            " FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS]"
        )
        why = "since what its sketches estimate depends on the order of merging"
        assert why in db.query("q").explain()
        for answers, kind in (("lazy", "lazy"), ("auto", "eager"), ("eager", "eager")):
            alter(db, "q", answers)
            assert strategies(db) == {"q": f"shared, {kind}"}
            assert (why in db.query("q").explain()) == (kind == "eager")


UNCHANGED = {
    "total": "SELECT k, count(*) AS n FROM s GROUP BY k",
    "changing": f"{BODY} EMIT CHANGES",
    "on_spark": "SELECT k, format_number(sum(v), 2) AS t FROM s GROUP BY k ORDER BY t LIMIT 1",
    "recomputed": "SELECT k, count(*) AS n, median(v) AS m FROM s [ROWS 10] GROUP BY k",
    "selected": "SELECT k, v FROM s WHERE v > 3",
}


def test_where_create_makes_no_difference_alter_makes_none(tmp_path):
    with weft.connect(tmp_path) as db:
        db.sql(STREAM)
        for name, body in UNCHANGED.items():
            db.sql(f"CREATE CONTINUOUS QUERY {name} WITH (answers = 'lazy') AS {body}")
        known = strategies(db)
        assert len({text.partition(";")[0] for text in known.values()}) >= 4
        for first, answers in ((0, "eager"), (40, "auto"), (80, "lazy")):
            db.push("s", rows(first))
            db.run()
            before = [(read(db, name), told(db, name)) for name in UNCHANGED]
            for name in UNCHANGED:
                alter(db, name, answers)
            assert strategies(db) == known
            assert [(read(db, name), told(db, name)) for name in UNCHANGED] == before
        assert ready(db) == 0


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("ALTER QUERY q SET (answers = 'often')", "WEFT_UNKNOWN_OPTION"),
        ("ALTER QUERY nobody SET (answers = 'eager')", "WEFT_UNKNOWN_QUERY"),
        ("ALTER QUERY s SET (answers = 'eager')", "WEFT_UNKNOWN_QUERY"),
        ("ALTER QUERY q SET (answers = 'eager', materialize = 'none')", "WEFT_UNKNOWN_OPTION"),
        ("ALTER QUERY q SET (answers = 'eager', keep = 'long')", "WEFT_KEEP"),
    ],
)
def test_what_cannot_be_altered_changes_nothing(tmp_path, statement, code):
    with weft.connect(tmp_path) as db:
        db.sql(STREAM)
        db.sql(f"CREATE CONTINUOUS QUERY q AS {BODY}")
        with pytest.raises(SqlError) as refused:
            db.sql(statement)
        assert refused.value.code == code
        assert refused.value.line == 1 or "materialize" in statement
        assert strategies(db) == {"q": "shared, lazy"}


def test_a_running_pipeline_follows_between_two_batches(tmp_path):
    with weft.connect(tmp_path) as db:
        db.sql(STREAM)
        db.sql(f"CREATE CONTINUOUS QUERY q AS {BODY}")
        other = BODY.replace("GROUP", "WHERE v >= 0 GROUP")
        db.sql(f"CREATE CONTINUOUS QUERY other WITH (answers = 'lazy') AS {other}")
        db.start(trigger="100 milliseconds")
        following = db.query("q").subscribe(timeout=60)
        seen: list[tuple] = []
        for number, answers in enumerate(("eager", "lazy", "eager", "auto")):
            db.push("s", rows(400 * number))  # may be in hand while it is switched
            alter(db, "q", answers)
            db.run()
            files = ready(db)
            db.push("s", rows(400 * number + 200))
            db.run()
            assert (ready(db) > files) == (answers == "eager")
            wanted = len(told(db, "other"))
            while len(seen) < wanted:
                change = next(following)
                seen.append((change.kind, change.row, change.at))
        db.stop()
        assert read(db, "q") == read(db, "other")
        assert seen == told(db, "q") == told(db, "other")
