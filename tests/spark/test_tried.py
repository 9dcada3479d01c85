"""The law of expressions that may fail: on each row, what Spark raises and what it gives."""

from __future__ import annotations

import itertools
import math

import pytest
from sqlglot import parse_one

from weft.logical.relations import Column, Kind, Relation
from weft.logical.tried import NotTried, tried
from weft.spark.problems import is_data_problem
from weft.spark.register import Analyses

COLUMNS = {
    "a": "INT",
    "b": "INT",
    "t": "STRING",
    "d": "DECIMAL(38,10)",
    "x": "DOUBLE",
    "n": "BIGINT",
}
LARGEST = 2**31 - 1
VALUES = {
    "a": ("NULL", 0, 3, LARGEST, -LARGEST - 1),
    "b": ("NULL", 0, -1, LARGEST),
    "t": ("NULL", "'12'", "'x'"),
    "d": ("NULL", "0", "9999999999999999999999999999.5"),
    "x": ("NULL", "double('NaN')", "1e300", "2.5", "0.0"),
    "n": ("NULL", 2**63 - 1, "'-9223372036854775808'"),
}
EXPRESSIONS = (
    "a + b", "a - b", "a * 2", "-a", "-n", "n + 1", "a / b", "a % b", "x / b", "x % x", "d * d",
    "d / b", "d + a", "-d", "CAST(t AS INT)", "CAST(t AS DATE)", "CAST(t AS DECIMAL(3,2))",
    "CAST(t AS BOOLEAN)", "CAST(x AS INT)", "CAST(a AS SMALLINT)", "CAST(d AS INT)",
    "CAST(n AS INT)", "CAST(n AS DECIMAL(5,0))", "a + b * 2", "b * 2 + a", "(a * b) / b",
    "b / (a * b)", "(a + 1) / (b + 1)", "CAST(t AS INT) + a", "x * (a + b)", "(a + b) + x",
    "a / b > 1", "1 < a * b", "NOT a / b > 1", "a / b IS NULL", "b + a IS NOT NULL",
    "CAST(a + b AS DOUBLE)", "CAST(a * b AS BIGINT)", "CAST(a + b AS STRING)",
    "upper(CAST(a * 2 AS STRING))", "CASE WHEN b <> 0 THEN a / b END",
    "CASE WHEN b > 0 THEN a + b WHEN a = 0 THEN a / b ELSE a * 2 END", "IF(a > 0, a + b, -a)",
    "CASE WHEN b <> 0 THEN a / b END + a",
)  # fmt: skip
UNTRIED = ("d + a", "CASE WHEN b <> 0 THEN a / b END", "CASE WHEN b <> 0 THEN a / b END + a")
LEFT_ALONE = (
    "coalesce(a / b, 0)", "b <> 0 AND a / b > 1", "CASE WHEN a / b > 1 THEN 1 END", "a div b",
    "CAST(x AS DECIMAL(10,2))", "CASE a / b WHEN 1 THEN 2 END", "a / b IN (1, 2)", "sqrt(a / b)",
    "nullif(a / b, 1)", "t + 1", "t > 1", "date_add(CAST(t AS DATE), a)",
)  # fmt: skip


@pytest.fixture(scope="module")
def type_of(spark):
    columns = tuple(Column(name, kind) for name, kind in COLUMNS.items())
    return Analyses(spark).type_of(Relation(Kind.STREAM, "s", columns, None))


def rows_for(text: str) -> list[dict]:
    used = [name for name in COLUMNS if f"`{name}`" in text]
    return [
        dict(zip(used, values, strict=True))
        for values in itertools.product(*(VALUES[name] for name in used))
    ]


def relation(rows: list[dict]) -> str:
    shown = [
        ", ".join(f"CAST({value} AS {COLUMNS[name]})" for name, value in row.items())
        for row in rows
    ]
    return f"VALUES {', '.join(f'({values})' for values in shown)} AS r({', '.join(rows[0])})"


def told(spark, text: str, row: dict) -> tuple[bool, object]:
    """Whether Spark raises an error for one row, and what it gives if not."""
    try:
        return False, plain(spark.sql(f"SELECT {text} AS v FROM {relation([row])}").collect()[0].v)
    except Exception as error:
        assert is_data_problem(error), error
        return True, None


def plain(value: object) -> object:
    return "nan" if isinstance(value, float) and math.isnan(value) else value


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_fails_where_spark_does_and_gives_what_spark_gives(text: str, spark, type_of) -> None:
    node = parse_one(text, dialect="spark").transform(quoted)
    found = tried(node, type_of)
    rows, sql = rows_for(node.sql(dialect="spark")), node.sql(dialect="spark")
    value = found.value.sql(dialect="spark")
    fails = "FALSE" if found.fails is None else found.fails.sql(dialect="spark")
    made = spark.sql(f"SELECT {fails} AS f, {value} AS v FROM {relation(rows)}")
    assert type_of(value) == type_of(sql)
    got = made.collect()
    wanted = [told(spark, sql, row) for row in rows]
    for row, (f, v), (raises, w) in zip(rows, got, wanted, strict=True):
        assert f is raises, f"{text} on {row}: {fails}"
        assert raises or plain(v) == w, f"{text} on {row}: {value}"
    is_tried = any(raises for raises, _ in wanted)
    assert is_tried or found.fails is None or text in UNTRIED, "no row tries it"


def quoted(node):
    from sqlglot import exp

    return exp.column(node.name, quoted=True) if isinstance(node, exp.Column) else node


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_what_is_evaluated_on_some_rows_only_is_left_alone(text: str, type_of) -> None:
    with pytest.raises(NotTried):
        tried(parse_one(text, dialect="spark"), type_of)


def test_spellings_meet(type_of) -> None:
    one, other = (
        tried(parse_one(t, dialect="spark"), type_of) for t in ("a * 2 + b", "b + (2 * a)")
    )
    assert one.value == other.value
