"""The Query SteM finds, for each row, the predicates that it satisfies; so does the reading engine."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest
from sqlglot import parse_one

from random_predicates import COLUMNS, SCHEMA, random_predicate, random_rows
from weft.logical.aggregates import BUILT_IN, CannotShare
from weft.logical.relations import Column, Kind, Relation
from weft.logical.windows import WholeStream
from weft.optimizer.factors import EVERYTHING, Predicate, factor
from weft.optimizer.stem import EVERYWHERE, Target, build
from weft.plan.in_duck import RowSql
from weft.plan.recompute import PlannedSource
from weft.plan.terms import Types
from weft.spark.match import TARGET, match
from weft.sql.dialect import DIALECT

SEEDS = range(400)
ROWS = 600


@pytest.fixture(scope="module")
def rows(spark):
    data = [(i, *row) for i, row in enumerate(random_rows(random.Random(5), ROWS))]
    made = spark.createDataFrame(data, f"id INT, {SCHEMA}")
    made = made.selectExpr("*", "timestamp_micros(id) AS _weft_time")
    return made.repartition(2).localCheckpoint()


@pytest.fixture(scope="module")
def types(rows) -> Types:
    columns = tuple(Column(name, kind) for name, (kind, _, _) in COLUMNS.items())
    relation = Relation(Kind.STREAM, "s", columns, "ts")

    def ask(text: str) -> str:
        return rows.selectExpr(text).schema[0].dataType.simpleString()

    return Types(PlannedSource(_Source(relation)), ask, BUILT_IN)


class _Source:
    window = WholeStream()

    def __init__(self, relation: Relation) -> None:
        self.relation = relation


@pytest.fixture(scope="module")
def predicates(types) -> list[tuple[str, Predicate]]:
    texts = [random_predicate(random.Random(seed)) for seed in SEEDS]
    return [(t, factor(parse_one(t, dialect=DIALECT), types.of_text)) for t in texts]


@pytest.fixture(scope="module")
def wanted(rows, predicates) -> dict[int, set[int]]:
    """The rows of each predicate, as Spark evaluates it by itself."""
    found: dict[int, set[int]] = {i: set() for i in range(len(predicates))}
    for first in range(0, len(predicates), 50):
        part = predicates[first : first + 50]
        tests = [f"coalesce({text}, FALSE) AS t{i}" for i, (text, _) in enumerate(part)]
        for row in rows.selectExpr("id", *tests).collect():
            for i in range(len(part)):
                if row[i + 1]:
                    found[first + i].add(row[0])
    return found


def matched(rows, targets: list[Target]) -> dict[int, Counter]:
    found: dict[int, Counter] = {t.id: Counter() for t in targets}
    for row in match(rows, build(targets)).select(TARGET, "id").collect():
        found[row[0]][row[1]] += 1
    return found


def test_a_row_finds_each_predicate_that_it_satisfies_once(rows, predicates, wanted) -> None:
    targets = [Target(i, predicate) for i, (_, predicate) in enumerate(predicates)]
    found = matched(rows, targets)
    for i, (text, _) in enumerate(predicates):
        assert found[i] == Counter(wanted[i]), text


def test_thousands_of_constants(rows, types) -> None:
    rng, targets, expected = random.Random(3), [], {}
    data = rows.select("id", "a", "x").collect()
    for i in range(2000):
        low, width = rng.randint(-2000, 2000) / 4, rng.choice((0, 1, 7, 600))
        text = f"x >= {low} AND x <= {low + width}" if i % 3 else f"a = {rng.randint(-5, 9)}"
        targets.append(Target(i, factor(parse_one(text, dialect=DIALECT), types.of_text)))
        expected[i] = {row.id for row in data if _holds(text, row)}
    stem = build(targets)
    assert len(stem.rankings) == 3 and not stem.has_everywhere  # points of x have one of their own
    assert len(stem.entries) < 2000 * 60
    found = matched(rows, targets)
    assert {i: set(rows) for i, rows in found.items()} == expected


def _holds(text: str, row) -> bool:
    if text.startswith("a"):
        return row.a == int(text[4:])
    low, high = (float(part[5:]) for part in text.split(" AND "))
    return row.x is not None and low <= row.x <= high


def test_times_and_predicates_without_a_range(rows, types, predicates, wanted) -> None:
    like = next(i for i, (_, p) in enumerate(predicates) if not _ranged(p) and p.factors)
    targets = [Target(0, EVERYTHING, 10, 19), Target(1, predicates[like][1], None, 99)]
    stem = build(targets)
    assert all(entry.key == EVERYWHERE for entry in stem.entries)
    found = matched(rows, targets)
    assert set(found[0]) == set(range(10, 20))
    assert set(found[1]) == {i for i in wanted[like] if i < 100}


def _ranged(predicate: Predicate) -> bool:
    return any(not hasattr(part, "column") for part in predicate.factors)


def test_the_reading_engine_decides_predicates_as_spark_does(
    rows, types, predicates, wanted
) -> None:
    connection = duckdb.connect(":memory:")
    connection.execute("SET TimeZone = 'UTC'")
    said = []
    for i, (_, predicate) in enumerate(predicates):
        sql = RowSql(types)
        try:
            said.append((i, sql.where(predicate), tuple(sql.derived)))
        except CannotShare:
            continue
    assert len(said) > 0.8 * len(predicates)
    assert 0.05 < sum(bool(derived) for _, _, derived in said) / len(said) < 0.6
    derived = {d: None for _, _, columns in said for d in columns}
    shown = [f"{d.expression} AS {d.column}" for d in derived]
    table = rows.selectExpr("*", *shown).toArrow()
    connection.register("r", table)
    for i, where, _ in said:
        found = {row for (row,) in connection.sql(f"SELECT id FROM r WHERE {where}").fetchall()}
        assert found == wanted[i], (predicates[i][0], where)
