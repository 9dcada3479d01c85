"""Constants in a predicate: what Spark makes of a literal, where that is certain.

Only spellings whose value is beyond doubt are read; `literal` says None to any other, and the
factor is then evaluated by Spark as it stands. Texts of dates and times are read as in a session in
UTC, which Weft requires of its sessions.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from sqlglot import exp

Value = int | float | Decimal | str

MOST_DIGITS = 38  # of a Spark decimal, and so of a number without exponent
EPOCH = datetime(1970, 1, 1)
DATE = re.compile(r"[1-9]\d{3}-\d\d-\d\d")
INSTANT = re.compile(r"[1-9]\d{3}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?")
LAST_YEAR = "9999"  # left alone, so that a value always has a next one


class Kind(StrEnum):
    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal's value: days and microseconds since 1970 for dates and times."""

    kind: Kind
    value: Value


def same_nan(value: Value | None) -> Value | None:
    """NaN is one object in here, so that equal constants are equal; others stay as they are."""
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def literal(node: exp.Expression) -> Constant | None:
    """The constant that an expression is, if it surely is one."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        return _negative(literal(node.this))
    if isinstance(node, exp.Literal):
        return Constant(Kind.STRING, node.this) if node.is_string else _number(node.this)
    is_cast = isinstance(node, exp.Cast) and not node.args.get("safe")
    inner = literal(node.this) if is_cast else None
    return _cast(inner, node.args["to"]) if inner else None


def days(text: str) -> int | None:
    """Days since 1970 of a text that Spark reads as that date."""
    if not DATE.fullmatch(text) or text.startswith(LAST_YEAR):
        return None
    try:
        return (date.fromisoformat(text) - EPOCH.date()).days
    except ValueError:
        return None


def micros(text: str) -> int | None:
    """Microseconds since 1970, UTC, of a text that Spark reads as that instant."""
    if not INSTANT.fullmatch(text) or text.startswith(LAST_YEAR):
        return None
    try:
        return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)
    except ValueError:
        return None


def _number(text: str) -> Constant | None:
    if "e" in text.lower():
        number = float(text)
        return Constant(Kind.DOUBLE, number) if math.isfinite(number) else None
    number = Decimal(text)
    if len(number.as_tuple().digits) > MOST_DIGITS:
        return None
    return Constant(Kind.INTEGER, int(text)) if text.isdigit() else Constant(Kind.DECIMAL, number)


def _negative(constant: Constant | None) -> Constant | None:
    if constant is None or constant.kind not in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE):
        return None
    return Constant(constant.kind, -constant.value)


def _cast(inner: Constant, target: exp.DataType) -> Constant | None:
    """CAST('2020-01-01' AS DATE), 5L, 1.5D, 2BD and the like: sqlglot writes them all as casts."""
    name = target.sql(dialect="spark").lower()
    if name in ("tinyint", "smallint", "int", "bigint"):
        return inner if inner.kind is Kind.INTEGER and _fits(inner.value, name) else None
    if name in ("double", "float"):
        return _floating(inner, name)
    if name.startswith("decimal"):
        return _decimal(inner, [int(size.name) for size in target.expressions])
    return _time(inner.value, name) if inner.kind is Kind.STRING else None


def _fits(number: int, name: str) -> bool:
    limit = 2 ** {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}[name]
    return -limit <= number < limit


def _floating(inner: Constant, name: str) -> Constant | None:
    if inner.kind is Kind.STRING:
        if inner.value.lower() not in ("nan", "infinity", "-infinity"):
            return None
        return Constant(Kind.DOUBLE, math.nan if inner.value[0] in "nN" else float(inner.value))
    if inner.kind not in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE):
        return None
    number = float(inner.value)
    is_exact = name == "double" or _as_float(number) == number
    return Constant(Kind.DOUBLE, number) if is_exact else None


def _as_float(number: float) -> float | None:
    try:
        return struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return None


def _decimal(inner: Constant, sizes: list[int]) -> Constant | None:
    """A decimal that its declared type holds without rounding."""
    if inner.kind is Kind.STRING and not re.fullmatch(r"-?\d+(\.\d+)?", inner.value):
        return None
    if inner.kind not in (Kind.STRING, Kind.INTEGER, Kind.DECIMAL):
        return None
    number, (precision, scale) = Decimal(inner.value), (*sizes, 0)[:2] if sizes else (10, 0)
    _, digits, exponent = number.as_tuple()
    whole = len(digits) + exponent
    is_exact = -exponent <= scale and whole <= precision - scale
    return Constant(Kind.DECIMAL, number) if is_exact else None


def _time(text: str, name: str) -> Constant | None:
    if name == "date":
        found, kind = days(text), Kind.DATE
    elif name in ("timestamp", "timestamp_ltz"):
        found, kind = micros(text), Kind.TIMESTAMP
    elif name == "timestamp_ntz":
        found, kind = micros(text), Kind.TIMESTAMP_NTZ
    else:
        return None
    return None if found is None else Constant(kind, found)
