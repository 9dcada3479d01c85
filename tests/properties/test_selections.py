"""Selections against the oracle: after every step, at any instant, and change by change.

Queries come and go between batches, with every policy; lists, derived columns, pruned and merged
files, and a warehouse that is reopened. `WEFT_SELECTIONS=2000 pytest
tests/properties/test_selections.py` looks longer.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from select_oracle import Drawn, Model, draw_query
from shared_oracle import SECOND, START, Stream, bag, declare, give, iso, plain, taken_files

import weft
from weft.engine import selecting
from weft.results import density

QUERIES = int(os.environ.get("WEFT_SELECTIONS", "100"))
SEEDS = range(int(os.environ.get("WEFT_EXAMPLES", "1")))


@pytest.fixture(autouse=True)
def eager_choices(monkeypatch):
    """Lists for what is not that sparse, files merged soon: the rarer paths are taken here."""
    monkeypatch.setattr(selecting, "SPARSE", 0.3)
    monkeypatch.setattr(selecting, "COPIES", 1e9)
    monkeypatch.setattr(density, "FEWEST", 1)
    monkeypatch.setenv("WEFT_COMPACT_AFTER", "3")


@pytest.mark.parametrize("seed", SEEDS)
def test_selections_equal_the_same_sql_over_the_window(seed, tmp_path):
    run_through(random.Random(seed), tmp_path, None, QUERIES)


def test_selections_over_rows_taken_as_they_lie(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_TAKE_ROWS", "1")
    run_through(random.Random("taken"), tmp_path, tmp_path / "in", QUERIES // 3)


def run_through(rng: random.Random, tmp_path: Path, folder: Path | None, count: int) -> None:
    source, model = Stream(rng), Model()
    with weft.connect(tmp_path) as db:
        declare(db, folder)
        register(db, rng, model, count // 4)
        for _ in range(2):
            step(db, rng, source, model)
        register(db, rng, model, count // 2)
        check(db, rng, model)
        db._engine.maintain()
        for _ in range(2):
            step(db, rng, source, model)
        drop(db, rng, model, count // 8)
        switch(db, rng, model, count // 8)
        step(db, rng, source, model)
        beat(db, rng, model)
        db._engine.maintain()
        check(db, rng, model)
        kept = db.sql("SELECT DISTINCT strategy FROM weft.queries")["strategy"].to_pylist()
        assert {"selected, once per row", "selected, list", "selected, window"} <= set(kept), kept
        parts = db.sql("SELECT DISTINCT part FROM weft.segments")["part"].to_pylist()
        assert {"rows", "derived", "lists", "ready"} <= set(parts), parts
        assert folder is None or taken_files(db), "no batch without late rows"
    with weft.connect(tmp_path) as db:
        check(db, rng, model)
        register(db, rng, model, count // 4)
        for _ in range(2):
            step(db, rng, source, model)
        check_changes(db, rng, model)


def register(db: weft.Database, rng: random.Random, model: Model, count: int) -> None:
    names = [f"q{len(model.clocks)}_{i}_{rng.randint(0, 10**6)}" for i in range(count)]
    drawn = [draw_query(rng, name) for name in names]
    drawn += [alike(rng, each) for each in rng.sample(drawn, count // 4)]
    db.sql(";\n".join(query.weft() for query in drawn))
    model.register(drawn)
    shown = db.sql("SHOW QUERIES").to_pylist()
    others = [
        (r["strategy"], r["statement"])
        for r in shown
        if not r["strategy"].startswith(("selected", "shared"))
    ]
    assert not others, others[:3]


def alike(rng: random.Random, query: Drawn) -> Drawn:
    """The same query with other whole numbers in its comparisons: planned by the first one's shape."""
    text = re.sub(r"([<>=] )\d+\b(?!\.)", lambda m: f"{m[1]}{rng.randint(0, 9)}", query.predicate)
    return replace(query, name=f"{query.name}_alike", predicate=text)


def drop(db: weft.Database, rng: random.Random, model: Model, count: int) -> None:
    for name in rng.sample(sorted(model.live), count):
        db.sql(f"DROP QUERY {name}")
        del model.live[name]


def switch(db: weft.Database, rng: random.Random, model: Model, count: int) -> None:
    shown = db.sql("SHOW QUERIES").to_pylist()
    names = sorted(r["name"] for r in shown if r["strategy"].startswith("selected"))
    for name in rng.sample(names, count):
        policy = rng.choice(("auto", "none", "partial", "complete"))
        db.sql(f"ALTER QUERY {name} SET (materialize = '{policy}')")


def step(db: weft.Database, rng: random.Random, source: Stream, model: Model) -> None:
    rows = source.batch()
    if rows:
        give(db, rows)
        db.run()
        model.take(rows)
    check(db, rng, model)


def beat(db: weft.Database, rng: random.Random, model: Model) -> None:
    instant = (model.clock or START) + rng.randint(1, 20) * SECOND
    db.advance("s", iso(instant))
    model.beat(instant)
    check(db, rng, model)


def check(db: weft.Database, rng: random.Random, model: Model) -> None:
    duck = model.connection()
    clocks = [c for c in model.clocks if c is not None]
    for name, each in model.live.items():
        text, query = each.query.weft(), db.query(name)
        assert bag(query.results()) == each.answers[-1][1], f"{text} at {model.clock}"
        if not clocks or rng.random() > 0.3:
            continue
        for instant in (rng.choice(clocks), rng.randint(clocks[0] - SECOND, clocks[-1] + SECOND)):
            found = bag(query.results(at=iso(instant)))
            assert found == model.at(duck, name, instant), f"{text} at {instant}"


def check_changes(db: weft.Database, rng: random.Random, model: Model) -> None:
    """The history is what the answers of all evaluations differ in; so is what a token leaves."""
    for name, each in model.live.items():
        text, query = each.query.weft(), db.query(name)
        found = Counter()
        for row in query.history().to_pylist():
            when, kind = row.pop("changed_at"), row.pop("change")
            micros = round(when.timestamp() * SECOND)
            found[micros, kind, tuple(plain(value) for value in row.values())] += 1
        assert found == model.changes(name), f"changes of {text}"
        changes = list(query.subscribe(follow=False))
        assert len(changes) == sum(found.values()), text
        if changes:
            place = rng.randrange(len(changes))
            rest = list(query.subscribe(changes[place].token, follow=False))
            told = [(c.kind, c.at, c.token, *map(plain, c.row.values())) for c in rest]
            wanted = changes[place + 1 :]
            assert told == [(c.kind, c.at, c.token, *map(plain, c.row.values())) for c in wanted], (
                text
            )
