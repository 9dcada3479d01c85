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

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from weft.logical.panes import Panes, joined
from weft.optimizer.costing import Placed, network_cost, total, tree_of, work_by_tree
from weft.optimizer.lattice import PlannedNode, with_parents
from weft.optimizer.measures import Measures
from weft.optimizer.nodes import Node

LEAST = 1e-9  # a change saves something if it saves more than this share of the cost


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
    return plan_cost(one, m) < plan_cost(other, m) * (1 - LEAST)


def _fed_by_each_other(
    planned: tuple[PlannedNode, ...], measures: Measures
) -> tuple[PlannedNode, ...]:
    """Tree by tree, coarsest first: let its roots be fed by finer ones, if that is cheaper."""
    trees = Trees(planned, measures)
    for each in sorted(trees.members, key=lambda panes: (-panes.width, panes.offset)):
        trees.feed(each)
    return _attached(planned, trees.parents)


class Trees:
    """The trees of a plan, and what each costs as its roots find parents.

    A tree's cost depends on which of its nodes are roots and on the cells that these are computed
    from in the end, so feeding one changes its own and that of the trees that it feeds: no other.
    """

    def __init__(self, planned: tuple[PlannedNode, ...], measures: Measures) -> None:
        self.planned, self.measures = planned, measures
        self.parents = [p.parent for p in planned]
        self.members: dict[Panes, list[int]] = defaultdict(list)
        for i, p in enumerate(planned):
            if p.node.panes is not None:
                self.members[p.node.panes].append(i)
        self._names = [frozenset(p.node.column_names()) for p in planned]
        self._are_light = [all(s.is_light for s in p.node.statistics) for p in planned]
        self._panes = list(self.members)
        self._widths = np.array([panes.width for panes in self._panes], dtype=np.int64)
        self._offsets = np.array([panes.offset for panes in self._panes], dtype=np.int64)
        self._fed: dict[Panes, set[Panes]] = defaultdict(set)  # trees, by those they read cells of
        self._costs = {panes: self._cost(panes) for panes in self.members}
        self.total = sum(self._costs.values())

    def feed(self, panes: Panes) -> None:
        """Let the roots of a tree be fed by finer trees, if that is cheaper."""
        roots = [i for i in self.members[panes] if self.parents[i] is None]
        found = {i: parent for i in roots if (parent := self._feeder(i)) is not None}
        if not found:
            return
        for i, parent in found.items():
            self.parents[i] = parent
        costs = {each: self._cost(each) for each in self._below(panes)}
        saved = sum(self._costs[each] - cost for each, cost in costs.items())
        if saved <= LEAST * self.total:
            for i in found:
                self.parents[i] = None
            return
        self._costs |= costs
        self.total -= saved
        for parent in found.values():
            self._fed[self.planned[parent].node.panes].add(panes)

    def _feeder(self, i: int) -> int | None:
        """The smallest node that the cells of a root can come from."""
        return min(
            (j for panes in self._finer(self.planned[i].node.panes) for j in self.members[panes]
             if self._can_feed(j, i)),
            key=lambda j: (self.measures.cells(self.planned[j].node), j), default=None,
        )  # fmt: skip

    def _finer(self, panes: Panes) -> list[Panes]:
        """Those that have every edge of these, and more."""
        is_finer = (panes.width % self._widths == 0) & (panes.width > self._widths)
        is_finer &= (panes.offset - self._offsets) % self._widths == 0
        return [self._panes[k] for k in np.flatnonzero(is_finer)]

    def _can_feed(self, fine: int, coarse: int) -> bool:
        one, other = self.planned[fine].node, self.planned[coarse].node
        if one.is_versioned != other.is_versioned or one.apart != other.apart:
            return False
        are_light = self._are_light[fine] and self._are_light[coarse]
        return are_light and self._names[coarse] <= self._names[fine]

    def _below(self, panes: Panes) -> set[Panes]:
        """A tree, and those that are fed by it, by those, and so on."""
        found, todo = {panes}, [panes]
        while todo:
            new = self._fed[todo.pop()] - found
            found |= new
            todo += new
        return found

    def _cost(self, panes: Panes) -> float:
        above: dict[int, Placed] = {}
        for i in self.members[panes]:
            while i is not None and i not in above:
                above[i] = self._placed(i)
                i = self.parents[i]
        members = [above[i] for i in self.members[panes]]
        work = work_by_tree(members, self.measures, above)
        return total(work.values(), self.measures.costs)

    def _placed(self, i: int) -> Placed:
        return Placed(i, self.planned[i].node, self.parents[i], self.planned[i].eager)


def _attached(planned: Sequence[PlannedNode], parents: list[int | None]) -> tuple[PlannedNode, ...]:
    """Parents first, as every plan has them."""
    place: dict[int, int] = {}

    def visit(i: int) -> None:
        if i not in place:
            if parents[i] is not None:
                visit(parents[i])
            place[i] = len(place)

    for i in range(len(planned)):
        visit(i)
    found = [None if parents[i] is None else place[parents[i]] for i in place]
    return with_parents([planned[i] for i in place], found)


def with_base(planned: Sequence[PlannedNode]) -> tuple[PlannedNode, ...] | None:
    """The plan with a base below all its trees: a node for each set of columns of their roots that
    the finest tree lacks."""
    roots = [p.node for p in planned if p.parent is None and p.node.panes is not None]
    roots = [node for node in roots if all(s.is_light for s in node.statistics)]
    panes = joined(*{node.panes for node in roots}) if roots else None
    kinds = {_kind(node): node for node in roots}
    finest = {_kind(node) for node in roots if node.panes == panes}
    highest = [
        node
        for kind, node in kinds.items()
        if kind not in finest and not any(_is_below(kind, other) for other in kinds)
    ]
    bases = [_base(node, panes) for node in highest]
    if not bases:
        return None
    moved = [
        replace(p, parent=None if p.parent is None else p.parent + len(bases)) for p in planned
    ]
    return (*bases, *moved)


def _kind(node: Node) -> tuple[frozenset[str], bool]:
    return frozenset(node.column_names()), node.is_versioned


def _is_below(kind: tuple[frozenset[str], bool], other: tuple[frozenset[str], bool]) -> bool:
    return kind[1] == other[1] and kind[0] < other[0]


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
