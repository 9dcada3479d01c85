"""How many cells a fragment of a tree holds: groups × signatures, from what the stream showed.

A tree folds by the union of its queries' dimensions and by the signature over all its predicates
(Weave Share §5.3; shared data shards), so sharing may make the cube as large as the data.

Law: more dimensions or more predicates never hold fewer cells. The counts that were measured bound
those that were not: a set has at least the groups of each measured part of it, at most those of
each measured set that holds it, and at most the product of its columns' distinct values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

Names = frozenset[str]


class Counts(Protocol):
    """Anything that knows how many cells a fragment would hold; monotone in both sets."""

    def groups(self, dimensions: Names) -> float: ...

    def signatures(self, predicates: Names) -> float: ...


def cells(counts: Counts, dimensions: Names, predicates: Names) -> float:
    """The most cells that a fragment can hold."""
    return counts.groups(dimensions) * counts.signatures(predicates)


@dataclass(frozen=True, slots=True)
class OneCell:
    """No group-by and no predicates: every fragment is one partial, as in the paper's Eq. 1."""

    def groups(self, dimensions: Names) -> float:
        return 1.0

    def signatures(self, predicates: Names) -> float:
        return 1.0


@dataclass(frozen=True)
class MeasuredCounts:
    """Counts from the sketches kept while folding, given by value."""

    distinct: Mapping[str, float] = field(default_factory=dict)  # values of each column
    group_counts: Mapping[Names, float] = field(default_factory=dict)  # of whole dimension sets
    signature_counts: Mapping[Names, float] = field(default_factory=dict)  # of predicate sets
    unknown: float = 100.0  # distinct values of a column that was never measured

    def groups(self, dimensions: Names) -> float:
        values = math.prod(self.distinct.get(name, self.unknown) for name in dimensions)
        return bounded(values, dimensions, self.group_counts)

    def signatures(self, predicates: Names) -> float:
        return bounded(2.0 ** min(len(predicates), 60), predicates, self.signature_counts)


def bounded(product: float, names: Names, measured: Mapping[Names, float]) -> float:
    """The product, brought between the measured parts and the measured wholes of `names`."""
    above = min((count for found, count in measured.items() if found >= names), default=math.inf)
    below = max((count for found, count in measured.items() if found <= names), default=1.0)
    return max(1.0, below, min(product, above))
