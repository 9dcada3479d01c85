"""Joins of non-retroactive tables with rows that have lost their arrival are refused, not guessed."""

from __future__ import annotations

import pytest

from weft.errors import Unsupported
from weft.logical.relations import Column, Kind, Relation
from weft.plan.recompute import plan_recompute
from weft.sql.bind import bind
from weft.sql.parse import parse

S = Relation(Kind.STREAM, "s", (Column("k", "STRING"), Column("ts", "TIMESTAMP")), "ts")
T = Relation(Kind.TABLE, "t", (Column("k", "STRING"), Column("c", "STRING")))
R = Relation(Kind.TABLE, "r", (Column("k", "STRING"), Column("c", "STRING")), is_retroactive=True)


class Names:
    def find(self, name: str) -> Relation | None:
        return {"s": S, "t": T, "r": R}.get(name.lower())

    def all(self) -> list[str]:
        return ["s", "t", "r"]


def plan(sql: str):
    return plan_recompute(bind(parse(sql)[0], Names()))


LOST = [
    "SELECT u.k, t.c FROM (SELECT k FROM s UNION ALL SELECT k FROM s) u JOIN t ON t.k = u.k",
    "SELECT u.k, t.c FROM (SELECT DISTINCT k FROM s) u JOIN t ON t.k = u.k",
    "WITH u AS (SELECT DISTINCT k FROM s) SELECT u.k, t.c FROM u JOIN t ON t.k = u.k",
]


@pytest.mark.parametrize("sql", LOST)
def test_rows_without_an_arrival_are_refused(sql: str) -> None:
    with pytest.raises(Unsupported) as raised:
        plan(sql)
    assert raised.value.code == "WEFT_NO_ARRIVAL"


@pytest.mark.parametrize("sql", [sql.replace("JOIN t ON t.", "JOIN r AS t ON t.") for sql in LOST])
def test_a_retroactive_table_does_not_mind(sql: str) -> None:
    plan(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT u.k, t.c FROM (SELECT k, count(*) AS n FROM s GROUP BY k) u JOIN t ON t.k = u.k",
        "SELECT DISTINCT s.k, t.c FROM s JOIN t ON t.k = s.k",
        "SELECT k FROM s UNION ALL SELECT k FROM t",
        "SELECT k, c FROM t",
    ],
)
def test_the_rest_is_planned(sql: str) -> None:
    plan(sql)
