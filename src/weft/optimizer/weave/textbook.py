"""Weave Share to the letter, with the paper's three optimisations as switches and its work counted.

Source: Weave Share §5.1 (Figure 2) and §8. It is here to be compared with: `greedy` finds the same
plan faster. What one benefit (Eq. 5) of merging t_x with t_y costs, in comparisons:

    naive         each edge of t_y in the composite slide against both edges of each query of t_x
    bitmap        each edge of t_y against the bitmap of t_x: one probe
    probe order   the tree with fewer edges probes the other
    cost lookup   only pairs with the tree that was just merged are counted anew

Each switch changes the work, none the plan: all of them count the same common edges.
`work_of` says how many comparisons each variant does by replaying the merges, since doing them
naively for 250 queries takes hours; tests hold it against the comparisons really done.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.optimizer.weave.cost import CostModel, Load, Stream, cells_of, load_of
from weft.optimizer.weave.forest import Forest
from weft.optimizer.weave.greedy import Lookup
from weft.optimizer.weave.plan import PAPER, Plan, plan_of
from weft.optimizer.weave.space import PeriodSpace
from weft.optimizer.weave.windows import Query, composite_slide


@dataclass(frozen=True, slots=True)
class Switches:
    """Which of the paper's optimisations are on (§8.1 to §8.3). Probe order needs the bitmap."""

    lookup: bool = True
    bitmap: bool = True
    probe_order: bool = True


@dataclass
class Work:
    """What the optimiser did: benefits computed, and comparisons or probes made for them."""

    benefits: int = 0
    comparisons: int = 0


@dataclass(frozen=True, slots=True)
class _Tree:
    queries: tuple[Query, ...]
    period: int  # composite slide
    edges: frozenset[int]  # within [0, period)

    @property
    def rate(self) -> float:
        return len(self.edges) / self.period

    def stretched(self, period: int) -> list[int]:
        """Its edges repeated to a longer composite slide (§4.1, step 2)."""
        return [e + shift for shift in range(0, period, self.period) for e in self.edges]


def weave_share_textbook(
    queries: Sequence[Query],
    stream: Stream,
    model: CostModel = PAPER,
    switches: Switches = Switches(),
) -> tuple[Plan, Work]:
    """The plan and the work. For small composite slides only: it counts edge by edge."""
    trees = [_leaf(query) for query in queries]
    work = Work()
    saved: dict[tuple[int, int], float] = {}  # the cost lookup table, by identity of the trees
    while True:
        best, pair = 0.0, None
        for i in range(len(trees) - 1):
            for j in range(i + 1, len(trees)):
                key = (id(trees[i]), id(trees[j]))
                if key not in saved or not switches.lookup:
                    saved[key] = _benefit(trees[i], trees[j], stream, model, switches, work)
                if saved[key] > best:
                    best, pair = saved[key], (i, j)
        if pair is None:
            break
        i, j = pair
        trees[i] = _merged(trees[i], trees.pop(j))
        saved = {k: v for k, v in saved.items() if set(k) <= {id(tree) for tree in trees}}
    return _cheaper_than_shared(trees, queries, stream, model), work


def _cheaper_than_shared(
    trees: list[_Tree], queries: Sequence[Query], stream: Stream, model: CostModel
) -> Plan:
    everything = _leaf(queries[0])
    for query in queries[1:]:
        everything = _merged(everything, _leaf(query))
    if _cost(everything, stream, model) < sum(_cost(tree, stream, model) for tree in trees):
        trees = [everything]
    return plan_of([query.id for query in tree.queries] for tree in trees)


def _leaf(query: Query) -> _Tree:
    marks = {residue + k for m, residue in query.classes for k in range(0, query.slide, m)}
    return _Tree((query,), query.slide, frozenset(marks))


def _merged(x: _Tree, y: _Tree) -> _Tree:
    period = math.lcm(x.period, y.period)
    edges = frozenset(x.stretched(period)) | frozenset(y.stretched(period))
    return _Tree((*x.queries, *y.queries), period, edges)


def _load(tree: _Tree, stream: Stream) -> Load:
    return load_of(tree.queries, tree.rate, cells_of(tree.queries, stream.counts))


def _cost(tree: _Tree, stream: Stream, model: CostModel) -> float:
    return float(model.tree(_load(tree, stream), stream))


