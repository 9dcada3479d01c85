"""Predicates that differ in numbers: made from the numbers, they are what their texts would give."""

from __future__ import annotations

import random

import pytest
from sqlglot import parse_one

from weft.optimizer.factors import factor, filled, slots_of

TYPES = {"t": "tinyint", "i": "int", "l": "bigint", "f": "float", "d": "double",
         "m": "decimal(6,2)", "s": "string", "b": "boolean"}  # fmt: skip
NUMBERS = ("0", "-0", "1", "-1", "7", "007", "127", "128", "-128", "-129", "300", "9999", "10000",
           "16777217", "999999999", "-999999999")  # fmt: skip
OPERATORS = ("<", "<=", ">", ">=", "=")


def type_of(sql: str) -> str:
    return TYPES[sql]


def where(heads: list[str], numbers: list[str]):
    text = " AND ".join(f"{head} {number}" for head, number in zip(heads, numbers, strict=True))
    return parse_one(text, dialect="spark")


def test_numbers_give_what_the_text_gives() -> None:
    rng = random.Random(1)
    for _ in range(150):
        heads = [
            f"{rng.choice(list(TYPES)[:6])} {rng.choice(OPERATORS)}"
            for _ in range(rng.randint(1, 4))
        ]
        first = [rng.choice(NUMBERS) for _ in heads]
        slots = slots_of(where(heads, first), first, type_of)
        for _ in range(20):
            numbers = [rng.choice(NUMBERS) for _ in heads]
            found = factor(where(heads, numbers), type_of)
            assert filled(slots, numbers) == found, (heads, numbers)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("i > 5 OR i < 3", ["5", "3"]),
        ("i <> 5", ["5"]),
        ("i <=> 5", ["5"]),
        ("i > 5 AND b", ["5"]),
        ("i > 5 AND s = 'x = 3'", ["5", "3"]),
        ("s = 5", ["5"]),
        ("5 < i AND l = 3", ["3"]),
        ("i BETWEEN 1 AND 5", []),
    ],
)
def test_what_has_other_parts_is_read(text: str, numbers: list[str]) -> None:
    found = slots_of(parse_one(text, dialect="spark"), numbers, type_of)
    assert found is None
