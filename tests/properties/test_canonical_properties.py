"""Canonical form keeps the value of every predicate on every row, and meets its re-spellings.

Checked on DuckDB, which shares Spark's three-valued logic and order of doubles (NaN largest); the
same predicates run on Spark in tests/spark/test_signature.py.
"""

from __future__ import annotations

import random

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from random_predicates import COLUMNS, random_predicate, random_rows
from weft.logical.canonical import canonical, canonical_text
from weft.sql.dialect import DIALECT

# DuckDB compares these with constants as Spark does; FLOAT it does not widen to DOUBLE.
SHARED = ("k", "a", "b", "l", "x", "y", "p", "s", "u", "g")


@pytest.fixture(scope="module")
def rows() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    columns = ", ".join(f"{name} {COLUMNS[name][0]}" for name in SHARED)
    connection.execute(f"CREATE TABLE rows ({columns})")
    places = [list(COLUMNS).index(name) for name in SHARED]
    data = [[row[i] for i in places] for row in random_rows(random.Random(1), 400)]
    connection.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * len(SHARED))})", data)
    return connection


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False))
def test_same_value_on_every_row(rows: duckdb.DuckDBPyConnection, rng: random.Random) -> None:
    tree = parse_one(random_predicate(rng, columns=SHARED), dialect=DIALECT)
    form = canonical(tree)
    duck, duck_form = (each.sql(dialect="duckdb") for each in (tree, form))
    query = f"SELECT * FROM rows WHERE ({duck}) IS DISTINCT FROM ({duck_form})"
    assert rows.sql(query).fetchall() == [], f"{tree.sql(DIALECT)}\n{form.sql(DIALECT)}"


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False))
def test_its_text_reads_back_as_itself(rng: random.Random) -> None:
    text = canonical_text(parse_one(random_predicate(rng, depth=3), dialect=DIALECT))
    assert canonical_text(parse_one(text, dialect=DIALECT)) == text


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False))
def test_respelled_predicates_meet(rng: random.Random) -> None:
    tree = parse_one(random_predicate(rng), dialect=DIALECT)
    other = respelled(tree, rng)
    assert canonical_text(other) == canonical_text(tree), other.sql(dialect="spark")


def respelled(node: exp.Expression, rng: random.Random) -> exp.Expression:
    """The same predicate, written in another way at random."""
    node = node.unnest()
    if isinstance(node, exp.And | exp.Or):
        dual = exp.Or if isinstance(node, exp.And) else exp.And
        sides = [respelled(side, rng) for side in (node.this, node.expression)]
        rng.shuffle(sides)
        if rng.random() > 0.7:  # De Morgan
            inner = dual(**dict(zip(("this", "expression"), map(negated, sides), strict=True)))
            return negated(inner)
        doubled = rng.choice([sides[0], exp.and_(sides[0], sides[0])])
        return type(node)(this=exp.Paren(this=doubled), expression=exp.Paren(this=sides[1]))
    if rng.random() > 0.8:
        return negated(negated(node))
    if isinstance(node, exp.Not):
        return negated(respelled(node.this, rng))
    return exp.Paren(this=node) if rng.random() > 0.7 else node.copy()


def negated(node: exp.Expression) -> exp.Expression:
    return exp.Not(this=exp.Paren(this=node.copy()))
