"""Answers do not depend on the plan: it is drawn at random, changed midway, and taken up again.

The oracle of test_shared.py, with the weave plan forced to something else between batches, across
registrations and a reopened warehouse. `WEFT_EXAMPLES=20 pytest tests/properties/test_plan_answers.py`
looks longer.
"""

from __future__ import annotations

import os
import random

import pytest
from shared_oracle import Stream, declare, taken_files
from test_shared import check, check_changes, drop, register, step

import weft

QUERIES = int(os.environ.get("WEFT_SHARED", "32"))
SEEDS = range(int(os.environ.get("WEFT_EXAMPLES", "1")))


def plans(rng: random.Random) -> list[str | None]:
    """Each way to plan once, in any order, with several random ones."""
    found = ["none", "shared", "paper", None, *(f"random:{rng.randint(0, 99)}" for _ in range(2))]
    rng.shuffle(found)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_are_the_same_whatever_the_plan(seed, tmp_path, monkeypatch):
    """Over a source whose files are taken as they lie, where every row of a batch counts."""
    monkeypatch.setenv("WEFT_TAKE_ROWS", "1")
    rng = random.Random(f"plans {seed}")
    stream, live, ways = Stream(rng), {}, plans(random.Random(seed))
    with weft.connect(tmp_path) as db:
        declare(db, tmp_path / "in")
        db._engine.weaver.forced = ways[0]
        register(db, rng, live, QUERIES // 2)
        step(db, stream, live)
        for way in ways[1:4]:
            force(db, way)
            step(db, stream, live)
        register(db, rng, live, QUERIES // 4)  # after the plan was changed
        step(db, stream, live)
        assert taken_files(db), "no batch without late rows"
        db._engine.maintain()
        check(db, stream, live)
    with weft.connect(tmp_path) as db:
        check(db, stream, live)
        force(db, ways[4])
        step(db, stream, live)
        drop(db, rng, live, QUERIES // 8)
        force(db, ways[5])
        register(db, rng, live, QUERIES // 8)
        step(db, stream, live)
        force(db, None)
        step(db, stream, live)
        check_changes(db, rng, live)
        log = db.sql("SELECT why FROM weft.weaves").column("why").to_pylist()
        assert any(why.startswith("forced") for why in log)
        assert all(why.startswith("forced") or " came: " in why for why in log), log


def test_answers_are_the_same_where_trees_are_fed_by_finer_ones(tmp_path):
    """Factor windows wherever they can be: coarser trees, and a base that nobody reads."""
    rng = random.Random("fed")
    stream, live = Stream(rng), {}
    with weft.connect(tmp_path) as db:
        declare(db)
        register(db, rng, live, QUERIES // 2)
        step(db, stream, live)
        force(db, "shared")
        step(db, stream, live)
        force(db, "fed")
        assert fed_nodes(db), "no node is computed from one with finer panes"
        for _ in range(2):
            step(db, stream, live)
        register(db, rng, live, QUERIES // 8)  # filled from the rows, fed from then on
        step(db, stream, live)
        check_changes(db, rng, live)


def fed_nodes(db: weft.Database) -> list[int]:
    nodes = db._engine.batches.network(1).nodes
    return [
        n.id
        for n in nodes.values()
        if n.parent_id in nodes and nodes[n.parent_id].node.panes != n.node.panes
    ]


def force(db: weft.Database, way: str | None) -> None:
    with db._engine.catalog.read() as view:
        (found,) = view.streams()
    with db._engine.lock:
        db._engine.weaver.force(found.id, way)
