"""A forest: trees under construction, as arrays, so that one step looks at all trees at once.

The algorithms differ in which trees they merge or which query they move; what a merge would cost
is asked here. A *bundle* is a set of queries with the same edges (where panes are even: the same
panes) and the same shape (dimensions and predicate). Bundles are never split:

Law (paper's costs): some cheapest plan keeps each bundle in one tree. Let q and q′ have the same
edges and shape and stand in trees X and Y, with E·cells of X at least that of Y. Moving q to Y
leaves E and cells of Y as they are and does not raise those of X, and q's own final aggregation
costs ω·E·cells, no more in Y than in X. Weave Share itself merges them first: such a merge saves
λ, the most that any merge can save by Eq. 5, since E_xy·cells_xy is at least that of either side.
With Spark costs, and with even panes, the same holds up to the pyramid's levels, which follow the
longest window.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from weft.optimizer.weave.cost import CostModel, Load, Stream, load_of, shape_of
from weft.optimizer.weave.counts import Counts, Names
from weft.optimizer.weave.even import even_panes
from weft.optimizer.weave.kinds import Kinds, KindShapes
from weft.optimizer.weave.plan import Plan, plan_of
from weft.optimizer.weave.space import Edges, Space, grown, rows_of, space_for
from weft.optimizer.weave.windows import Query

Bundle = tuple[Query, ...]


def bundles_of(queries: Iterable[Query], is_even: bool = False) -> list[Bundle]:
    """Queries that cut and group the stream alike, in order of their first member."""
    found: dict[tuple, list[Query]] = {}
    for query in queries:
        edges = even_panes(query.classes) if is_even else query.classes
        found.setdefault((edges, query.dimensions, query.predicate), []).append(query)
    return [tuple(bundle) for bundle in found.values()]


class Unions:
    """Sets of names by number, with the measure of each set and of the union of any two."""

    def __init__(self, measure: Callable[[Names], float]) -> None:
        self.measure = measure
        self.sets: list[Names] = []
        self.numbers: dict[Names, int] = {}
        self.sizes: list[float] = []
        self._rows: dict[int, np.ndarray] = {}  # one set's unions by number; NaN: not yet asked

    def number(self, names: Names) -> int:
        if names not in self.numbers:
            self.numbers[names] = len(self.sets)
            self.sets.append(names)
            self.sizes.append(float(self.measure(names)))
        return self.numbers[names]

    def with_each(self, one: int, others: np.ndarray) -> np.ndarray:
        """The measure of the union of one set with each of the others."""
        if len(self.sets) == 1:
            return np.full(len(others), self.sizes[0])
        row = self._row(one)
        found = row[others]
        missing = np.isnan(found)
        if missing.any():
            for other in np.unique(others[missing]):
                row[other] = self.measure(self.sets[one] | self.sets[other])
            found = row[others]
        return found

    def _row(self, one: int) -> np.ndarray:
        row = self._rows.get(one, np.empty(0))
        if len(row) < len(self.sets):
            row = np.concatenate([row, np.full(2 * len(self.sets) - len(row), np.nan)])
            self._rows[one] = row
        return row


class Shapes:
    """What trees fold by: a set of dimensions and a set of predicates, each by number."""

    def __init__(self, counts: Counts) -> None:
        self.dimensions = Unions(counts.groups)
        self.predicates = Unions(counts.signatures)

    def numbers(self, queries: Iterable[Query]) -> tuple[int, int]:
        dimensions, predicates = shape_of(queries)
        return self.dimensions.number(dimensions), self.predicates.number(predicates)

    def cells(self, shape: tuple[int, int]) -> float:
        return self.dimensions.sizes[shape[0]] * self.predicates.sizes[shape[1]]

    def cells_with(
        self, shape: tuple[int, int], dimensions: np.ndarray, predicates: np.ndarray
    ) -> np.ndarray:
        """The cells of the union of one shape with each of the others."""
        groups = self.dimensions.with_each(shape[0], dimensions)
        return groups * self.predicates.with_each(shape[1], predicates)


def shapes_of(counts: Counts | Kinds) -> Shapes | KindShapes:
    return KindShapes(counts) if isinstance(counts, Kinds) else Shapes(counts)


@dataclass(frozen=True, slots=True)
class Standing:
    """One tree with what its cost depends on."""

    bundles: tuple[Bundle, ...]
    row: np.ndarray  # its edges
    mass: float  # of its edges
    shape: tuple[int, int]
    load: Load
    cost: float

    @property
    def numbers(self) -> tuple[float, ...]:
        """One column of a forest's table, in the order of FIELDS."""
        load = self.load
        sums = (load.overlap, load.window_rate, load.window_bits, load.longest)
        return (self.mass, *sums, self.cost, *map(float, self.shape))


SUMS = ("mass", "overlap", "window_rate", "window_bits", "longest", "cost")
FIELDS = (*SUMS, "dimensions", "predicates")
NOTHING = (0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)


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
        is_even = model.is_even
        self.space = space or space_for((found for tree in edges for found in tree), is_even)
        self.shapes = shapes_of(stream.counts)
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
            row = reduce(self.space.join, [self.row(bundle[0].classes) for bundle in bundles])
        if mass is None:
            mass = float(self.space.mass(row[:, None])[0])
        shape = self.shapes.numbers(queries)
        load = load_of(queries, mass / self.space.scale, self.shapes.cells(shape))
        cost = float(self.model.tree(load, self.stream))
        return Standing(tuple(bundles), row, mass, shape, load, cost)

    def common(self, row: np.ndarray, since: int = 0) -> np.ndarray:
        """The mass that a set of edges has in common with each tree, from a slot on."""
        return self.space.common(row, self.rows[:, since:])

    def gains(self, slot: int, common: np.ndarray, since: int = 0) -> np.ndarray:
        """Eq. 5: what merging this tree with each other one saves, given their common mass."""
        return self._gains(self.table[:, slot], common, self.table[:, since:])

    def gains_of(self, tree: Standing, common: np.ndarray) -> np.ndarray:
        """The same for a tree that is not in the forest; −∞ for empty slots."""
        found = self._gains(np.array(tree.numbers), common, self.table)
        found[[not tree for tree in self.trees]] = -np.inf
        return found

    def _gains(self, tree: np.ndarray, common: np.ndarray, others: np.ndarray) -> np.ndarray:
        mass, overlap, window_rate, window_bits, longest, cost = tree[: len(SUMS)]
        masses, overlaps, window_rates, bits, lengths, costs = others[: len(SUMS)]
        shape, shapes = (int(tree[-2]), int(tree[-1])), others[len(SUMS) :].astype(int)
        load = Load(
            (mass + masses - common) / self.space.scale,
            overlap + overlaps,
            window_rate + window_rates,
            window_bits + bits,
            np.maximum(longest, lengths),
            self.shapes.cells_with(shape, *shapes),
        )
        return cost + costs - self.model.tree(load, self.stream)

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
        row = self.space.join(self.rows[:, slot], tree.row)
        mass = float(self.mass[slot]) + tree.mass - common
        return self.standing((*self.trees[slot], *tree.bundles), row, mass)

    def merge(self, into: int, other: int, common: float) -> None:
        """Put the other tree's bundles into this one. `common` is their common mass."""
        row = self.space.join(self.rows[:, into], self.rows[:, other])
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
