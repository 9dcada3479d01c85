"""Selections: what is one, how it reads in DuckDB's SQL, and what is refused."""

from __future__ import annotations

import pytest

from weft.logical.aggregates import CannotShare
from weft.logical.relations import ARRIVAL, Column, Kind, Relation
from weft.logical.windows import LastRows
from weft.optimizer.codec import dump, load
from weft.plan.recompute import plan_recompute
from weft.plan.select import Selecting, is_selection, select
from weft.sql.bind import bind
from weft.sql.parse import parse

COLUMNS = "k STRING, v INT, x DOUBLE, f FLOAT, m DECIMAL(10,2), b BOOLEAN, d DATE, ts TIMESTAMP"
STREAMS = {
    "s": Relation(
        Kind.STREAM, "s", tuple(Column(*c.split(" ", 1)) for c in COLUMNS.split(", ")), "ts"
    ),
    "u": Relation(Kind.STREAM, "u", (Column("k", "STRING"),), ARRIVAL),
    "t": Relation(Kind.TABLE, "t", (Column("k", "STRING"),)),
}
TYPES = {"UPPER(k)": "string", "LENGTH(k)": "int", "x + 1": "double", "v + 1": "int"}


class Names:
    def find(self, name: str) -> Relation | None:
        return STREAMS.get(name.lower())

    def all(self) -> list[str]:
        return list(STREAMS)


def plan_of(text: str):
    statement = parse(f"CREATE CONTINUOUS QUERY q AS {text}")[0]
    return plan_recompute(bind(statement.select, Names()))


def selected(text: str) -> Selecting:
    return select(
        plan_of(text), 1, lambda asked: TYPES.get(asked.replace("`", ""), "double"), (), "auto"
    )


def where(text: str) -> str:
    return selected(f"SELECT k FROM s WHERE {text}").value.where


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v > 3", '("v" >= 4)'),
        ("v > 3 AND v <= 9", '("v" >= 4 AND "v" < 10)'),
        ("x < 5", "(\"x\" < CAST('5.0' AS DOUBLE))"),
        ("k <= 'it''s'", "(\"k\" <= 'it''s')"),
        ("k > 'a'", "(\"k\" > 'a')"),
        ("k = 'a'", "(\"k\" = 'a')"),
        ("m >= 1.005", "(\"m\" >= CAST('1.01' AS DECIMAL(10,2)))"),
        ("d = '2026-01-02'", "(\"d\" = DATE '2026-01-02')"),
        ("ts >= '1970-01-01 00:00:01'", '("ts" >= make_timestamptz(1000000))'),
        ("k NOT LIKE 'a%'", "((\"k\" NOT LIKE 'a%'))"),
        ("v IN (1, 2)", '(("v" IN (1, 2)))'),
        ("TRUE", "TRUE"),
    ],
)
def test_predicates(text: str, expected: str) -> None:
    assert where(text) == expected


def test_what_only_spark_evaluates_is_derived() -> None:
    found = selected("SELECT upper(k) AS u FROM s WHERE upper(k) > 'B' AND upper(k) <= 'X'")
    assert found.value.derived == found.selection.derived
    (column,) = found.value.derived
    assert (column.expression, column.type) == ("UPPER(k)", "string")
    assert found.selection.outputs[0].sql == f'"{column.column}"'
    other = selected("SELECT k FROM s WHERE upper(k) = 'Q'")
    assert other.value.derived == (column,)  # another constant, the same column


def test_stars_aliases_and_windows() -> None:
    found = selected(
        "SELECT z.*, x + 1 AS y FROM s [ROWS 7] AS z WHERE z.b ORDER BY y LIMIT 5 OFFSET 2"
    )
    shown = [*STREAMS["s"].column_names(), "y", "_weft_sort_0"]  # the sort key is kept for readers
    assert [o.name for o in found.selection.outputs] == shown
    assert found.selection.window == LastRows(7)
    assert (found.selection.limit, found.selection.offset) == (5, 2)
    assert not found.selection.can_be_ready


def test_equal_predicates_are_one_class() -> None:
    one = selected("SELECT k FROM s [RANGE 1 HOUR] WHERE v > 3 AND k = 'a'")
    two = selected("SELECT DISTINCT v FROM s AS z WHERE 'a' = z.k AND NOT z.v <= 3")
    assert one.value.key == two.value.key


def test_a_selection_survives_the_catalog() -> None:
    found = selected("SELECT upper(k) AS u, ts FROM s [SINCE '2026-01-01'] WHERE x > 0.1 OR f = 2")
    assert load(dump(found.selection)) == found.selection
    assert load(dump(found.value)) == found.value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT v + 1 AS w FROM s", "an expression of it may fail"),
        ("SELECT k FROM s WHERE v + 1 > 3", "its WHERE may fail"),
        ("SELECT k FROM s [RANGE 1 HOUR SLIDE 1 HOUR]", "for each window"),
        ("SELECT k FROM s WHERE k IN (SELECT k FROM t)", "more than one source|subquery"),
        ("SELECT s.k FROM s JOIN t ON s.k = t.k", "more than one source"),
        ("SELECT row_number() OVER (ORDER BY v) AS n FROM s", "may fail"),
    ],
)
def test_what_is_recomputed(text: str, reason: str) -> None:
    with pytest.raises(CannotShare, match=reason):
        selected(text)


def test_aggregates_are_no_selections() -> None:
    assert is_selection(plan_of("SELECT k FROM s"))
    assert not is_selection(plan_of("SELECT count(*) AS n FROM s"))
    assert not is_selection(plan_of("SELECT k FROM s UNION ALL SELECT k FROM s"))
