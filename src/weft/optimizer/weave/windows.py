"""Paired windows: the fragments and edges that a query's window cuts a stream into.

A window over [k·slide + offset, k·slide + offset + length) starts and ends on *edges*: the times
congruent to offset, or to offset + length, modulo the slide. Between two neighbouring edges lies
a *fragment* (pane), folded once. Queries that share a tree share the union of their edges.

Source: Weave Share §3.2 (g1 = r mod s, g2 = s − g1) and §4.1 (composite slide, common edges).
Differs: edges are residue classes (modulus, residue) in lowest terms, so that two windows cut the
stream alike exactly when their `classes` are equal; windows may have an offset; time is counted in
integer *ticks*, of which a second is one example.
Sound because every window starts and ends on an edge of its own, so on one of any union.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from weft.errors import InvalidWindow

Class = tuple[int, int]  # (modulus, residue): the times ≡ residue (mod modulus)


@dataclass(frozen=True, slots=True)
class Query:
    """What the optimiser needs to know of one window aggregate. Times are in ticks."""

    id: str
    slide: int
    length: int
    offset: int = 0
    dimensions: frozenset[str] = frozenset()
    predicate: str | None = None  # the canonical predicate's key; None selects every row
    reads: float = 1.0  # the share of its windows that are assembled: 1 eager, 0 never

    def __post_init__(self) -> None:
        if self.slide < 1 or self.length < 1:
            raise InvalidWindow(
                f"slide {self.slide} and length {self.length} must be at least one tick",
                hint="count time in ticks that divide every slide and length (see in_ticks)",
            )
        if self.reads < 0:
            raise InvalidWindow(f"a query cannot be read {self.reads} times per window")

    @property
    def overlap(self) -> float:
        """ω = r/s: how many of its windows each fragment takes part in (Eq. 2)."""
        return self.length / self.slide

    @property
    def fragments(self) -> tuple[int, ...]:
        """The lengths of its fragments, (g1, g2), or (slide,) when the slide divides the length."""
        rest = self.length % self.slide
        return (rest, self.slide - rest) if rest else (self.slide,)

    @property
    def classes(self) -> tuple[Class, ...]:
        """Its edges as residue classes in lowest terms: one class, or two with the same modulus.

        Two residues half a slide apart are one class of half the modulus.
        """
        start = self.offset % self.slide
        end = (self.offset + self.length) % self.slide
        if start == end:
            return ((self.slide, start),)
        if 2 * abs(start - end) == self.slide:
            return ((self.slide // 2, min(start, end)),)
        return tuple(sorted(((self.slide, start), (self.slide, end))))

    @property
    def edge_rate(self) -> float:
        """Its own edges per tick."""
        found = self.classes
        return len(found) / found[0][0]


def cumulating(id: str, size: int, step: int, **rest: object) -> Query:
    """A window that grows by `step` up to `size`: cut at every step, on average half as long.

    Of size/step windows the mean length is (size + step)/2, rounded up to whole steps here.
    """
    return Query(id, slide=step, length=step * math.ceil((size + step) / (2 * step)), **rest)


def composite_slide(queries: Iterable[Query]) -> int:
    """The period after which the union of edges repeats: the lcm of the slides (§4.1, step 1)."""
    return math.lcm(*(query.slide for query in queries))


def edges(queries: Iterable[Query]) -> tuple[int, ...]:
    """The edges within (0, CS], as the paper lists them. For small composite slides and tests."""
    queries = tuple(queries)
    period = composite_slide(queries)
    found = {
        position
        for query in queries
        for modulus, residue in query.classes
        for position in range(residue or modulus, period + 1, modulus)
    }
    return tuple(sorted(found))


def in_ticks(times: Sequence[Sequence[int]]) -> tuple[int, list[tuple[int, ...]]]:
    """Rescale integer times (say, in µs) to the longest tick that divides all of them.

    The composite slide, and with it the work of counting edges, shrinks by the same factor.
    """
    tick = reduce(math.gcd, (time for row in times for time in row), 0) or 1
    return tick, [tuple(time // tick for time in row) for row in times]


def meet(left: Class, right: Class) -> Class | None:
    """The common class of two classes, or None when they have no time in common.

    (m, a) ∩ (n, b) is empty unless a ≡ b (mod gcd(m, n)), else one class modulo lcm(m, n), by the
    Chinese remainder theorem.
    """
    (m, a), (n, b) = left, right
    divisor = math.gcd(m, n)
    if (a - b) % divisor:
        return None
    step = n // divisor
    times = ((b - a) // divisor * pow(m // divisor, -1, step)) % step if step > 1 else 0
    period = m * step
    return period, (a + m * times) % period
