"""A forest: trees under construction, as arrays, so that one step looks at all trees at once.

The algorithms differ in which trees they merge or which query they move; what a merge would cost
is asked here. A *bundle* is a set of queries with the same edges and the same shape (dimensions
and predicate). Bundles are never split:

Law (paper's costs): some cheapest plan keeps each bundle in one tree. Let q and q′ have the same
edges and shape and stand in trees X and Y, with E·cells of X at least that of Y. Moving q to Y
leaves E and cells of Y as they are and does not raise those of X, and q's own final aggregation
costs ω·E·cells, no more in Y than in X. Weave Share itself merges them first: such a merge saves
λ, the most that any merge can save by Eq. 5, since E_xy·cells_xy is at least that of either side.
With Spark costs the same holds up to the pyramid's levels, which follow the longest window.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from weft.optimizer.weave.cost import CostModel, Load, Stream, load_of, shape_of
from weft.optimizer.weave.counts import Counts, Names
from weft.optimizer.weave.plan import Plan, plan_of
from weft.optimizer.weave.space import Edges, Space, grown, rows_of, space_for
from weft.optimizer.weave.windows import Query

Bundle = tuple[Query, ...]


def bundles_of(queries: Iterable[Query]) -> list[Bundle]:
    """Queries that cut and group the stream alike, in order of their first member."""
    found: dict[tuple, list[Query]] = {}
    for query in queries:
        found.setdefault((query.classes, query.dimensions, query.predicate), []).append(query)
    return [tuple(bundle) for bundle in found.values()]


class Shapes:
    """Dimension and predicate sets by number, with the cells of each and of their unions."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self.known: list[tuple[Names, Names]] = []
        self.cells: list[float] = []
        self.numbers: dict[tuple[Names, Names], int] = {}
        self.unions: dict[tuple[int, int], float] = {}

    def number(self, shape: tuple[Names, Names]) -> int:
        if shape not in self.numbers:
            self.numbers[shape] = len(self.known)
            self.known.append(shape)
            self.cells.append(float(self.counts.cells(*shape)))
        return self.numbers[shape]

    def cells_with(self, one: int, others: np.ndarray) -> np.ndarray:
        """The cells of the union of one shape with each of the others."""
        if len(self.known) == 1:
            return np.full(len(others), self.cells[0])
        distinct, places = np.unique(others, return_inverse=True)
        return np.array([self._union(one, int(other)) for other in distinct])[places]

    def _union(self, one: int, other: int) -> float:
        key = (one, other) if one <= other else (other, one)
        if key not in self.unions:
            (d, p), (e, q) = self.known[one], self.known[other]
            self.unions[key] = float(self.counts.cells(d | e, p | q))
        return self.unions[key]


@dataclass(frozen=True, slots=True)
class Standing:
    """One tree with what its cost depends on."""

    bundles: tuple[Bundle, ...]
    row: np.ndarray  # its edges
    mass: float  # of its edges
    shape: int
    load: Load
    cost: float

    @property
    def numbers(self) -> tuple[float, ...]:
        """One column of a forest's table, in the order of FIELDS."""
        load = self.load
        sums = (load.overlap, load.window_rate, load.window_bits, load.longest)
        return (self.mass, *sums, self.cost, float(self.shape))


FIELDS = ("mass", "overlap", "window_rate", "window_bits", "longest", "cost", "shape")
NOTHING = (0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0)


