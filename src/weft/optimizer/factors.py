"""From a WHERE clause to factors: comparisons with constants, and everything else as bits.

A factor is a top-level conjunct of the canonical form; nothing is multiplied out, so a predicate
has at most as many factors as it has conjuncts. Comparisons of one expression meet in one interval,
so `a > 5 AND a <= 9` on an INT and `a BETWEEN 6 AND 9` are the same predicate.

What may raise an error (weft.logical.total) is evaluated only where the predicate's other factors
hold: one bit `CASE WHEN <the others> THEN <it> ELSE FALSE END`. Alone it has nothing to stand
behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from weft.logical.canonical import canonical, conjoin, conjuncts, is_constant, text_of
from weft.logical.total import TypeOf, is_total
from weft.optimizer.atoms import Bit
from weft.optimizer.domains import Domain, domain_of
from weft.optimizer.intervals import Interval, intersect, interval, is_point
from weft.optimizer.literals import Constant, Kind, Value, literal

OPERATORS = (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)


@dataclass(frozen=True)
class Comparison:
    """An expression's value lies in an interval between constants."""

    expression: str  # canonical Spark SQL
    type: str  # in which it is compared
    interval: Interval

    @cached_property
    def is_point(self) -> bool:
        return is_point(self._domain, self.interval)

    @cached_property
    def constants(self) -> tuple[Value, ...]:
        """What a ranking needs: the point, or the ends of the interval."""
        return self.interval.cuts()[:1] if self.is_point else self.interval.cuts()

    @property
    def sql(self) -> str:
        write, low, high = self._domain.literal, self.interval.low, self.interval.high
        if self.is_point:
            return f"{self.expression} = {write(low)}"
        tests = [f"{self.expression} >= {write(low)}"] if low is not None else []
        tests += [f"{self.expression} < {write(high)}"] if high is not None else []
        return " AND ".join(tests)

    @property
    def _domain(self) -> Domain:
        domain = domain_of(self.type)
        assert domain is not None
        return domain


Factor = Comparison | Bit


@dataclass(frozen=True)
class Predicate:
    """A WHERE clause: a row is in iff every factor is TRUE."""

    key: str  # equal for predicates that are one: the factors as Spark SQL, constants normalised
    text: str  # canonical text of the clause, to show
    factors: tuple[Factor, ...]
    may_raise: bool = False  # evaluating it can raise an ANSI error on some row

    def __hash__(self) -> int:
        return hash(self.key)


EVERYTHING = Predicate("TRUE", "TRUE", ())


def factor(where: exp.Expression | None, type_of: TypeOf) -> Predicate:
    """The factors of a condition over a stream's bare columns."""
    if where is None:
        return EVERYTHING
    form = canonical(where)
    parts = [part for part in conjuncts(form) if part != exp.true()]
    safe = [part for part in parts if is_safe(part, type_of)]
    risky = [part for part in parts if part not in safe]
    if risky and len(parts) > 1:
        parts = [_guarded(safe, risky)]
    return _predicate(_factors(parts, type_of), text_of(form), bool(risky))


def _predicate(factors: tuple[Factor, ...], text: str, may_raise: bool = False) -> Predicate:
    keys = sorted(part.sql if isinstance(part, Comparison) else f"({part.key})" for part in factors)
    return Predicate(" AND ".join(keys) or "TRUE", text, factors, may_raise)


def is_safe(part: exp.Expression, type_of: TypeOf) -> bool:
    """Also a constant that Spark casts once, for all rows: ts >= '2020-01-01'."""
    is_compared = _compared(part, type_of) is not None
    return is_total(part.this if is_compared else part, type_of)


def _guarded(safe: list[exp.Expression], risky: list[exp.Expression]) -> exp.Expression:
    """One condition that implies all the others."""
    if not safe:
        return exp.Paren(this=conjoin(risky))
    return exp.Case(ifs=[exp.If(this=conjoin(safe), true=conjoin(risky))], default=exp.false())


def _factors(parts: list[exp.Expression], type_of: TypeOf) -> tuple[Factor, ...]:
    ranges: dict[tuple[str, Domain], Interval] = {}
    bits: list[Bit] = []
    for part in parts:
        found = _compared(part, type_of)
        if found is None:
            bits.append(Bit(text_of(part.unnest())))
            continue
        _narrow(ranges, *found)
    return _met(ranges, bits)


