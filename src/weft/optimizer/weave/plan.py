"""A weave plan: which queries share a tree. A plain value, in canonical order.

Law: a plan names every query exactly once. Its cost is the sum over its trees (Eq. 3), counted
here from the queries themselves, whatever shortcuts the algorithm took that found it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from weft.optimizer.weave.cost import CostModel, PaperCosts, Stream, cells_of, load_of
from weft.optimizer.weave.density import Density, edge_rate
from weft.optimizer.weave.even import even_rate
from weft.optimizer.weave.windows import Query

Tree = tuple[str, ...]  # ids of the queries that share it
Plan = tuple[Tree, ...]
Weaver = Callable[[Iterable[Query], Stream, CostModel], Plan]  # finds a plan from scratch

PAPER = PaperCosts()


@dataclass(frozen=True, slots=True)
class TreeCost:
    """One tree with what its cost is made of, as EXPLAIN shows it."""

    tree: Tree
    edge_rate: Density
    overlap: float
    cells: float
    cost: float


def plan_of(trees: Iterable[Iterable[str]]) -> Plan:
    """The canonical form: ids sorted within trees, trees sorted, empty ones dropped."""
    return tuple(sorted(tuple(sorted(tree)) for tree in map(tuple, trees) if tree))


def covers_once(plan: Plan, queries: Iterable[Query]) -> bool:
    """Does the plan name every query exactly once, and nothing else?"""
    return sorted(q for tree in plan for q in tree) == sorted(q.id for q in queries)


def by_id(queries: Iterable[Query]) -> dict[str, Query]:
    return {query.id: query for query in queries}


def tree_cost(
    tree: Tree, queries: Mapping[str, Query], stream: Stream, model: CostModel = PAPER
) -> TreeCost:
    """The cost of one tree (Eq. 1), counted from scratch."""
    members = [queries[id] for id in tree]
    rate = Density(even_rate(members), 0, "even") if model.is_even else edge_rate(members)
    load = load_of(members, rate.value, cells_of(members, stream.counts))
    return TreeCost(tree, rate, load.overlap, load.cells, float(model.tree(load, stream)))


def plan_cost(
    plan: Plan, queries: Iterable[Query], stream: Stream, model: CostModel = PAPER
) -> float:
    """The cost of a plan per tick (Eq. 3)."""
    named = by_id(queries)
    return sum(tree_cost(tree, named, stream, model).cost for tree in plan)


def weaveability(left: Iterable[Query], right: Iterable[Query]) -> float:
    """Eq. 4: common edges over all edges, of two queries or of two trees; 1 is perfect."""
    left, right = tuple(left), tuple(right)
    both = edge_rate((*left, *right)).value
    return (edge_rate(left).value + edge_rate(right).value - both) / both


def merge_gain(
    left: Iterable[Query], right: Iterable[Query], stream: Stream, model: CostModel = PAPER
) -> float:
    """Eq. 5: what merging two trees saves; negative if they are better apart."""
    left, right = tuple(left), tuple(right)
    named = by_id((*left, *right))
    trees = (tuple(q.id for q in side) for side in (left, right, (*left, *right)))
    x, y, xy = (tree_cost(tree, named, stream, model).cost for tree in trees)
    return x + y - xy
