"""Signature columns decide the predicates they were made for, on Spark and on DuckDB."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from sqlglot import parse_one

from random_predicates import COLUMNS, SCHEMA, random_predicate, random_rows
from weft.optimizer.predicates import Predicate, Ranking, factor, signatures
from weft.spark.ranks import is_searched
from weft.spark.signature import with_signature
from weft.sql.dialect import DIALECT

SEEDS = range(300)


@pytest.fixture(scope="module")
def rows(spark):
    data = random_rows(random.Random(2), 1500)
    return spark.createDataFrame(data, SCHEMA).repartition(2).localCheckpoint()


@pytest.fixture(scope="module")
def type_of(rows):
    known = {name: kind.lower() for name, (kind, _, _) in COLUMNS.items()}

    def find(text: str) -> str:
        if text not in known:
            known[text] = rows.selectExpr(text).schema[0].dataType.simpleString()
        return known[text]

    return find


def read(text: str, type_of) -> Predicate:
    return factor(parse_one(text, dialect=DIALECT), type_of)


def test_conditions_equal_predicates(rows, type_of) -> None:
    texts = [random_predicate(random.Random(seed)) for seed in SEEDS]
    predicates = check(rows, texts, type_of)
    kinds = [type(part).__name__ for p in predicates for part in p.factors]
    assert kinds.count("Comparison") > 150 < kinds.count("Bit")


MANY = {  # more constants than a tree of comparisons is made for
    "k": [*range(-3, 20), 126, 127],
    "l": [*range(-3, 20), 2**53 - 2],
    "x": [*range(-3, 20), "0.1", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)", "1e300"],
    "f": [*range(-3, 20), "0.1", "0.5F", "CAST('NaN' AS FLOAT)"],
    "p": [f"{n}.0{n % 3}" for n in range(20)],
    "s": [f"'{c}'" for c in ["a", "", "ä", "𝄞", "z%", *"bcdefghijklmnopq"]],
    "d": [f"DATE '2020-01-{n:02}'" for n in range(1, 21)],
    "ts": [f"TIMESTAMP '2020-01-01 00:00:{n:02}.5'" for n in range(20)] + ["'2020-01-01'"],
    "l % 7": list(range(-9, 12)),
    "l + 0": [2**53, 2**53 + 1, *range(2**62, 2**62 + 18)],  # beyond what a double holds
}


@pytest.mark.parametrize("operator", ["=", "<="])
def test_many_constants(rows, type_of, operator: str) -> None:
    apart = rows.where("l IS NULL OR l < 9223372036854775807")  # l + 0 is evaluated for all rows
    texts = [f"{name} {operator} {c}" for name, constants in MANY.items() for c in constants]
    predicates = check(apart, texts, type_of)
    rankings = [a for a in signatures(predicates).atoms if isinstance(a, Ranking)]
    assert {r.expression: is_searched(r) for r in rankings} == {
        "CAST(f AS DOUBLE)": True,
        **dict.fromkeys(("k", "l", "x", "p", "d", "ts", "l % 7"), True),
        "s": operator == "=",
        "l + 0": False,
    }


def test_an_error_stays_behind_its_guard(rows, type_of) -> None:
    texts = [
        "b <> 0 AND 10 div b > 2",
        "a > 3",
        "u LIKE '2020-%' AND CAST(u AS DATE) > '2019-01-01'",
    ]
    predicates = check(rows, texts, type_of)
    assert [p.may_raise for p in predicates] == [True, False, True]


def test_names_that_need_quotes(spark) -> None:
    rows = spark.range(40).selectExpr("CAST(id AS INT) AS `we ird`", "id AS `date`")
    texts = [f"`we ird` >= {n} AND `Date` < {n * 2}" for n in range(30)]
    check(rows, texts, lambda text: {"`we ird`": "int", "`date`": "bigint"}[text])


def check(rows, texts: list[str], type_of) -> list[Predicate]:
    """Original, canonical form, condition on Spark and condition on DuckDB agree on every row."""
    predicates = [read(text, type_of) for text in texts]
    found = signatures(predicates)
    signed = with_signature(rows, found.atoms)
    assert signed.columns == [*rows.columns, *(atom.column for atom in found.atoms)]
    conditions = [found.conditions[predicate.key].sql for predicate in predicates]
    tests = [f"coalesce({text}, FALSE) AS o{i}" for i, text in enumerate(texts)]
    tests += [f"coalesce({sql}, FALSE) AS c{i}" for i, sql in enumerate(conditions)]
    tests += [
        f"({t}) <=> ({p.text}) AS s{i}"
        for i, (t, p) in enumerate(zip(texts, predicates, strict=True))
    ]
    on_spark = (
        signed.localCheckpoint().selectExpr(*[a.column for a in found.atoms], *tests).toArrow()
    )
    columns = ", ".join(f"coalesce({sql}, FALSE) AS d{i}" for i, sql in enumerate(conditions))
    on_duck = duckdb.sql(f"SELECT {columns} FROM on_spark").to_arrow_table()
    for i, text in enumerate(texts):
        about = f"{text}\n{predicates[i].key}\n{conditions[i]}"
        assert pc.all(on_spark[f"s{i}"]).as_py(), f"another value: {about}"
        assert equal(on_spark[f"c{i}"], on_spark[f"o{i}"]), f"on Spark: {about}"
        assert equal(on_duck[f"d{i}"], on_spark[f"o{i}"]), f"on DuckDB: {about}"
    return predicates


def equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> bool:
    return left.combine_chunks().equals(right.combine_chunks())
