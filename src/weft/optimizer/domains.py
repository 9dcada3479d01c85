"""Types whose values are ranked, and where a constant stands among them.

Every such type has a next value for each value: integers and decimals of fixed scale, days and
microseconds, doubles (the next representable one; NaN follows infinity), strings in byte order (the
same string and a zero byte). So each comparison with a constant is a half-open interval,

    x >= c: [c, ∞)   x > c: [next c, ∞)   x < c: (-∞, c)   x <= c: (-∞, next c)
    x = c: [c, next c)

and one kind of cut, "x >= c", decides all of them. A constant between two values is rounded up: for
an INT, x < 5.5 is x < 6. Sound because Spark compares the accepted pairs of types exactly, or
rounds the constant to the expression's type as here. Pairs of which this cannot be said (BIGINT
with DOUBLE, STRING with a number, collated strings) are not accepted and are evaluated by Spark as
they stand.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta
from decimal import Context, Decimal
from enum import IntEnum
from fractions import Fraction

from sqlglot import exp

from weft.optimizer.literals import (
    EPOCH,
    MOST_DIGITS,
    Constant,
    Kind,
    Value,
    days,
    micros,
    same_nan,
)

WIDE = Context(prec=80)  # more digits than any Spark decimal has: nothing is rounded here


class Beyond(IntEnum):
    """Where a constant stands that no value of the type reaches."""

    BOTTOM = -1
    TOP = 1


Place = Value | Beyond


class Domain(ABC):
    """A type in which values are compared."""

    type: str  # as Spark writes it in DDL

    @abstractmethod
    def value(self, constant: Constant) -> Value | None:
        """The constant as Spark compares it with this type; None where that is not certain."""

    def ceiling(self, value: Value) -> Place:
        """The smallest value of the type that is >= the constant."""
        return value

    @abstractmethod
    def above(self, value: Value) -> Place:
        """The smallest value of the type that is > the constant."""

    @abstractmethod
    def literal(self, value: Value) -> str:
        """Spark SQL for a value of the type."""

    def order(self, value: Value) -> object:
        return value


def domain_of(spark_type: str) -> Domain | None:
    """How a type is ranked; None where it is not."""
    name = spark_type.strip().lower()
    if name in Integers.BITS:
        return Integers(name)
    if match := re.fullmatch(r"decimal\((\d+), ?(\d+)\)", name):
        return Decimals(int(match[1]), int(match[2]))
    simple = {"float": Doubles, "double": Doubles, "string": Strings, "date": Days}
    if name in simple:
        return simple[name]()
    if name in ("timestamp", "timestamp_ltz", "timestamp_ntz"):
        return Instants(name.removesuffix("_ltz"))
    return None


@dataclass(frozen=True)
class Integers(Domain):
    """TINYINT to BIGINT. Not BIGINT with DOUBLE: Spark would round the column."""

    type: str

    BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}  # noqa: RUF012
    EXACT = MOST_DIGITS - 20  # digits of a decimal beside a BIGINT's 20

    def value(self, constant: Constant) -> Value | None:
        if constant.kind is Kind.INTEGER:
            return constant.value
        if constant.kind is Kind.DECIMAL:
            return constant.value if sum(_digits(constant.value)) <= self.EXACT else None
        return constant.value if constant.kind is Kind.DOUBLE and self.type != "bigint" else None

    def ceiling(self, value: Value) -> Place:
        return self._clamp(math.ceil(value)) if _is_finite(value) else _far(value)

    def above(self, value: Value) -> Place:
        return self._clamp(math.floor(value) + 1) if _is_finite(value) else _far(value)

    def _clamp(self, number: int) -> Place:
        largest = 2 ** (self.BITS[self.type] - 1) - 1
        if number > largest:
            return Beyond.TOP
        return number if number > -largest - 1 else Beyond.BOTTOM

    def literal(self, value: Value) -> str:
        return f"{value}L" if self.type == "bigint" else str(value)


@dataclass(frozen=True)
class Decimals(Domain):
    """DECIMAL(p, s): Spark compares in the wider decimal, exactly while that has 38 digits."""

    precision: int
    scale: int

    @property
    def type(self) -> str:
        return f"decimal({self.precision},{self.scale})"

    def value(self, constant: Constant) -> Value | None:
        if constant.kind is Kind.INTEGER:
            whole, fraction = 20, 0
        elif constant.kind is Kind.DECIMAL:
            whole, fraction = _digits(constant.value)
        else:
            return None
        wider = max(self.precision - self.scale, whole) + max(self.scale, fraction)
        return Decimal(constant.value) if wider <= MOST_DIGITS else None

    def ceiling(self, value: Value) -> Place:
        return self._place(math.ceil(Fraction(value) * 10**self.scale))

    def above(self, value: Value) -> Place:
        return self._place(math.floor(Fraction(value) * 10**self.scale) + 1)

    def _place(self, units: int) -> Place:
        largest = 10**self.precision - 1
        if units > largest:
            return Beyond.TOP
        return Decimal(units).scaleb(-self.scale, WIDE) if units > -largest else Beyond.BOTTOM

    def literal(self, value: Value) -> str:
        return f"{value:f}BD"


@dataclass(frozen=True)
class Doubles(Domain):
    """DOUBLE, and FLOAT as Spark compares it with any constant: in DOUBLE."""

    type: str = "double"

    def value(self, constant: Constant) -> Value | None:
        is_number = constant.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE)
        return _double(constant.value) if is_number else None

    def ceiling(self, value: Value) -> Place:
        return Beyond.BOTTOM if value == -math.inf else value

    def above(self, value: Value) -> Place:
        if math.isnan(value):
            return Beyond.TOP
        return math.nan if value == math.inf else _double(math.nextafter(value, math.inf))

    def literal(self, value: Value) -> str:
        return f"{value!r}D" if math.isfinite(value) else f"CAST('{_far_name(value)}' AS DOUBLE)"

    def order(self, value: Value) -> object:
        return (True, 0.0) if math.isnan(value) else (False, value)


@dataclass(frozen=True)
class Strings(Domain):
    """STRING in Spark's default collation: the order of its UTF-8 bytes."""

    type: str = "string"

    def value(self, constant: Constant) -> Value | None:
        return constant.value if constant.kind is Kind.STRING else None

    def above(self, value: Value) -> Place:
        return value + "\0"

    def literal(self, value: Value) -> str:
        return exp.Literal.string(value).sql(dialect="spark")

    def order(self, value: Value) -> object:
        return value.encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class Days(Domain):
    """DATE, as days since 1970; a text beside it is cast to a date."""

    type: str = "date"

    def value(self, constant: Constant) -> Value | None:
        if constant.kind is Kind.STRING:
            return days(constant.value)
        return constant.value if constant.kind is Kind.DATE else None

    def above(self, value: Value) -> Place:
        return value + 1

    def literal(self, value: Value) -> str:
        return f"DATE'{EPOCH.date() + timedelta(days=value)}'"


