"""Weave Share: merge the two trees that save most, until no merge saves anything.

Source: Weave Share §5.1 (Figure 2), with the cost lookup of §8.1 and the edge bitmap of §8.2.
Differs in how the numbers are kept, not in what is merged (`textbook` is the letter of the paper,
and tests compare the plans). The table of common edges is brought up to date instead of counted:

    |(x ∪ y) ∩ w| = |x ∩ w| + |y ∩ w| − |(x ∩ y) ∩ w|

so that only the edges common to x and y are looked at, which are few, and none at all when one of
the two holds the other. One look serves all w. Queries with the same edges start in one tree (see
`forest`). n queries take n merges of O(n + words of x ∩ y × n).

Never worse than No Share, where it begins; nor than Shared, which is taken if it is cheaper at the
end (greedy merging may stop short of it; the paper's does).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from weft.optimizer.weave.cost import CostModel, Stream
from weft.optimizer.weave.forest import Forest, bundles_of
from weft.optimizer.weave.plan import PAPER, Plan
from weft.optimizer.weave.windows import Query


def weave_share(queries: Iterable[Query], stream: Stream, model: CostModel = PAPER) -> Plan:
    """The plan that Weave Share finds, or one tree for all if that is cheaper."""
    return woven(queries, stream, model).plan


def woven(queries: Iterable[Query], stream: Stream, model: CostModel = PAPER) -> Forest:
    """The forest behind `weave_share`, for what improves on it."""
    bundles = bundles_of(queries, model.is_even)
    forest = weave(Forest([[bundle] for bundle in bundles], stream, model))
    if len(forest) < 2:
        return forest
    shared = Forest([bundles], stream, model, forest.space)
    return shared if shared.total < forest.total else forest


def weave(forest: Forest) -> Forest:
    """Merge the trees of a forest, best pair first (ties: lowest slots), while a merge saves."""
    if len(forest) < 2:
        return forest
    table = Lookup(forest)
    while table.merge_best() is not None:
        if table.live * 2 < len(forest):
            table.compact()
    forest.compact()
    return forest


class Lookup:
    """The cost lookup table (§8.1): what each pair would save, and each row's best."""

    def __init__(self, forest: Forest) -> None:
        size = len(forest)
        self.forest, self.live = forest, size
        self.benefits = size * (size - 1) // 2  # computed so far: each pair once, then one row
        self.common = np.empty((size, size))
        self.gain = np.empty((size, size))
        for slot in range(size):  # both are symmetric: each pair is looked at once
            common = forest.common(forest.rows[:, slot], slot)
            self.common[slot, slot:] = self.common[slot:, slot] = common
            self.gain[slot, slot:] = self.gain[slot:, slot] = forest.gains(slot, common, slot)
        np.fill_diagonal(self.gain, -np.inf)
        self._find_best(np.arange(size))

    def _find_best(self, slots: np.ndarray) -> None:
        if len(slots) == len(self.gain):
            self.partner, self.best = np.zeros(len(slots), dtype=np.int64), np.zeros(len(slots))
        self.partner[slots] = self.gain[slots].argmax(axis=1)
        self.best[slots] = self.gain[slots, self.partner[slots]]

    def merge_best(self) -> tuple[int, int] | None:
        """Merge the pair that saves most and say which; None if none saves anything."""
        if self.live < 2:
            return None
        x = int(self.best.argmax())
        y = int(self.partner[x])
        if not self.best[x] > 0:
            return None
        row = self._common_with_both(x, y)
        self.forest.merge(x, y, self.common[x, y])
        row[~np.isfinite(self.gain[x])] = 0.0  # slots that are gone, and x itself
        row[x], row[y] = self.forest.mass[x], 0.0
        self.common[x] = self.common[:, x] = row
        self._replace(x, y)
        self.live -= 1
        self.benefits += self.live - 1
        return x, y

    def _common_with_both(self, x: int, y: int) -> np.ndarray:
        forest, shared = self.forest, self.common[x, y]
        if forest.space.is_even:
            return forest.common(forest.space.join(forest.rows[:, x], forest.rows[:, y]))
        if shared == forest.mass[y]:
            return self.common[x].copy()
        if shared == forest.mass[x]:
            return self.common[y].copy()
        both = forest.rows[:, x] & forest.rows[:, y]
        return self.common[x] + self.common[y] - forest.common(both)

    def _replace(self, x: int, y: int) -> None:
        """Row and column x are those of the merged tree; y is gone."""
        gains = self.forest.gains(x, self.common[x])
        gains[~np.isfinite(self.gain[x])] = -np.inf  # slots that are gone, and x itself
        gains[y] = -np.inf
        self.gain[x] = self.gain[:, x] = gains
        self.gain[y] = self.gain[:, y] = -np.inf
        stale = np.flatnonzero((self.partner == x) | (self.partner == y))
        self._find_best(np.union1d(stale, [x, y]))
        better = (gains > self.best) | ((gains == self.best) & (x < self.partner))
        better[[x, y]] = False
        self.partner[better], self.best[better] = x, gains[better]

    def compact(self) -> None:
        stay = self.forest.compact()
        self.common = self.common[np.ix_(stay, stay)]
        self.gain = self.gain[np.ix_(stay, stay)]
        self._find_best(np.arange(len(stay)))
