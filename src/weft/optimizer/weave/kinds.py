"""Kinds of nodes: what a tree holds where partials of different columns are different nodes.

The paper's tree is one cube over the union of its queries' dimensions and predicates (§5.3). Weft's
is a set of *nodes*, one for each set of columns (dimensions and signature columns) that its queries
ask for; those whose columns another one has are rolled up from it. So what a tree holds is a set of
kinds, and its cells are a sum over them instead of a product.

How many cells a node has depends on how many rows fall into a pane: each kind has a curve, the
distinct values of its columns among m rows, measured from a sample (see curves.py). Sets of kinds
are numbered, so that costs of many trees are arithmetic on arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from weft.optimizer.weave.curves import GRID, Curve
from weft.optimizer.weave.windows import Query

Names = frozenset[str]
REFERENCE = 10  # kinds are compared by their distinct values among 2¹⁰ rows


@dataclass(frozen=True)
class Kind:
    """A node's columns, and the distinct values of them among so many rows."""

    name: str
    columns: Names
    curve: Curve
    is_versioned: bool = False

    def feeds(self, other: Kind) -> bool:
        """Whether the other one can be rolled up from this one."""
        return self.is_versioned == other.is_versioned and other.columns < self.columns


class Kinds:
    """The kinds of a stream's nodes. Sets of them are numbered as they are asked for; 0 is none."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.kinds = tuple(kinds)
        self.index = {kind.name: i for i, kind in enumerate(self.kinds)}
        self._numbers: dict[Names, int] = {}
        self.sets: list[Names] = []
        self._roots: list[np.ndarray] = []
        self._table: np.ndarray | None = None
        points = [kind.curve.values for kind in self.kinds] or [np.zeros(len(GRID))]
        self._values = np.array(points)
        self._parents: dict[str, list[int]] = {}
        self.number(frozenset())

    def number(self, names: Names) -> int:
        """The number of a set of kinds, given by their names."""
        if names not in self._numbers:
            self._numbers[names] = len(self.sets)
            self.sets.append(names)
            self._roots.append(self._roots_of(names))
            self._table = None
        return self._numbers[names]

    def _roots_of(self, names: Names) -> np.ndarray:
        """For each kind the one that it is computed from in the end (itself); −1: not held."""
        roots = np.full(max(1, len(self.kinds)), -1)
        held = sorted((self.index[name] for name in names), key=self._rank)
        for place, i in enumerate(held):
            above = [j for j in held[:place] if self.kinds[j].feeds(self.kinds[i])]
            parent = min(above, key=lambda j: self._values[j, REFERENCE], default=None)
            roots[i] = i if parent is None else roots[parent]
        return roots

    def _rank(self, i: int) -> tuple[int, int]:
        return -len(self.kinds[i].columns), i

    def roots(self, numbers: np.ndarray) -> np.ndarray:
        """[…, kinds]: the roots of sets of kinds, by their numbers."""
        if self._table is None:
            self._table = np.array(self._roots)
        return self._table[np.asarray(numbers, dtype=np.int64)]

    def distinct(self, rows: np.ndarray) -> np.ndarray:
        """[…, kinds]: distinct values of each kind's columns among so many rows. Concave in rows."""
        rows = np.asarray(rows, dtype=float)
        high = np.clip(np.searchsorted(GRID, rows), 1, len(GRID) - 1)
        share = np.clip((rows - GRID[high - 1]) / (GRID[high] - GRID[high - 1]), 0, 1)[..., None]
        below, above = self._values.T[high - 1], self._values.T[high]
        return below + share * (above - below)


class KindShapes:
    """What trees of a forest hold, by number (see Shapes): the second number is not used."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._unions: dict[tuple[int, int], int] = {}

    def numbers(self, queries: Iterable[Query]) -> tuple[int, int]:
        return self._kinds.number(frozenset().union(*(q.dimensions for q in queries))), 0

    def cells(self, shape: tuple[int, int]) -> int:
        return shape[0]

    def cells_with(self, shape: tuple[int, int], others: np.ndarray, _: np.ndarray) -> np.ndarray:
        distinct, places = np.unique(others, return_inverse=True)
        return np.array([self._union(shape[0], int(other)) for other in distinct])[places]

    def _union(self, one: int, other: int) -> int:
        key = (min(one, other), max(one, other))
        if key not in self._unions:
            sets = self._kinds.sets
            self._unions[key] = self._kinds.number(sets[one] | sets[other])
        return self._unions[key]
