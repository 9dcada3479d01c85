"""Factor windows: trees that are fed by the cells of a finer one instead of by the rows.

Every tree reads all rows of a batch. Where another tree's panes are finer and fit, and its nodes have
the columns, its cells give the coarser tree's cells too, in the same job and without another pass:
cells are far fewer than rows on fast streams. If no tree is finer than the others, a base that
nobody reads can be: panes of the greatest common divisor, without a pyramid.

Source: beyond Weave Share (weave/factor.py has the idea by the paper's costs). The whole network is
costed with and without (costing.py), and what is cheaper stays.
Sound because merging is associative, and each pane of the coarser tree is a union of finer ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from weft.logical.panes import Panes, joined
from weft.optimizer.costing import Placed, network_cost, tree_of
from weft.optimizer.lattice import PlannedNode, with_parents
from weft.optimizer.measures import Measures
from weft.optimizer.nodes import Node


def fed(planned: tuple[PlannedNode, ...], measures: Measures) -> tuple[PlannedNode, ...]:
    """The same nodes, fed in the cheapest way that was found; a base may come with them."""
    if len({tree_of(p.node) for p in planned if p.node.panes}) < 2:
        return planned
    best = _fed_by_each_other(planned, measures)
    based = with_base(planned)
    if based is not None:
        based = _fed_by_each_other(based, measures)
        if _is_cheaper(based, best, measures):
            best = based
    return _in_order(best)


def plan_cost(planned: Sequence[PlannedNode], measures: Measures) -> float:
    """Milliseconds a batch."""
    placed = [Placed(i, p.node, p.parent, p.eager) for i, p in enumerate(planned)]
    return network_cost(placed, measures)


def _is_cheaper(one: Sequence[PlannedNode], other: Sequence[PlannedNode], m: Measures) -> bool:
    return plan_cost(one, m) < plan_cost(other, m) * (1 - 1e-9)


def _fed_by_each_other(
    planned: tuple[PlannedNode, ...], measures: Measures
) -> tuple[PlannedNode, ...]:
    """Tree by tree, coarsest first: let its roots be fed by finer ones, if that is cheaper."""
    panes = {p.node.panes for p in planned if p.node.panes is not None}
    for each in sorted(panes, key=lambda found: (-found.width, found.offset)):
        parents = [p.parent for p in planned]
        for i, item in enumerate(planned):
            if item.parent is None and item.node.panes == each:
                parents[i] = _feeder(planned, i, measures)
        tried = _attached(planned, parents)
        if _is_cheaper(tried, planned, measures):
            planned = tried
    return planned


def _attached(planned: Sequence[PlannedNode], parents: list[int | None]) -> tuple[PlannedNode, ...]:
    """Parents first, as every plan has them."""
    order: list[int] = []

    def visit(i: int) -> None:
        if i not in order:
            if parents[i] is not None:
                visit(parents[i])
            order.append(i)

    for i in range(len(planned)):
        visit(i)
    place = {i: at for at, i in enumerate(order)}
    found = [None if parents[i] is None else place[parents[i]] for i in order]
    return with_parents([planned[i] for i in order], found)


def _feeder(planned: Sequence[PlannedNode], i: int, measures: Measures) -> int | None:
    node = planned[i].node
    found = [j for j, item in enumerate(planned) if _can_feed(item.node, node)]
    return min(found, key=lambda j: (measures.cells(planned[j].node), j), default=None)


def _can_feed(fine: Node, coarse: Node) -> bool:
    if fine.panes is None or fine.panes == coarse.panes or fine.apart != coarse.apart:
        return False
    if fine.is_versioned != coarse.is_versioned or joined(fine.panes, coarse.panes) != fine.panes:
        return False
    if not all(s.is_light for s in (*fine.statistics, *coarse.statistics)):
        return False
    return set(coarse.column_names()) <= set(fine.column_names())


def with_base(planned: Sequence[PlannedNode]) -> tuple[PlannedNode, ...] | None:
    """The plan with a base below all its trees: a node for each set of columns of their roots that
    the finest tree lacks."""
    roots = [p.node for p in planned if p.parent is None and p.node.panes is not None]
    roots = [node for node in roots if all(s.is_light for s in node.statistics)]
    panes = reduce(joined, [node.panes for node in roots], roots[0].panes) if roots else None
    finest = [node for node in roots if node.panes == panes]
    highest = {
        (node.columns, node.is_versioned): node
        for node in roots
        if not any(_is_below(node, other) for other in roots)
        and not any(_is_below(node, other) or _is_alike(node, other) for other in finest)
    }
    bases = [_base(node, panes) for node in highest.values()]
    if not bases:
        return None
    moved = [
        replace(p, parent=None if p.parent is None else p.parent + len(bases)) for p in planned
    ]
    return (*bases, *moved)


def _is_below(node: Node, other: Node) -> bool:
    same = node.is_versioned == other.is_versioned
    return same and set(node.column_names()) < set(other.column_names())


def _is_alike(node: Node, other: Node) -> bool:
    return node.columns == other.columns and node.is_versioned == other.is_versioned


def _base(node: Node, panes: Panes) -> PlannedNode:
    return PlannedNode(replace(node, panes=panes, pyramid=(1,)), None, {})


def _in_order(planned: tuple[PlannedNode, ...]) -> tuple[PlannedNode, ...]:
    """Without bases that feed nothing."""
    used = {p.parent for p in planned}
    idle = [i for i, p in enumerate(planned) if not p.conditions and i not in used]
    if not idle:
        return planned
    kept = [i for i in range(len(planned)) if i not in idle]
    place = {i: at for at, i in enumerate(kept)}
    return tuple(
        replace(planned[i], parent=None if planned[i].parent is None else place[planned[i].parent])
        for i in kept
    )
