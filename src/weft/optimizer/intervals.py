"""Comparisons with constants as intervals of a domain."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from weft.optimizer.domains import Beyond, Domain, Place
from weft.optimizer.literals import Value, same_nan


@dataclass(frozen=True, slots=True)
class Interval:
    """The values v of a domain with low <= v < high; None: no bound on that side."""

    low: Value | None = None
    high: Value | None = None
    is_empty: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", same_nan(self.low))
        object.__setattr__(self, "high", same_nan(self.high))

    def cuts(self) -> tuple[Value, ...]:
        """The constants c of which a rank must say whether v >= c."""
        return tuple(cut for cut in (self.low, self.high) if cut is not None)


NOTHING = Interval(is_empty=True)


def interval(domain: Domain, operator: type[exp.Expression], value: Value) -> Interval:
    """The values v of the domain with v <operator> value."""
    at, after = domain.ceiling(value), domain.above(value)
    low, high = {
        exp.GTE: (at, Beyond.TOP),
        exp.GT: (after, Beyond.TOP),
        exp.LT: (Beyond.BOTTOM, at),
        exp.LTE: (Beyond.BOTTOM, after),
        exp.EQ: (at, after),
    }[operator]
    return _between(domain, low, high)


def intersect(domain: Domain, one: Interval, other: Interval) -> Interval:
    if one.is_empty or other.is_empty:
        return NOTHING
    lows = [each.low for each in (one, other) if each.low is not None]
    highs = [each.high for each in (one, other) if each.high is not None]
    low = max(lows, key=domain.order, default=Beyond.BOTTOM)
    high = min(highs, key=domain.order, default=Beyond.TOP)
    return _between(domain, low, high)


def is_point(domain: Domain, values: Interval) -> bool:
    """Whether exactly one value lies in it."""
    if values.low is None or values.is_empty:
        return False
    after = domain.above(values.low)
    if values.high is None or after is Beyond.TOP:
        return values.high is None and after is Beyond.TOP
    return domain.order(values.high) == domain.order(after)


def _between(domain: Domain, low: Place, high: Place) -> Interval:
    if low is Beyond.TOP or high is Beyond.BOTTOM:
        return NOTHING
    left = None if low is Beyond.BOTTOM else low
    right = None if high is Beyond.TOP else high
    if left is not None and right is not None and domain.order(left) >= domain.order(right):
        return NOTHING
    return Interval(left, right)