def _benefit(
    x: _Tree, y: _Tree, stream: Stream, model: CostModel, switches: Switches, work: Work
) -> float:
    """Eq. 5, with the common edges counted as the switches say (Example 4)."""
    period = math.lcm(x.period, y.period)
    common = _common(x, y, period, switches, work)
    count = len(x.edges) * (period // x.period) + len(y.edges) * (period // y.period) - common
    left, right = _load(x, stream), _load(y, stream)
    both = Load(
        count / period,
        left.overlap + right.overlap,
        left.window_rate + right.window_rate,
        left.window_bits + right.window_bits,
        max(left.longest, right.longest),
        cells_of((*x.queries, *y.queries), stream.counts),
    )
    work.benefits += 1
    return float(_cost(x, stream, model) + _cost(y, stream, model) - model.tree(both, stream))


def _common(x: _Tree, y: _Tree, period: int, switches: Switches, work: Work) -> int:
    if not switches.bitmap:
        found = y.stretched(period)
        work.comparisons += 2 * len(x.queries) * len(found)
        return sum(_is_edge_of(edge, x) for edge in found)
    probed, probing = x, y
    if switches.probe_order and x.rate < y.rate:
        probed, probing = y, x
    found = probing.stretched(period)
    work.comparisons += len(found)
    return sum(edge % probed.period in probed.edges for edge in found)


def _is_edge_of(edge: int, tree: _Tree) -> bool:
    """Is e − offset, or e − offset − r, divisible by the slide of some query? No early way out."""
    hits = [
        (edge - q.offset) % q.slide == 0 or (edge - q.offset - q.length) % q.slide == 0
        for q in tree.queries
    ]
    return any(hits)


VARIANTS = {
    "naive": Switches(False, False, False),
    "cost lookup": Switches(True, False, False),
    "lookup, bitmap": Switches(True, True, False),
    "lookup, bitmap, probe order": Switches(True, True, True),
}


def work_of(queries: Sequence[Query], stream: Stream, model: CostModel = PAPER) -> dict[str, Work]:
    """The work of each variant, counted by replaying the merges with NumPy."""
    forest = Forest([[(query,)] for query in queries], stream, model)
    if not isinstance(forest.space, PeriodSpace):
        raise ValueError("the composite slide is too long to count edge by edge")
    table = Lookup(forest)
    slots = np.arange(len(queries))
    periods = [query.slide for query in queries]
    sizes = np.ones(len(queries), dtype=np.int64)
    work = {name: Work() for name in VARIANTS}
    pairs = np.triu(np.ones((len(queries), len(queries)), dtype=bool), 1)
    each = np.array([_comparisons(forest, periods, sizes, i) for i in slots])  # [x, kind, y]
    _account(work, pairs, each, is_new=pairs)
    while (merged := table.merge_best()) is not None:
        x, y = merged
        pairs[y] = pairs[:, y] = False
        periods[x] = math.lcm(periods[x], periods[y])
        sizes[x] += sizes[y]
        row = _comparisons(forest, periods, sizes, x)
        column = _comparisons(forest, periods, sizes, x, is_second=True)
        each[x], each[:, :, x] = row, column.T
        is_new = np.zeros_like(pairs)
        is_new[x], is_new[:, x] = pairs[x], pairs[:, x]
        _account(work, pairs, each, is_new)
    return work


def _comparisons(
    forest: Forest, periods: list[int], sizes: np.ndarray, slot: int, is_second: bool = False
) -> np.ndarray:
    """[naive, bitmap, probe order] × other slots: comparisons for one benefit.

    The slot is t_x, the others t_y; with `is_second` the other way round.
    """
    rates = forest.mass / forest.space.scale
    slides = np.array([math.lcm(periods[slot], other) for other in periods], dtype=float)
    probing = np.full(len(rates), rates[slot]) if is_second else rates
    probed = sizes if is_second else np.full(len(rates), sizes[slot])
    fewer = np.minimum(rates, rates[slot])
    return np.rint(np.array([2 * probed * probing * slides, probing * slides, fewer * slides]))


def _account(work: dict[str, Work], pairs: np.ndarray, each: np.ndarray, is_new: np.ndarray):
    kinds = {"naive": (0, pairs), "cost lookup": (0, is_new), "lookup, bitmap": (1, is_new)}
    kinds["lookup, bitmap, probe order"] = (2, is_new)
    for name, (kind, counted) in kinds.items():
        work[name].benefits += int(counted.sum())
        work[name].comparisons += int(each[:, kind, :][counted].sum())


def edge_count(queries: Sequence[Query]) -> int:
    """M: the edges within the composite slide, one by one."""
    tree = _leaf(queries[0])
    for query in queries[1:]:
        tree = _merged(tree, _leaf(query))
    return len(tree.edges) * (composite_slide(queries) // tree.period)