def _narrow(
    ranges: dict[tuple[str, Domain], Interval], subject: str, domain: Domain, values: Interval
) -> None:
    before = ranges.get((subject, domain), Interval())
    ranges[subject, domain] = intersect(domain, before, values)


def _met(ranges: dict[tuple[str, Domain], Interval], bits: list[Bit]) -> tuple[Factor, ...]:
    if any(values.is_empty for values in ranges.values()):
        return (Bit("FALSE"),)
    comparisons = [_comparison(*subject, values) for subject, values in ranges.items()]
    return (*comparisons, *_without_implied(bits, comparisons))


def _comparison(subject: str, domain: Domain, values: Interval) -> Factor:
    if values == Interval():  # every value there is
        return Bit(f"NOT {subject} IS NULL")
    return Comparison(subject, domain.type, values)


def _without_implied(bits: list[Bit], comparisons: list[Factor]) -> list[Bit]:
    """`x IS NOT NULL` says nothing beside a comparison of x."""
    implied = {Bit(f"NOT {c.expression} IS NULL") for c in comparisons if isinstance(c, Comparison)}
    return [bit for bit in dict.fromkeys(bits) if bit not in implied]


def _compared(part: exp.Expression, type_of: TypeOf) -> tuple[str, Domain, Interval] | None:
    """The expression, its domain and its interval, if the part compares it with a constant."""
    if not isinstance(part, OPERATORS) or is_constant(part.this):
        return None
    constant = literal(part.expression)
    if constant is None:
        return None
    subject = part.this.unnest()
    spark_type = type_of(text_of(subject)).strip().lower()
    domain = domain_of(spark_type)
    value = domain.value(constant) if domain else None
    if domain is None or value is None:
        return None
    operator = exp.EQ if isinstance(part, exp.NullSafeEQ) else type(part)
    if spark_type == "float":
        subject = exp.cast(subject.copy(), "double", dialect="spark")
    return text_of(exp.Paren(this=subject).unnest()), domain, interval(domain, operator, value)


# --- predicates that differ in numbers ----------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A comparison with a whole number, but for the number."""

    head: str  # canonical text before the number
    subject: str
    domain: Domain
    operator: type[exp.Expression]


def slots_of(
    where: exp.Expression, numbers: Sequence[str], type_of: TypeOf
) -> tuple[Slot, ...] | None:
    """The comparisons of which a conjunction consists, each with the number that stands at its place
    in the text; None: it has other parts."""
    parts, found = conjuncts(where), []
    if len(parts) != len(numbers):
        return None
    for part, number in zip(parts, map(_spelled, numbers), strict=True):
        form = canonical(part)
        compared = _compared(form, type_of)
        is_plain = isinstance(form, OPERATORS) and not isinstance(form, exp.NullSafeEQ)
        if compared is None or not is_plain or not is_safe(form, type_of):
            return None
        if text_of(form.expression) != number:
            return None
        found.append(Slot(text_of(form).removesuffix(number), *compared[:2], type(form)))
    return tuple(found)


def filled(slots: Sequence[Slot], numbers: Sequence[str]) -> Predicate | None:
    """The predicate that `factor` makes of these comparisons with other numbers, made without a tree."""
    named: dict[tuple[bool, str], tuple[Slot, Value]] = {}
    for slot, number in zip(slots, map(_spelled, numbers), strict=True):
        value = slot.domain.value(Constant(Kind.INTEGER, int(number)))
        if value is None:
            return None
        named[number.startswith("-"), slot.head + number] = slot, value  # as canonical form sorts
    ranges: dict[tuple[str, Domain], Interval] = {}
    for _, (slot, value) in sorted(named.items(), key=lambda item: item[0]):
        _narrow(ranges, slot.subject, slot.domain, interval(slot.domain, slot.operator, value))
    return _predicate(_met(ranges, []), " AND ".join(text for _, text in sorted(named)))


def _spelled(number: str) -> str:
    """A whole number in canonical form: without leading zeros, but with its sign, also of zero."""
    digits = str(abs(int(number)))
    return f"-{digits}" if number.startswith("-") else digits
