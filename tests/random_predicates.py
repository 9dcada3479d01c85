"""Random predicates and rows at the edges of their constants, for several test folders.

Drawn from a `random.Random`, so that Hypothesis (st.randoms) and plain seeds both can drive it. No
predicate raises an error on any of the rows.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal

NUMBERS = ["-1", "0", "1", "2", "3", "5", "5.5", "2.50", "-0.5", "1e0", "2.5e0", "7L", "3D", "100"]
COLUMNS: dict[str, tuple[str, list[object], list[str]]] = {  # type, values of rows, constants
    "k": ("TINYINT", [-128, -1, 0, 1, 2, 3, 5, 6, 100, 127],
          [*NUMBERS, "127", "-128", "300", "127.5"]),
    "a": ("INT", [-(2**31), -1, 0, 1, 2, 3, 4, 5, 6, 7, 2**31 - 1],
          [*NUMBERS, "2147483647", "1e10"]),
    "b": ("INT", [-5, 0, 1, 2, 3, 5, 8], NUMBERS),
    "l": ("BIGINT", [-(2**63), -1, 0, 1, 2, 3, 5, 2**53, 2**53 + 1, 2**63 - 1],
          [*NUMBERS, "9007199254740992", "9007199254740993", "9223372036854775807", "1e19"]),
    "f": ("FLOAT", [-math.inf, -1.0, -0.0, 0.0, 0.1, 0.5, 1.0, 2.5, 3.0, 1e30, math.inf, math.nan],
          [*NUMBERS, "0.1", "0.1e0", "0.5F", "CAST('NaN' AS FLOAT)", "16777217"]),
    "x": ("DOUBLE", [-math.inf, -1.5, -0.0, 0.0, 0.1, 1.0, 2.5, 5.5, 1e300, math.inf, math.nan],
          [*NUMBERS, "0.1", "-0.0e0", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)",
           "CAST('-Infinity' AS DOUBLE)"]),
    "y": ("DOUBLE", [-2.0, -0.0, 0.0, 1.0, 2.5, 1e10, math.nan], NUMBERS),
    "p": ("DECIMAL(10,2)", [Decimal(v) for v in ("-1.50", "0.00", "1.00", "1.01", "2.50", "5.50")],
          ["0", "1", "1.005", "1.01", "2.5", "2.50BD", "5.501", "99999999999", "1.5e0"]),
    "s": ("STRING", ["", "a", "a\0", "aa", "ab", "b", "ä", "z%", "𝄞", "\uffff", "A"],
          ["'a'", "'aa'", "'b'", "''", "'ä'", "'A'", "'nowhere'", "'it\\'s'", "'𝄞'"]),
    "u": ("STRING", ["a", "b", "ab", "2020-01-01"], ["'a'", "'b'", "'ab'", "'2020-01-01'"]),
    "d": ("DATE", [dt.date(2019, 12, 31), dt.date(2020, 1, 1), dt.date(2020, 1, 2),
                   dt.date(1600, 1, 1)],
          ["'2020-01-01'", "DATE '2020-01-01'", "DATE'2020-01-02'", "'1999-05-05'"]),
    "ts": ("TIMESTAMP", [dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=m)
                         for m in (-1, 0, 1, 1_500_000, 86_400_000_000)],
           ["'2020-01-01'", "DATE '2020-01-01'", "TIMESTAMP '2020-01-01 00:00:00'",
            "'2020-01-01 00:00:01.5'", "TIMESTAMP'2020-01-02 00:00:00'"]),
    "g": ("BOOLEAN", [True, False], ["TRUE", "FALSE"]),
}  # fmt: skip
SCHEMA = ", ".join(f"{name} {kind}" for name, (kind, _, _) in COLUMNS.items())
OPERATORS = ["<", "<=", ">", ">=", "=", "<>", "<=>", "==", "!="]
FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
OPPOSITE = {
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "=": "<>",
    "<>": "=",
    "==": "!=",
    "!=": "==",
}
PATTERNS = ["a%", "%b", "_", "%a%", "", "2020-%"]


def random_rows(rng: random.Random, count: int) -> list[tuple[object, ...]]:
    """Rows of every column's values, a tenth of them NULL."""
    return [
        tuple(None if rng.random() < 0.1 else rng.choice(v) for _, v, _ in COLUMNS.values())
        for _ in range(count)
    ]


def random_predicate(rng: random.Random, depth: int = 2, columns: tuple[str, ...] = ()) -> str:
    """A predicate in Spark SQL, of AND, OR and NOT over simple ones."""
    names = columns or tuple(COLUMNS)
    shape = rng.randrange(6) if depth else 0  # 0, the simplest, is what Hypothesis shrinks to
    if 2 <= shape <= 5:
        joint = " AND " if shape <= 4 else " OR "
        parts = [random_predicate(rng, depth - 1, names) for _ in range(rng.choice([2, 2, 3]))]
        return joint.join(f"({part})" for part in parts)
    if shape == 1:
        return f"NOT ({random_predicate(rng, depth - 1, names)})"
    return _simple(rng, names)


def _simple(rng: random.Random, names: tuple[str, ...]) -> str:
    name = rng.choice(names)
    kind, _, constants = COLUMNS[name]
    some = [rng.choice(constants) for _ in range(3)]
    shape = rng.randrange(14)
    if kind == "BOOLEAN":
        return rng.choice([name, f"NOT {name}", f"{name} IS TRUE", f"{name} = {some[0]}"])
    if shape <= 5:
        return compare(rng, name, rng.choice(OPERATORS), some[0])
    if shape == 6:
        return f"{name} {rng.choice(['', 'NOT '])}BETWEEN {some[0]} AND {some[1]}"
    if shape == 7:
        return f"{name} {rng.choice(['', 'NOT '])}IN ({', '.join(some[: rng.choice([1, 2, 3])])})"
    if shape == 8:
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    if shape == 9 and kind == "STRING":
        return f"{name} {rng.choice(['', 'NOT '])}LIKE '{rng.choice(PATTERNS)}'"
    return _between_columns(rng, names, name, kind)


def _between_columns(rng: random.Random, names: tuple[str, ...], name: str, kind: str) -> str:
    others = [n for n in names if COLUMNS[n][0] == kind and n != name]
    operator = rng.choice(OPERATORS)
    if kind == "DOUBLE":
        constant = rng.choice(NUMBERS)
        return rng.choice([
            compare(rng, f"{name} * 2 + y", operator, constant),
            compare(rng, f"(y + {name}) * {name}", operator, constant),
            compare(rng, f"coalesce({name}, 1)", operator, constant),
        ])  # fmt: skip
    if kind == "STRING":
        return compare(rng, f"upper({name})", operator, rng.choice(["'A'", "'B'", "'AB'"]))
    if others:
        return compare(rng, name, operator, rng.choice(others))
    return compare(rng, f"CASE WHEN {name} IS NULL THEN 1 ELSE 2 END", operator, "2")


def compare(rng: random.Random, left: str, operator: str, right: str) -> str:
    """A comparison in one of its spellings."""
    if operator in OPPOSITE and rng.random() > 0.8:
        return f"NOT ({compare(rng, left, OPPOSITE[operator], right)})"
    if rng.random() > 0.7:
        return f"{right} {FLIPPED.get(operator, operator)} {left}"
    return f"{left} {operator} {right}"