class Forest:
    """Trees in slots 0 … n−1. A merged tree stays in the lower slot; the other one falls empty."""

    def __init__(
        self,
        trees: Iterable[Sequence[Bundle]],
        stream: Stream,
        model: CostModel,
        space: Space | None = None,
    ) -> None:
        self.stream, self.model = stream, model
        self.trees = [tuple(tree) for tree in trees]
        edges = [[bundle[0].classes for bundle in tree] for tree in self.trees]
        self.space = space or space_for(found for tree in edges for found in tree)
        self.shapes = Shapes(stream.counts)
        self.rows = rows_of(self.space, edges)
        self.table = np.zeros((len(FIELDS), len(self.trees)))
        self._row_cache: dict[Edges, np.ndarray] = {}
        masses = self.space.mass(self.rows)
        for slot, tree in enumerate(self.trees):
            found = self.standing(tree, self.rows[:, slot], float(masses[slot]))
            self.table[:, slot] = found.numbers

    def __len__(self) -> int:
        return len(self.trees)

    def __getattr__(self, name: str) -> np.ndarray:
        """The fields of the table by name: mass, overlap, cost …, one entry for each slot."""
        if name in FIELDS:
            return self.table[FIELDS.index(name)]
        raise AttributeError(name)

    @property
    def plan(self) -> Plan:
        return plan_of([q.id for bundle in tree for q in bundle] for tree in self.trees)

    @property
    def total(self) -> float:
        """The cost of all trees (Eq. 3), by this forest's edge bitmaps."""
        return math.fsum(self.cost)

    def row(self, edges: Edges) -> np.ndarray:
        if edges not in self._row_cache:
            self._row_cache[edges] = self.space.row(edges)
        return self._row_cache[edges]

    def standing(
        self, bundles: Sequence[Bundle], row: np.ndarray | None = None, mass: float | None = None
    ) -> Standing:
        """A tree of these bundles, measured; not yet in the forest."""
        queries = [query for bundle in bundles for query in bundle]
        if row is None:
            row = np.bitwise_or.reduce([self.row(bundle[0].classes) for bundle in bundles])
        if mass is None:
            mass = float(self.space.mass(row[:, None])[0])
        shape = self.shapes.number(shape_of(queries))
        load = load_of(queries, mass / self.space.scale, self.shapes.cells[shape])
        cost = float(self.model.tree(load, self.stream))
        return Standing(tuple(bundles), row, mass, shape, load, cost)

    def common(self, row: np.ndarray) -> np.ndarray:
        """The mass that a set of edges has in common with each tree."""
        return self.space.common(row, self.rows)

    def gains(self, slot: int, common: np.ndarray) -> np.ndarray:
        """Eq. 5: what merging this tree with each other one saves, given their common mass."""
        return self._gains(self.table[:, slot], common)

    def gains_of(self, tree: Standing, common: np.ndarray) -> np.ndarray:
        """The same for a tree that is not in the forest; −∞ for empty slots."""
        found = self._gains(np.array(tree.numbers), common)
        found[[not tree for tree in self.trees]] = -np.inf
        return found

    def _gains(self, tree: np.ndarray, common: np.ndarray) -> np.ndarray:
        mass, overlap, window_rate, window_bits, longest, cost, shape = tree
        load = Load(
            (mass + self.mass - common) / self.space.scale,
            overlap + self.overlap,
            window_rate + self.window_rate,
            window_bits + self.window_bits,
            np.maximum(longest, self.longest),
            self.shapes.cells_with(int(shape), self.shape),
        )
        return cost + self.cost - self.model.tree(load, self.stream)

    def put(self, slot: int, tree: Standing | None) -> None:
        """Let a tree stand in this slot, or none."""
        self.trees[slot] = tree.bundles if tree else ()
        self.rows[:, slot] = tree.row if tree else 0
        self.table[:, slot] = tree.numbers if tree else NOTHING

    def append(self, tree: Standing) -> int:
        """Let a tree stand in a new slot."""
        self.trees.append(tree.bundles)
        self.rows = np.concatenate([self.rows, tree.row[:, None]], axis=1)
        self.table = np.concatenate([self.table, np.array(tree.numbers)[:, None]], axis=1)
        return len(self.trees) - 1

    def joined(self, slot: int, tree: Standing, common: float) -> Standing:
        """The tree in this slot with another one's bundles. `common` is their common mass."""
        row = self.rows[:, slot] | tree.row
        mass = float(self.mass[slot]) + tree.mass - common
        return self.standing((*self.trees[slot], *tree.bundles), row, mass)

    def merge(self, into: int, other: int, common: float) -> None:
        """Put the other tree's bundles into this one. `common` is their common mass."""
        row = self.rows[:, into] | self.rows[:, other]
        mass = float(self.mass[into] + self.mass[other] - common)
        self.put(into, self.standing((*self.trees[into], *self.trees[other]), row, mass))
        self.put(other, None)

    def make_room(self, edges: Edges) -> None:
        """Let the space hold one more set of edges; all trees are measured in it again."""
        if self.space.holds(edges):
            return
        sets = [[bundle[0].classes for bundle in tree] for tree in self.trees]
        self.space, self.rows = grown(self.space, edges, sets, self.rows)
        self._row_cache.clear()
        masses = self.space.mass(self.rows)
        for slot, tree in enumerate(self.trees):
            found = self.standing(tree, self.rows[:, slot], float(masses[slot]))
            self.table[:, slot] = found.numbers

    def compact(self) -> np.ndarray:
        """Drop the empty slots; returns the slots that stay, in order."""
        stay = np.array([i for i, tree in enumerate(self.trees) if tree], dtype=np.int64)
        if len(stay) < len(self.trees):
            self.trees = [self.trees[i] for i in stay]
            self.rows = np.ascontiguousarray(self.rows[:, stay])
            self.table = np.ascontiguousarray(self.table[:, stay])
        return stay
