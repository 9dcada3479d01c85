"""Factors, atoms and conditions, as values."""

from __future__ import annotations

import math

import pytest
from sqlglot import parse_one

from weft.optimizer import codec
from weft.optimizer.atoms import Bit, Ranking
from weft.optimizer.predicates import Predicate, condition_over, extend, factor, signatures
from weft.sql.dialect import DIALECT

TYPES = {"a": "int", "b": "int", "l": "bigint", "x": "double", "f": "float", "p": "decimal(10,2)",
         "s": "string", "c": "string collate UNICODE_CI", "d": "date", "ts": "timestamp",
         "n": "timestamp_ntz", "a / b": "double", "a + b": "int", "x + 1": "double",
         "CAST(s AS INT)": "int", "LENGTH(s)": "int"}  # fmt: skip


def read(text: str) -> Predicate:
    return factor(parse_one(text, dialect=DIALECT), lambda t: TYPES[t])


SAME = [
    ("a < 5 AND b = 1", "1 = b AND NOT a >= 5"),
    ("a > 5 AND a <= 9", "a BETWEEN 6 AND 9"),
    ("a > 5.5", "a >= 6"),
    ("a < 5.5e0", "a <= 5"),
    ("a >= 3 AND a <= 3", "a = 3"),
    ("a <=> 3", "a = 3L"),
    ("a = 2.5", "a > 7 AND a < 2"),  # never
    ("a IS NOT NULL AND a > 5", "a > 5"),
    ("a < 3000000000", "a IS NOT NULL"),
    ("x = 0", "x = -0.0e0"),
    ("x >= 5", "x >= 5.00"),
    ("p > 1.005", "p >= 1.01"),
    ("d >= '2020-01-01'", "d > DATE '2019-12-31'"),
    ("ts = '2020-01-01'", "ts = TIMESTAMP '2020-01-01 00:00:00'"),
    ("TRUE", "1 < 2 OR TRUE"),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_same_predicate(left: str, right: str) -> None:
    assert read(left).key == read(right).key


@pytest.mark.parametrize(
    ("text", "factors"),
    [
        ("s > 'm'", ["Comparison"]),
        ("x + 1 > 2 AND LENGTH(s) = 3", ["Comparison", "Comparison"]),
        ("l < 1e3", ["Bit"]),  # Spark rounds the column
        ("l < 1.5", ["Comparison"]),
        ("c = 'x'", ["Bit"]),  # another order of strings
        ("s = 5", ["Bit"]),
        ("n = TIMESTAMP '2020-01-01 00:00:00'", ["Bit"]),
        ("d = '2020-1-1'", ["Bit"]),
        ("p < 1e0", ["Bit"]),
        ("a < b", ["Bit"]),
        ("a < 1 OR a > 5", ["Bit"]),
        ("a IN (1, 2)", ["Bit"]),
        ("a <> 1", ["Bit"]),
        ("s LIKE 'a%' AND a = 1", ["Comparison", "Bit"]),
        ("a IS NULL", ["Bit"]),
        ("TRUE", []),
    ],
)
def test_factors(text: str, factors: list[str]) -> None:
    assert [type(part).__name__ for part in read(text).factors] == factors


def test_what_may_raise_stands_behind_the_rest() -> None:
    guarded = read("a / b > 2 AND b <> 0 AND x > 1")
    assert guarded.may_raise
    assert guarded.factors == (Bit("CASE WHEN b <> 0 AND x > 1 THEN (a / b) > 2 ELSE FALSE END"),)
    assert read("a + b > 2").may_raise
    assert not read("x + 1 > 2 AND a > 1").may_raise
    assert read("CAST(s AS INT) = 1 AND LENGTH(s) = 1").factors == (
        Bit("CASE WHEN LENGTH(s) = 1 THEN CAST(s AS INT) = 1 ELSE FALSE END"),
    )


def test_no_predicate() -> None:
    assert factor(None, str).key == "TRUE"
    assert signatures([factor(None, str)]).conditions["TRUE"].sql == "TRUE"


def test_conditions_are_ranges_of_ranks() -> None:
    texts = ["a < 5", "a BETWEEN 5 AND 9", "a > 20", "a = 7", "s LIKE 'x%' AND a >= 5"]
    predicates = [read(text) for text in texts]
    found = signatures(predicates)
    cuts, points, _bit = found.atoms
    assert isinstance(cuts, Ranking) and cuts.cuts == (5, 10, 21)
    assert isinstance(points, Ranking) and points.cuts == (7,) and points.is_points
    c, p, b = (atom.column for atom in found.atoms)
    assert (c[:2], p[:2], b[:2]) == ("r_", "r_", "b_")
    assert [found.conditions[each.key].sql for each in predicates] == [
        f"{c} = 0",
        f"{c} = 1",
        f"{c} = 3",
        f"{p} = 1",
        f"{c} BETWEEN 1 AND 3 AND {b}",
    ]
    last = found.conditions[predicates[-1].key]
    assert (last.ranges, last.bits, last.columns) == (((c, 1, 3),), (b,), frozenset([b, c]))


def test_extend_keeps_what_suffices() -> None:
    atoms = signatures([read("a < 5 AND x > 1"), read("a > 20 AND s LIKE 'y'")]).atoms
    inside = read("a >= 5 AND a <= 20")
    assert condition_over(atoms, inside) is not None
    assert extend(atoms, [inside]).atoms == atoms
    new = read("a < 6 AND x > 1")
    assert condition_over(atoms, new) is None
    wider = extend(atoms, [new])
    assert len(wider.atoms) == len(atoms)
    assert len(set(wider.atoms) & set(atoms)) == len(atoms) - 1  # the ranking of a is another
    assert condition_over(wider.atoms, inside) is not None


def test_an_equality_is_answered_by_cuts_too() -> None:
    atoms = signatures([read("a >= 5"), read("a < 6")]).atoms
    assert condition_over(atoms, read("a = 5")) is not None
    assert condition_over(atoms, read("a = 6")) is None
    assert condition_over(signatures([read("a = 5")]).atoms, read("a >= 5")) is None


def test_atoms_survive_the_catalog() -> None:
    texts = ["x = CAST('NaN' AS DOUBLE)", "x <= CAST('Infinity' AS DOUBLE)", "p > 1.5", "s > 'it'",
             "ts > '2020-01-01'", "d = '2020-01-01'", "a = 3", "a IS NULL", "f < 0.1"]  # fmt: skip
    atoms = signatures([read(text) for text in texts]).atoms
    again = [codec.load(codec.dump(atom)) for atom in atoms]
    assert again == list(atoms)
    assert [a.column for a in again] == [a.column for a in atoms]
    assert any(isinstance(a, Ranking) and any(c is math.nan for c in a.cuts) for a in again)


def test_thousands_of_predicates() -> None:
    predicates = [read(f"a >= {n} AND s = 'sym{n}'") for n in range(2000)]
    found = signatures(predicates)
    assert [len(atom.cuts) for atom in found.atoms] == [2000, 2000]
    assert len(found.conditions) == 2000
