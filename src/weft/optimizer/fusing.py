"""Which predicates share a node: signature columns put together, or kept apart.

Classes that ask for the same dimensions but test other expressions could have a node each, which
is one more grouping set over the rows, or one node with the signature columns of all of them, whose
cells are groups × signatures and may become as many as the rows. The costs decide (Weave Share §5.3:
"as large as the data" is where cells cost more than another pass over the rows).

Like first-fit packing: sets of expressions, largest first, each put where that saves most, or by
itself. A set that another one holds is left as it is: its node is rolled up from the other one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from weft.logical.statistics import Dimension
from weft.optimizer.measures import Measures
from weft.optimizer.predicates import Predicate, signatures
from weft.optimizer.weave.batch import levels_of
from weft.optimizer.weave.curves import Curve

SMALL = 20_000  # cells a batch that are as quick to roll up when read as to keep rolled up
MOST = 64  # columns of a signature that are put together: a reader must read them all
Expressions = frozenset[str]


def signature_of(predicate: Predicate) -> Expressions:
    """The expressions whose rank or truth a predicate asks for."""
    return frozenset(atom.key for atom in signatures([predicate]).atoms)


@dataclass
class Bin:
    """Sets of expressions whose classes share a node."""

    sets: list[Expressions]
    predicates: dict[str, Predicate] = field(default_factory=dict)
    cells: float = 0.0
    cost: float = 0.0

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
) -> dict[Expressions, Expressions]:
    """For each set of expressions that a predicate tests, those of the node for it."""
    asked: dict[Expressions, dict[str, Predicate]] = {}
    for predicate in predicates:
        asked.setdefault(signature_of(predicate), {})[predicate.key] = predicate
    columns = {found: _columns(asked[found]) for found in asked}
    highest = [
        found for found in asked if not any(columns[found] < columns[other] for other in asked)
    ]
    if len(highest) < 2:
        return {found: found for found in asked}
    bins: list[Bin] = []
    for found in sorted(highest, key=lambda e: (-len(e), sorted(e))):
        alone = _bin([found], asked[found], dimensions, panes, measures)
        joined = [_joined(each, alone, dimensions, panes, measures) for each in bins]
        saved = [
            each.cost + alone.cost - both.cost if _is_readable(both, each, alone) else 0.0
            for each, both in zip(bins, joined, strict=True)
        ]
        best = max(range(len(bins)), key=saved.__getitem__, default=None)
        if best is None or saved[best] <= 0:
            bins.append(alone)
        else:
            bins[best] = joined[best]
    home = {each: found.expressions for found in bins for each in found.sets}
    return {found: home.get(found, found) for found in asked}


def _columns(predicates: dict[str, Predicate]) -> frozenset[str]:
    """Ranks among other constants are other columns."""
    return frozenset(atom.column for atom in signatures(predicates.values()).atoms)


def _is_readable(both: Bin, one: Bin, other: Bin) -> bool:
    most = max(SMALL, 4 * max(one.cells, other.cells))
    return both.cells <= most and len(both.expressions) <= MOST


def _joined(
    one: Bin, other: Bin, dimensions: Sequence[Dimension], panes: Panes, measures: Measures
) -> Bin:
    predicates = one.predicates | other.predicates
    return _bin([*one.sets, *other.sets], predicates, dimensions, panes, measures)


def _bin(
    sets: list[Expressions],
    predicates: dict[str, Predicate],
    dimensions: Sequence[Dimension],
    panes: Panes,
    measures: Measures,
) -> Bin:
    atoms = signatures(predicates.values()).atoms
    curve = measures.curve([*dimensions, *atoms])
    cells = _cells(curve, panes.width, measures)
    costs, levels = measures.costs, int(levels_of(panes.longest / panes.width))
    written = sum(_cells(curve, panes.width * 4**level, measures) for level in range(levels))
    cost = costs.expand * measures.rows + costs.node
    cost += costs.step * cells * levels + costs.cell * written
    return Bin(sets, predicates, cells, cost)


def _cells(curve: Curve, width: float, measures: Measures) -> float:
    pieces = measures.pieces(width)
    return pieces * curve.at(measures.rows / pieces)
