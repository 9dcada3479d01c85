"""Which statements are planned together: those that differ in names and constants of WHERE alone."""

from __future__ import annotations

import pytest

from weft.engine.alike import _key
from weft.sql.parse import parse


def key(select: str, name: str = "q", options: str = ""):
    return _key(parse(f"CREATE CONTINUOUS QUERY {name} {options} AS {select}")[0])


ONE = "SELECT a FROM s [RANGE 5 SECONDS] WHERE a > 3 AND b = -7"


@pytest.mark.parametrize(
    "other",
    [
        "SELECT a FROM s [RANGE 5 SECONDS] WHERE a > 14 AND b = 0",
        "SELECT a FROM s [RANGE 5 SECONDS] WHERE a > 999999999 AND b = 1",
    ],
)
def test_one_shape(other: str) -> None:
    assert key(ONE) is not None
    assert key(ONE) == key(other, "another")


@pytest.mark.parametrize(
    "other",
    [
        "SELECT a FROM s [RANGE 6 SECONDS] WHERE a > 3 AND b = -7",  # another window
        "SELECT a > 4 FROM s [RANGE 5 SECONDS] WHERE a > 3 AND b = -7",  # other outputs
        "SELECT a FROM s [RANGE 5 SECONDS] WHERE a > 3.5 AND b = -7",  # another type
        "SELECT a FROM s [RANGE 5 SECONDS] WHERE a > 9999999999 AND b = -7",
        "SELECT a FROM s [RANGE 5 SECONDS] WHERE a >= 3 AND b = -7",
        "SELECT a FROM s [RANGE 5 SECONDS] WHERE a > 3 AND c = -7",
    ],
)
def test_other_shapes(other: str) -> None:
    assert key(other) != key(ONE)


def test_options_are_part_of_a_shape() -> None:
    assert key(ONE, options="WITH (materialize = 'none')") != key(ONE)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM s",
        "SELECT a FROM s WHERE a > 3 ORDER BY a > 5",  # a constant that is no predicate's
        "SELECT a FROM s WHERE a > 3 LIMIT 5",
        "SELECT a FROM s WHERE a = 3 BEGIN NOW - 5 SECONDS END NOW",
        "SELECT a FROM s WHERE a IN (SELECT b FROM t WHERE b = 3)",
        "SELECT ' WHERE a = 3' AS x FROM s",
        "SELECT a, 'x' AS x FROM s WHERE a = 3",
        "SELECT `a` FROM s WHERE a = 3",
    ],
)
def test_what_is_planned_by_itself(text: str) -> None:
    assert key(text) is None
