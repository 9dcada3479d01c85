"""Edge bitmaps: sets of edges as rows of bits, so that merging is OR and common edges are AND.

Source: Weave Share §8.2 (edge bitmap). Differs in two ways.

*One period for all.* Every row spans the composite slide of the whole workload instead of its own
tree's, so no bitmap is ever replicated and 64 edges are compared by one instruction.

*Sampled beyond that.* When the composite slide has more than 2²⁰ ticks, a bit stands for a sampled
edge instead of a tick. Each set of edges contributes 64 or more samples of its own. A sample of x
is kept only if no *sparser* set holds it, and then weighs E_x / samples. So every edge of the union
is represented by the sparsest set that holds it, exactly once, and

    E(any union) = Σ weights of the kept samples that lie in it        (unbiased)

whatever the union is. Sparsest first, because a sparse set's edges would hardly ever be met among
the samples of a dense one. Sums over kept samples are a measure, so all that the algorithms rely
on (common ≤ both, union = sum − common) holds exactly within one space; only its agreement with
the true edge rate is a matter of sampling, and `density.edge_rate` states that for a plan's cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from weft.optimizer.weave.density import is_edge, sampled_edges
from weft.optimizer.weave.even import EvenSpace
from weft.optimizer.weave.windows import Class

Edges = tuple[Class, ...]  # one query's edges: one class, or two of the same modulus
Rows = np.ndarray  # uint64[words, trees]: a column is a set of edges

PERIOD_TICKS = 1 << 20
SAMPLE_WORDS = 4096  # words of 64 samples in a sampled space, if its sets are fewer


def rate_of(edges: Edges) -> float:
    return len(edges) / edges[0][0]


def packed(marks: np.ndarray) -> np.ndarray:
    """Booleans to words of 64, in order; the last word is padded with zeros."""
    bits = np.packbits(marks, bitorder="little")
    return np.pad(bits, (0, -len(bits) % 8)).view(np.uint64)


def unpacked(row: np.ndarray) -> np.ndarray:
    """Words of 64 to zeros and ones, in order."""
    return np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little")


@dataclass(frozen=True, eq=False)
class PeriodSpace:
    """A bit for every tick of one period. Masses are whole numbers of edges: exact."""

    period: int
    is_even = False

    @property
    def scale(self) -> float:
        return float(self.period)

    @property
    def words(self) -> int:
        return -(-self.period // 64)

    def row(self, edges: Edges) -> np.ndarray:
        return self.union((edges,))

    def union(self, sets: Iterable[Edges]) -> np.ndarray:
        marks = np.zeros(self.period, dtype=bool)
        for edges in sets:
            for modulus, residue in edges:
                marks[residue::modulus] = True
        return packed(marks)

    def join(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return one | other

    def mass(self, rows: Rows) -> np.ndarray:
        return np.bitwise_count(rows).sum(axis=0, dtype=np.int64).astype(float)

    def common(self, row: np.ndarray, rows: Rows) -> np.ndarray:
        """The mass that a row has in common with each column. Looks only where the row has bits."""
        words = np.flatnonzero(row)
        if len(words) == 0:
            return np.zeros(rows.shape[1])
        if 2 * len(words) > len(row):
            return self.mass(rows & row[:, None])
        return self.mass(rows[words] & row[words, None])

    def holds(self, edges: Edges) -> bool:
        """Can a row of this space say what these edges are?"""
        return self.period % edges[0][0] == 0


@dataclass(frozen=True, eq=False)
class SampleSpace:
    """A bit for every kept sample. Word i holds samples of the set of edges `owner[i]`."""

    points: np.ndarray  # int64[words·64]
    keep: np.ndarray  # uint64[words]: the samples that no sparser set holds
    weights: np.ndarray  # float64[words]: of one sample of that word
    rates: np.ndarray  # float64[words]: of the set that the word samples
    known: frozenset[Edges]
    _rows: dict[Edges, np.ndarray] = field(default_factory=dict)  # of sets that were asked for

    scale = 1.0
    is_even = False

    @property
    def words(self) -> int:
        return len(self.keep)

    def join(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return one | other

    def row(self, edges: Edges) -> np.ndarray:
        if edges not in self._rows:
            self._rows[edges] = _marked(self.points, edges) & self.keep
        return self._rows[edges]

    def mass(self, rows: Rows) -> np.ndarray:
        return self.weights @ np.bitwise_count(rows)

    def common(self, row: np.ndarray, rows: Rows) -> np.ndarray:
        words = np.flatnonzero(row)
        return self.weights[words] @ np.bitwise_count(rows[words] & row[words, None])

    def holds(self, edges: Edges) -> bool:
        return edges in self.known


Space = PeriodSpace | SampleSpace | EvenSpace


def space_for(sets: Iterable[Edges], is_even: bool = False) -> Space:
    """The exact space if the composite slide allows it, else a sampled one."""
    if is_even:
        return EvenSpace()
    sets = sorted(set(sets))
    period = math.lcm(*(edges[0][0] for edges in sets))
    return PeriodSpace(period) if period <= PERIOD_TICKS else _sampled(sets)


def _sampled(sets: Sequence[Edges]) -> SampleSpace:
    each = max(1, min(32, SAMPLE_WORDS // len(sets)))  # words per set
    sets = sorted(sets, key=lambda edges: (rate_of(edges), edges))
    points = np.concatenate([_samples(edges, each) for edges in sets])
    words = each * len(sets)
    rates = np.repeat([rate_of(edges) for edges in sets], each)
    held, keep = np.zeros(words, dtype=np.uint64), np.zeros(words, dtype=np.uint64)
    rows = {}
    for i, edges in enumerate(sets):  # sparsest first: what it holds is lost to the denser ones
        own = slice(i * each, (i + 1) * each)
        keep[own] = ~held[own]
        rows[edges] = _marked(points, edges)
        held |= rows[edges]
    for row in rows.values():
        row &= keep
    return SampleSpace(points, keep, rates / (64 * each), rates, frozenset(sets), rows)


def _marked(points: np.ndarray, edges: Edges) -> np.ndarray:
    return packed(is_edge(points, edges[0][0], [residue for _, residue in edges]))


def _samples(edges: Edges, words: int) -> np.ndarray:
    classes = np.array(edges, dtype=np.int64)
    return sampled_edges(classes, 64 * words // len(edges)).T.reshape(-1)


def grown(space: Space, edges: Edges, trees: Sequence[Sequence[Edges]], rows: Rows):
    """The space with one more set of edges, and the rows of the trees in it.

    `trees` lists the sets of each column. A period is stretched while it stays tractable; samples
    are added; when a period becomes intractable, everything is sampled anew.
    """
    if space.holds(edges):
        return space, rows
    if isinstance(space, SampleSpace):
        return _with_samples(space, edges, trees, rows)
    period = math.lcm(space.period, edges[0][0])
    if period <= PERIOD_TICKS:
        return _stretched(space, period, rows)
    fresh = _sampled(sorted({edges, *(found for tree in trees for found in tree)}))
    return fresh, rows_of(fresh, trees)


def _stretched(space: PeriodSpace, period: int, rows: Rows) -> tuple[PeriodSpace, Rows]:
    wider = PeriodSpace(period)
    found = np.empty((wider.words, rows.shape[1]), dtype=np.uint64)
    for i in range(rows.shape[1]):
        column = np.ascontiguousarray(rows[:, i]).view(np.uint8)
        marks = np.unpackbits(column, bitorder="little")[: space.period]
        found[:, i] = packed(np.tile(marks, period // space.period))
    return wider, found


def _with_samples(
    space: SampleSpace, edges: Edges, trees: Sequence[Sequence[Edges]], rows: Rows
) -> tuple[SampleSpace, Rows]:
    each = max(1, min(32, SAMPLE_WORDS // (len(space.known) + 1)))
    rate, row = rate_of(edges), space.row(edges)
    keep = np.where(space.rates > rate, space.keep & ~row, space.keep)
    points = _samples(edges, each)
    sparser = sorted(found for found in space.known if rate_of(found) <= rate)
    own_keep = ~_held_by(points, sparser)
    wider = SampleSpace(
        np.concatenate([space.points, points]),
        np.concatenate([keep, own_keep]),
        np.concatenate([space.weights, np.full(each, rate / (64 * each))]),
        np.concatenate([space.rates, np.full(each, rate)]),
        space.known | {edges},
    )
    added = np.empty((each, rows.shape[1]), dtype=np.uint64)
    for i, tree in enumerate(trees):
        added[:, i] = _held_by(points, tree) & own_keep
    return wider, np.concatenate([rows & keep[:, None], added])


def _held_by(points: np.ndarray, sets: Sequence[Edges]) -> np.ndarray:
    """Which of the points lie in any of the sets, packed."""
    if not sets:
        return np.zeros(len(points) // 64, dtype=np.uint64)
    moduli = np.array([edges[0][0] for edges in sets])
    first = np.array([edges[0][1] for edges in sets])
    last = np.array([edges[-1][1] for edges in sets])
    rest = points[:, None] % moduli
    return packed(((rest == first) | (rest == last)).any(axis=1))


def remaining(space: Space, row: np.ndarray, gone: Edges, rest: Sequence[Edges]) -> np.ndarray:
    """The row of a tree after one of its sets has left it. Only the bits of that set can change."""
    if not isinstance(space, SampleSpace):
        return space.union(rest)
    words = np.flatnonzero(space.row(gone))
    left = row.copy()
    points = space.points.reshape(-1, 64)[words].reshape(-1)
    left[words] = _held_by(points, rest) & space.keep[words]
    return left


def rows_of(space: Space, trees: Sequence[Sequence[Edges]]) -> Rows:
    """A column for each tree: the union of its sets of edges."""
    found = np.zeros((space.words, len(trees)), dtype=np.uint64)
    if isinstance(space, EvenSpace):
        for i, tree in enumerate(trees):
            found[:, i] = space.union(tree)
        return found
    cached: dict[Edges, np.ndarray] = {}
    for i, tree in enumerate(trees):
        for edges in tree:
            if edges not in cached:
                cached[edges] = space.row(edges)
            found[:, i] = space.join(found[:, i], cached[edges])
    return found