@dataclass(frozen=True)
class Instants(Domain):
    """TIMESTAMP and TIMESTAMP_NTZ, as microseconds since 1970 in UTC, the session's time zone."""

    type: str

    DAY = 86_400_000_000

    def value(self, constant: Constant) -> Value | None:
        if constant.kind is Kind.STRING:
            return micros(constant.value)
        if constant.kind is Kind.DATE:
            return constant.value * self.DAY
        return constant.value if constant.kind.value == self.type else None

    def above(self, value: Value) -> Place:
        return value + 1

    def literal(self, value: Value) -> str:
        return f"{self.type.upper()}'{EPOCH + timedelta(microseconds=value)}'"


def _digits(number: Decimal) -> tuple[int, int]:
    """How many digits stand before and after the point."""
    _, digits, exponent = number.as_tuple()
    return max(0, len(digits) + exponent), max(0, -exponent)


def _is_finite(number: Value) -> bool:
    return not isinstance(number, float) or math.isfinite(number)


def _far(number: float) -> Place:
    return Beyond.BOTTOM if number == -math.inf else Beyond.TOP


def _far_name(number: float) -> str:
    return "NaN" if math.isnan(number) else ("Infinity" if number > 0 else "-Infinity")


def _double(value: Value) -> float:
    """-0.0 becomes 0.0, which equals it."""
    return same_nan(float(value) + 0.0)
