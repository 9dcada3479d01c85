"""Walking a select block, and update patterns."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from weft.plan.blocks import (
    add_condition,
    from_items,
    hide_from_stars,
    is_aggregated,
    is_global_aggregate,
    own_nodes,
)


def select(sql: str) -> exp.Select:
    return parse_one(sql, dialect="spark")


@pytest.mark.parametrize(
    ("sql", "aggregated", "one_row"),
    [
        ("SELECT a FROM t", False, False),
        ("SELECT count(*) FROM t", True, True),
        ("SELECT 1 + max(a) FROM t", True, True),
        ("SELECT a FROM t GROUP BY a", True, False),
        ("SELECT 1 FROM t HAVING count(*) > 1", True, True),
        ("SELECT count(*) OVER () FROM t", False, False),
        ("SELECT sum(count(*)) OVER () FROM t", True, True),
        ("SELECT count(*) FILTER (WHERE a > 1) FROM t", True, True),
        ("SELECT first(a) IGNORE NULLS FROM t", True, True),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t", True, True),
        ("SELECT bit_xor(a) FROM t", True, True),
        ("SELECT (SELECT count(*) FROM u) FROM t", False, False),
        ("SELECT a FROM t WHERE a > (SELECT max(a) FROM u)", False, False),
    ],
)
def test_what_is_an_aggregate(sql, aggregated, one_row) -> None:
    assert is_aggregated(select(sql)) is aggregated
    assert is_global_aggregate(select(sql)) is one_row


def test_from_items_come_in_order() -> None:
    items = from_items(select("SELECT 1 FROM a, b LEFT JOIN c ON true CROSS JOIN (SELECT 1) d"))
    assert [item.alias_or_name for item, _ in items] == ["a", "b", "c", "d"]
    assert items[0][1] is None


def test_own_nodes_leave_nested_queries_alone() -> None:
    names = {n.name for n in own_nodes(select("SELECT a, (SELECT b FROM u) FROM t WHERE c IN (SELECT d FROM v)")) if isinstance(n, exp.Column)}  # fmt: skip
    assert names == {"a", "c"}


def test_conditions_keep_what_was_there() -> None:
    block = select("SELECT a FROM t WHERE a = 1 OR a = 2")
    add_condition(block, exp.condition("b = 3"))
    assert block.sql("spark") == "SELECT a FROM t WHERE (a = 1 OR a = 2) AND b = 3"


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("SELECT * FROM t", "SELECT * EXCEPT (`t`.`h`) FROM t"),
        ("SELECT t.* FROM t", "SELECT t.* EXCEPT (`h`) FROM t"),
        ("SELECT u.* FROM t CROSS JOIN u", "SELECT u.* FROM t CROSS JOIN u"),
        ("SELECT count(*) FROM t", "SELECT COUNT(*) FROM t"),
        ("SELECT hash(*) AS x FROM t", "SELECT HASH(* EXCEPT (`t`.`h`)) AS x FROM t"),
        ("SELECT count(DISTINCT *) FROM t", "SELECT COUNT(DISTINCT * EXCEPT (`t`.`h`)) FROM t"),
        (
            "SELECT a FROM t WHERE a IN (SELECT * FROM v)",
            "SELECT a FROM t WHERE a IN (SELECT * FROM v)",
        ),
    ],
)
def test_helpers_do_not_show_in_stars(sql, shown) -> None:
    block = select(sql)
    hide_from_stars(block, {"t": ["h"]})
    assert block.sql("spark") == shown
