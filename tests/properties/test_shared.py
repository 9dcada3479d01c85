"""Shared aggregation against the oracle: hundreds of queries, at every batch.

Queries come and go midway, answers are lazy and eager, the warehouse is reopened. `WEFT_SHARED=300
WEFT_EXAMPLES=20 pytest tests/properties/test_shared.py` looks longer.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC

import pytest
from shared_oracle import (
    START,
    Drawn,
    Hop,
    Slide,
    Stream,
    bag,
    declare,
    draw_aggregates,
    draw_query,
    give,
    iso,
    plain,
)

import weft

QUERIES = int(os.environ.get("WEFT_SHARED", "60"))
SEEDS = range(int(os.environ.get("WEFT_EXAMPLES", "1")))


@pytest.mark.parametrize("seed", SEEDS)
def test_shared_answers_equal_the_same_sql_over_the_rows(seed, tmp_path):
    rng = random.Random(seed)
    stream, live = Stream(rng), {}
    with weft.connect(tmp_path) as db:
        declare(db)
        register(db, rng, live, QUERIES // 2)
        for _ in range(3):
            step(db, stream, live)
        register(db, rng, live, QUERIES // 4)
        check(db, stream, live)
        drop(db, rng, live, QUERIES // 8)
        step(db, stream, live)
        db._engine.maintain()
        check(db, stream, live)
    with weft.connect(tmp_path) as db:
        check(db, stream, live)
        register(db, rng, live, QUERIES // 4)
        for _ in range(2):
            step(db, stream, live)
            check_instants(db, stream, live)
        check_changes(db, rng, live)


def register(db: weft.Database, rng: random.Random, live: dict[str, Drawn], count: int) -> None:
    drawn = [draw_query(rng, f"q{len(live)}_{i}_{rng.randint(0, 10**6)}") for i in range(count)]
    drawn += [twin(rng, each) for each in rng.sample(drawn, count // 5)]
    names = rng.sample(sorted(live), min(len(live), count // 5))
    drawn += [of_its_class(rng, live[name], len(live)) for name in names]
    db.sql(";\n".join(query.weft() for query in drawn))
    live |= {query.name: query for query in drawn}
    shown = db.sql("SHOW QUERIES").to_pylist()
    unshared = [r for r in shown if r["strategy"][:6] != "shared"]
    slide = {r["name"] for r in unshared if isinstance(live[r["name"]].window, Slide)}
    assert {r["name"] for r in unshared} == slide, unshared[:3]


def of_its_class(rng: random.Random, query: Drawn, number: int) -> Drawn:
    """The same windows and groups as a query that is there already, with other aggregates and
    another policy: of a class that has kept windows ready without them, perhaps."""
    return replace(
        query,
        name=f"{query.name}_{number}",
        aggregates=query.aggregates if query.fails else draw_aggregates(rng, 2, query.is_distinct),
        answers=rng.choice(("auto", "lazy", "eager")),
    )


def twin(rng: random.Random, query: Drawn) -> Drawn:
    """The same question with other aggregates, or emitted otherwise: another class or node."""
    is_hop = isinstance(query.window, Hop)
    return replace(
        query,
        name=f"{query.name}_twin",
        aggregates=query.aggregates if query.fails else draw_aggregates(rng, 2, query.is_distinct),
        emits_changes=is_hop and not query.emits_changes,
    )


def drop(db: weft.Database, rng: random.Random, live: dict[str, Drawn], count: int) -> None:
    for name in rng.sample(sorted(live), count):
        db.sql(f"DROP QUERY {name}")
        del live[name]


def step(db: weft.Database, stream: Stream, live: dict[str, Drawn]) -> None:
    rows = stream.batch()
    if rows:
        give(db, rows)
        db.run()
        stream.take(rows)
    check(db, stream, live)


def check(db: weft.Database, stream: Stream, live: dict[str, Drawn]) -> None:
    duck = stream.connection()
    for name, query in live.items():
        wanted = bag(duck.sql(query.duck(stream.clock)).to_arrow_table())
        found = db.query(name)
        failing = ends(duck, query.failing(stream.clock)) if query.fails else set()
        if failing:
            check_failing(found, query, wanted, failing)
            continue
        if query.is_standing:
            assert bag(found.results()) == wanted, f"{query.weft()} at {stream.clock}"
            continue
        assert bag(found.history()) == wanted, f"history of {query.weft()} at {stream.clock}"
        newest = max((row[1] for row in wanted), default=None)
        last = Counter({row: n for row, n in wanted.items() if row[1] == newest})
        assert bag(found.results()) == last, f"{query.weft()} at {stream.clock}"


def check_instants(db: weft.Database, stream: Stream, live: dict[str, Drawn]) -> None:
    """Aggregates over any window of what is kept: at clocks that an evaluation stood at, between
    them, and before the query was registered."""
    rng = stream.rng
    shown = {r["name"]: r["strategy"] for r in db.sql("SHOW QUERIES").to_pylist()}
    for _ in range(3):
        at = rng.choice((*stream.seen, START + rng.randint(0, stream.clock - START)))
        duck = stream.connection(at)
        for name, query in live.items():
            if isinstance(query.window, Slide) and shown[name] == "shared":
                found = db.query(name).results(at=iso(at))
                wanted = bag(duck.sql(query.duck(at)).to_arrow_table())
                assert bag(found) == wanted, f"{query.weft()} at {at}"


def check_token(rng: random.Random, query: weft.Query) -> None:
    """From any token on come exactly the changes after it."""
    changes = list(query.subscribe(follow=False))
    if changes:
        last = rng.randrange(len(changes))
        again = list(query.subscribe(changes[last].token, follow=False))
        assert [(c.kind, c.row, c.at) for c in again] == [
            (c.kind, c.row, c.at) for c in changes[last + 1 :]
        ]


def ends(duck, sql: str) -> set:
    return {row["e"].astimezone(UTC) for row in duck.sql(sql).to_arrow_table().to_pylist()}


def check_failing(found: weft.Query, query: Drawn, wanted: Counter, failing: set) -> None:
    """Whoever reads an answer that holds a row that fails is told; other windows are as ever."""
    assert refused(found.history), query.weft()
    if query.is_standing:
        assert refused(found.results), query.weft()
        return
    answered = {row[1] for row in wanted}
    if max(failing) >= max(answered | failing):
        assert refused(found.results), query.weft()
    good = sorted(answered - failing)
    if good and not query.emits_changes:
        last = Counter({row: n for row, n in wanted.items() if row[1] == good[-1]})
        assert bag(found.results(at=good[-1])) == last, query.weft()


def refused(work) -> bool:
    try:
        work()
    except weft.WeftError as error:
        return error.code == "WEFT_QUERY_FAILED"
    return False


def check_changes(db: weft.Database, rng: random.Random, live: dict[str, Drawn]) -> None:
    """What is taken back was given, to the last digit; what is left of the changes is the answer."""
    for name, query in live.items():
        found, total = db.query(name), Counter()
        if query.fails and refused(found.history):
            assert refused(lambda found=found: list(found.subscribe(follow=False))), query.weft()
            continue
        for change in found.subscribe(follow=False):
            row = tuple(change.row.values())
            total[row] += 1 if change.kind == "insert" else -1
            assert total[row] >= 0, f"{query.weft()} takes back what it never gave: {row}"
        if isinstance(query.window, Slide):
            check_token(rng, found)
        answer = found.results() if query.is_standing else found.history()
        left = Counter()
        for row, count in total.items():
            left[tuple(map(plain, row))] += count
        assert +left == bag(answer), query.weft()
