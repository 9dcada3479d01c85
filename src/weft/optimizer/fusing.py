"""Which predicates share a node: signature columns put together, or kept apart.

Classes that ask for the same dimensions but test other expressions could have a node each, which
is one more grouping set over the rows, or one node with the signature columns of all of them, whose
cells are groups × signatures and may become as many as the rows. The costs decide (Weave Share §5.3:
"as large as the data" is where cells cost more than another pass over the rows).

Like Weave Share itself: the two bins that save most are put together until none saves. Of many only
the smallest are looked at, and those that ask for the same expressions. A set that another one holds is left as it is: its node is rolled up from the other one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from weft.logical.statistics import Dimension
from weft.optimizer.measures import Measures
from weft.optimizer.predicates import Predicate, Ranking, signatures
from weft.optimizer.profile import expression_of
from weft.optimizer.weave.batch import RADIX, levels_of
from weft.optimizer.weave.curves import GRID, Curve

SMALL = 20_000  # cells a batch that are as quick to roll up when read as to keep rolled up
MOST = 64  # columns of a signature that are put together: a reader must read them all
NEAR = 8  # smallest bins of which each pair is looked at
Expressions = frozenset[str]


@lru_cache(maxsize=8192)
def signature_of(predicate: Predicate) -> Expressions:
    """The expressions whose rank or truth a predicate asks for."""
    return frozenset(atom.key for atom in signatures([predicate]).atoms)


@dataclass(frozen=True, eq=False)
class Bin:
    """Sets of expressions whose classes share a node."""

    sets: tuple[Expressions, ...]
    constants: dict[str, set]  # by expression, as a profile knows it
    cells: float
    cost: float

    @property
    def expressions(self) -> Expressions:
        return frozenset().union(*self.sets)


@dataclass(frozen=True, slots=True)
class Panes:
    """How finely rows are cut while sets are compared: pane and longest window, in microseconds."""

    width: float
    longest: float


def fuse(
    dimensions: Sequence[Dimension],
    predicates: Iterable[Predicate],
    panes: Panes,
    measures: Measures,
    standing: Mapping[Expressions, Expressions] | None = None,
) -> dict[Expressions, Expressions]:
    """For each set of expressions that a predicate tests, those of the node for it.

    Sets that share a node now (`standing`) go on doing so, so that one more query moves few others.
    """
    asked: dict[Expressions, dict[str, Predicate]] = {}
    for predicate in predicates:
        asked.setdefault(signature_of(predicate), {})[predicate.key] = predicate
    columns = {found: _columns(asked[found]) for found in asked}
    highest = [
        found for found in asked if not any(columns[found] < columns[other] for other in asked)
    ]
    if len(highest) < 2:
        return {found: found for found in asked}
    packing = Packing(dimensions, panes, measures)
    order = sorted(highest, key=lambda e: (-len(e), sorted(e)))
    groups: dict[Expressions, Bin] = {}
    for found in order:
        alone, home = packing.alone(found, asked[found]), (standing or {}).get(found, found)
        groups[home] = packing.joined(groups[home], alone) if home in groups else alone
    bins = packed(packing, list(groups.values()))
    home = {each: found.expressions for found in bins for each in found.sets}
    return {found: home.get(found, found) for found in asked}


def packed(packing: Packing, bins: list[Bin]) -> list[Bin]:
    """Put together the two that save most, while that saves anything."""
    known: dict[tuple[Bin, Bin], Bin] = {}
    while len(bins) > 1:
        best, found = 0.0, None
        for one, other in _pairs(bins):
            both = known.get((one, other)) or packing.joined(one, other)
            known[one, other] = both
            saved = one.cost + other.cost - both.cost
            if saved > best and _is_readable(both, one, other):
                best, found = saved, (one, other)
        if found is None:
            return bins
        bins = [each for each in bins if each not in found] + [known[found]]
    return bins


def _pairs(bins: list[Bin]) -> list[tuple[Bin, Bin]]:
    """Those that may save most: among the smallest, and of those that ask for the same."""
    small = sorted(bins, key=lambda each: each.cells)
    pairs = list(combinations(small[:NEAR], 2))
    alike = [
        (one, other)
        for one, other in combinations(small, 2)
        if not one.constants.keys().isdisjoint(other.constants)
    ]
    return pairs + alike[: NEAR * NEAR]


def _columns(predicates: dict[str, Predicate]) -> frozenset[str]:
    """Ranks among other constants are other columns."""
    return frozenset(atom.column for atom in signatures(predicates.values()).atoms)


def _is_readable(both: Bin, one: Bin, other: Bin) -> bool:
    most = max(SMALL, 4 * max(one.cells, other.cells))
    return both.cells <= most and len(both.expressions) <= MOST


@dataclass(frozen=True)
class Packing:
    """What bins cost, over some dimensions and panes."""

    dimensions: Sequence[Dimension]
    panes: Panes
    measures: Measures

    def alone(self, found: Expressions, predicates: dict[str, Predicate]) -> Bin:
        constants = {
            expression_of(atom): set(atom.cuts) if isinstance(atom, Ranking) else {True}
            for atom in signatures(predicates.values()).atoms
        }
        return self._bin((found,), constants)

    def joined(self, one: Bin, other: Bin) -> Bin:
        both = dict(one.constants)
        for expression, constants in other.constants.items():
            both[expression] = both.get(expression, set()) | constants
        return self._bin((*one.sets, *other.sets), both)

    def _bin(self, sets: tuple[Expressions, ...], constants: dict[str, set]) -> Bin:
        asked = {expression_of(d): 1 for d in self.dimensions}
        asked |= {expression: len(found) for expression, found in constants.items()}
        known, name = self.measures.bins, (self.panes, *asked.items())
        if name not in known:
            known[name] = self._costed(asked)
        return Bin(sets, constants, *known[name])

    def _costed(self, asked: Mapping[str, int]) -> tuple[float, float]:
        """Partials of the lowest level, and what the node costs a batch."""
        curve, costs = self.measures.profile.curve_of(asked), self.measures.costs
        levels = int(levels_of(self.panes.longest / self.panes.width))
        by_level = self._cells(curve, levels)
        cells, written = float(by_level[0]), float(by_level.sum())
        cost = costs.expand * self.measures.rows + costs.node
        cost += costs.step * cells * levels + costs.cell * written
        return cells, cost

    def _cells(self, curve: Curve, levels: int) -> np.ndarray:
        """Partials of each level that a batch writes."""
        pieces = self.measures.pieces(self.panes.width * float(RADIX) ** np.arange(levels))
        return pieces * np.interp(self.measures.rows / pieces, GRID, curve.values)
