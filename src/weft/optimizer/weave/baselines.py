"""What Weave Share is compared with: No Share, Shared, Random, Insert-then-Weave, exhaustive.

Source: Weave Share §4.1 (No Share and Shared), §6 (Random, Insert-then-Weave, exhaustive search).
Differs: the exhaustive search is a dynamic programme over subsets, 3ⁿ steps instead of one for each
of the Bell(n) plans, so that it referees 15 queries in seconds. Sound because a plan's cost is the
sum of its trees': the tree that holds the first query of a set, and a cheapest plan of the rest.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np

from weft.optimizer.weave.cost import CostModel, Stream, cells_of, load_of
from weft.optimizer.weave.forest import Forest, bundles_of
from weft.optimizer.weave.greedy import weave
from weft.optimizer.weave.plan import PAPER, Plan, plan_of
from weft.optimizer.weave.space import rows_of, space_for
from weft.optimizer.weave.windows import Query

EXHAUSTIVE_QUERIES = 16


def no_share(queries: Iterable[Query]) -> Plan:
    """A tree for each query."""
    return plan_of((query.id,) for query in queries)


def shared(queries: Iterable[Query]) -> Plan:
    """One tree for all (shared time slices)."""
    return plan_of([[query.id for query in queries]])


def random_plan(queries: Iterable[Query], seed: int = 0) -> Plan:
    """Each query in one of m trees at random, m itself at random."""
    queries, draw = list(queries), random.Random(seed)
    trees: list[list[str]] = [[] for _ in range(draw.randint(1, max(1, len(queries))))]
    for query in queries:
        draw.choice(trees).append(query.id)
    return plan_of(trees)


def insert_then_weave(queries: Iterable[Query], stream: Stream, model: CostModel = PAPER) -> Plan:
    """Put each query, in the given order, into the tree where it saves most; then weave."""
    queries = list(queries)
    space = space_for((query.classes for query in queries), model.is_even)
    forest = Forest(
        [[bundle] for bundle in bundles_of(queries, model.is_even)], stream, model, space
    )
    for slot in range(1, len(forest)):
        common = forest.common(forest.rows[:, slot])
        gains = forest.gains(slot, common)[:slot]
        gains[[not tree for tree in forest.trees[:slot]]] = -np.inf
        best = int(gains.argmax())
        if gains[best] > 0:
            forest.merge(best, slot, common[best])
    forest.compact()
    return weave(forest).plan


def exhaustive(queries: Sequence[Query], stream: Stream, model: CostModel = PAPER) -> Plan:
    """A cheapest plan of at most 16 queries."""
    queries = list(queries)
    if not 0 < len(queries) <= EXHAUSTIVE_QUERIES:
        raise ValueError(f"exhaustive search takes 1 to {EXHAUSTIVE_QUERIES} queries")
    costs = _subset_costs(queries, stream, model)
    best, choice = np.zeros(len(costs)), np.zeros(len(costs), dtype=np.int64)
    for subset in range(1, len(costs)):
        first = subset & -subset
        rest = _subsets(subset ^ first)  # of the others, those that join the first one's tree
        totals = costs[rest | first] + best[(subset ^ first) ^ rest]
        found = int(totals.argmin())
        best[subset], choice[subset] = totals[found], rest[found] | first
    trees, left = [], len(costs) - 1
    while left:
        tree = int(choice[left])
        trees.append([query.id for i, query in enumerate(queries) if tree >> i & 1])
        left ^= tree
    return plan_of(trees)


def _subset_costs(queries: list[Query], stream: Stream, model: CostModel) -> np.ndarray:
    """The cost of a tree for each subset of queries, by bit mask; none for the empty one."""
    space = space_for((query.classes for query in queries), model.is_even)
    rows = rows_of(space, [[query.classes] for query in queries])
    costs = np.zeros(1 << len(queries))

    def visit(start: int, mask: int, row: np.ndarray, members: tuple[Query, ...]) -> None:
        for i in range(start, len(queries)):
            union, found = space.join(row, rows[:, i]), (*members, queries[i])
            rate = float(space.mass(union[:, None])[0]) / space.scale
            load = load_of(found, rate, cells_of(found, stream.counts))
            costs[mask | 1 << i] = model.tree(load, stream)
            visit(i + 1, mask | 1 << i, union, found)

    visit(0, 0, np.zeros(rows.shape[0], dtype=np.uint64), ())
    return costs


def _subsets(mask: int) -> np.ndarray:
    """All subsets of a bit mask, the empty one first."""
    found = np.zeros(1, dtype=np.int64)
    while mask:
        bit = mask & -mask
        found = np.concatenate([found, found | bit])
        mask ^= bit
    return found
