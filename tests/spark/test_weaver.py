"""The weaver on a running stream: samples, learns, changes the plan when that pays, and says so."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

import weft
from weft.engine import weaver
from weft.optimizer.changing import trees_of
from weft.optimizer.weave.adaptive import Policy

START = datetime(2026, 1, 1, tzinfo=UTC)
SPAN = 60  # seconds of event time in a batch
COSTS = {"tree": 200.0, "node": 1.0, "row": 1e-4, "expand": 1e-4, "step": 1e-4, "cell": 1.0}


class Pushed:
    """Rows by second, kept to count windows from."""

    def __init__(self) -> None:
        self.dice = np.random.default_rng(2)
        self.seconds: list[int] = []
        self.keys: list[int] = []
        self.batches = 0

    def batch(self, size: int) -> pa.Table:
        seconds = self.batches * SPAN + np.arange(size) * SPAN // size
        keys = self.dice.integers(0, 200, size)
        self.seconds += seconds.tolist()
        self.keys += keys.tolist()
        self.batches += 1
        start = int(START.timestamp())
        times = pa.array((seconds + start) * 1_000_000, pa.timestamp("us", tz="UTC"))
        return pa.table({"k": pa.array(keys, pa.int32()), "ts": times})

    def expected(self, slide: int) -> Counter:
        """(start, k) → rows, of windows that are closed."""
        first, clock = int(START.timestamp()), max(self.seconds) + int(START.timestamp())
        found: Counter = Counter()
        for second, key in zip(self.seconds, self.keys, strict=True):
            at = (first + second) // slide * slide
            if at + slide <= clock:
                found[at, key] += 1
        return found


def push(db: weft.Database, pushed: Pushed, size: int) -> None:
    db.push("s", pushed.batch(size))
    db.run()


def look(db: weft.Database) -> None:
    """As maintenance does, but without waiting for luck in the background."""
    engine = db._engine
    with engine.lock:
        engine.weaver.look()
        engine.weaver.settle()
        engine.weaver.look()


def check(db: weft.Database, pushed: Pushed) -> None:
    for slide in (7, 11):
        rows = db.query(f"q{slide}").history().to_pylist()
        found = {(int(r["window_start"].timestamp()), r["k"]): r["n"] for r in rows}
        assert found == dict(pushed.expected(slide)), slide


def log(db: weft.Database) -> list[dict]:
    return db.sql("SELECT * FROM weft.weaves").to_pylist()


@pytest.fixture
def db(tmp_path, monkeypatch):
    monkeypatch.setattr(weaver, "LEARN_FROM", 10**9)  # costs as the test gives them
    with weft.connect(tmp_path) as found:
        engine = found._engine
        engine.become_writer()
        with engine.catalog.write() as change:
            change.set_fact("costs", json.dumps(COSTS))
        engine.weaver.policy = Policy(tolerance=0.2, patience=2.0)
        found.sql("CREATE STREAM s (k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        found.sql(
            ";".join(
                f"CREATE CONTINUOUS QUERY q{s} AS SELECT k, count(*) AS n"
                f" FROM s [RANGE {s} SECONDS SLIDE {s} SECONDS] GROUP BY k"
                for s in (7, 11)
            )
        )
        yield found


def trees(db: weft.Database) -> int:
    with db._engine.lock:
        return trees_of([n.node for n in db._engine.batches.network(1).folding()])


def test_a_plan_follows_the_stream_once_and_says_why(db, tmp_path):
    pushed = Pushed()
    for _ in range(4):
        push(db, pushed, 20)
        look(db)
    first = len(log(db))  # guessed rates have given way to measured ones
    assert trees(db) == 1, "of a few rows each makes a cell anyway: one pass over them is best"
    for _ in range(6):
        push(db, pushed, 4000)
    look(db)
    for _ in range(3):
        push(db, pushed, 4000)
    look(db)
    (row,) = log(db)[first:]
    assert "rows a batch 20 → 4,000" in row["why"], row
    assert row["ms_after"] < row["ms_before"] / 1.2
    assert (row["trees_before"], row["trees_after"]) == (1, 2) and trees(db) == 2
    check(db, pushed)
    for size in (3900, 4100, 4000, 4200):
        push(db, pushed, size)
        look(db)
    assert len(log(db)) == first + 1, "it does not flap"
    check(db, pushed)
    told = "\n".join(db.sql("EXPLAIN q7").column("plan").to_pylist())
    assert "groups from a sample; costs measured here" in told
    assert "last change" in told and "rows a batch 20 → 4,000" in told
    routes = db.sql("SELECT * FROM weft.routes ORDER BY from_tick").to_pylist()
    assert {r["to_tick"] for r in routes} >= {row["tick"], None}
    db.close()
    with weft.connect(tmp_path) as again:
        check(again, pushed)
        push(again, pushed, 500)
        check(again, pushed)


def test_a_registration_that_moves_classes_is_in_the_log(db):
    pushed = Pushed()
    push(db, pushed, 50)
    before = len(log(db))
    db.sql(
        "CREATE CONTINUOUS QUERY again AS SELECT k, count(*) AS n"
        " FROM s [RANGE 7 SECONDS SLIDE 7 SECONDS] GROUP BY k HAVING count(*) > 1"
    )
    assert len(log(db)) == before, "its class stands, and nothing moves"
    db.sql(
        "CREATE CONTINUOUS QUERY most AS SELECT k, max(ts) AS at"
        " FROM s [RANGE 7 SECONDS SLIDE 7 SECONDS] GROUP BY k"
    )
    (row,) = log(db)[before:]
    assert row["why"] == "1 query came: most; no node had all that is needed"
    assert "read on from other nodes; 1 node made" in row["what"]
    assert row["stream"] == "s" and row["ms_after"] > 0 and row["ms_before"] > 0
    push(db, pushed, 50)
    check(db, pushed)


def test_a_sample_counts_the_groups_of_any_columns(db):
    pushed = Pushed()
    push(db, pushed, 6000)
    db._engine.weaver.measure(1)
    measures = db._engine.weaver.weaving(1).measures
    node = db._engine.batches.network(1).folding()[0].node
    assert measures.is_measured and measures.rows == 6000
    assert measures.curve(node.dimensions()).at(1e6) == pytest.approx(200, rel=0.02)
    assert len(measures.profile) == 4096


def test_batches_teach_what_work_costs(db, monkeypatch):
    monkeypatch.setattr(weaver, "LEARN_FROM", 2)
    pushed = Pushed()
    for size in (50, 800, 50):
        push(db, pushed, size)
    before = db._engine.weaver.weaving(1).measures.costs
    look(db)
    with db._engine.catalog.read() as view:
        after = weaver.load_costs(view)
    assert after != before and all(getattr(after, name) > 0 for name in after.names())


def test_a_plan_that_is_woven_while_queries_change_is_not_used(db):
    pushed = Pushed()
    push(db, pushed, 30)
    engine = db._engine
    with engine.lock:
        engine.weaver.look()  # begins to weave
    db.sql("DROP QUERY q11")
    with engine.lock:
        engine.weaver.settle()
        engine.weaver.look()
        engine.weaver.settle()
        engine.weaver.look()
    push(db, pushed, 30)
    assert {row["name"] for row in db.sql("SHOW QUERIES").to_pylist()} == {"q7"}
    found = db.query("q7").history().num_rows
    assert found == len(pushed.expected(7))


def test_time_goes_on(db):
    """A switch between two batches with nothing new repeats and loses nothing."""
    pushed = Pushed()
    push(db, pushed, 300)
    for way in ("none", "shared", None, "random:4"):
        with db._engine.lock:
            db._engine.weaver.force(1, way)
        check(db, pushed)
    db.advance("s", START + timedelta(seconds=SPAN * 2))
    pushed.seconds.append(SPAN * 2)
    pushed.keys.append(-1)
    wanted = {k: v for k, v in pushed.expected(7).items() if k[1] != -1}
    rows = db.query("q7").history().to_pylist()
    assert {(int(r["window_start"].timestamp()), r["k"]): r["n"] for r in rows} == wanted
