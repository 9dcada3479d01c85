"""Incremental Weave Share: queries come and go, and the plan follows.

A new query becomes a tree, is merged with the tree where that saves most, and the merged tree with
others while that saves. A deleted query leaves its tree, which is then looked at in the same way.
The plan drifts from what Weave Share would find from scratch; the *plan-cost curve* (cost of plans
woven from scratch by number of queries) tells when it has drifted too far:

    cost(P″) / cost extrapolated along the curve − 1 > ε      (Eq. 6)

Source: Weave Share §5.2. Differs in how far the curve is trusted. It starts with two plans, of half
of the queries and of all, so that it has a slope from the beginning; the slope is taken between
points at least a tenth apart, never below zero (one more query cannot make the cheapest plan
cheaper), never above the average cost of a query (sharing makes the next one cheaper, not dearer).
And it reaches no farther than a share ε of the queries: once more have come or gone since the last
plan from scratch, reconstruction is due whatever the curve says. Without that, a slope that was
steep among the first few queries promises costs that are never exceeded, and the error grows
without notice (`weft bench weave` shows both). As in the paper, ε = 0 reconstructs at every change.

Reconstruction is the caller's to run, at once (`reconstruct`) or elsewhere: weave a snapshot of
`queries`, then `adopt` the plan between two batches. Queries that came meanwhile are woven into
it, queries that went are left out. No threads here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from weft.optimizer.weave.cost import CostModel, Stream
from weft.optimizer.weave.forest import Bundle, Forest, bundles_of
from weft.optimizer.weave.greedy import weave_share
from weft.optimizer.weave.plan import PAPER, Plan, Weaver
from weft.optimizer.weave.space import remaining
from weft.optimizer.weave.windows import Query


@dataclass(frozen=True, slots=True)
class Curve:
    """The plan-cost curve: (queries, cost) of plans woven from scratch, oldest first."""

    points: tuple[tuple[int, float], ...] = ()

    def with_point(self, count: int, cost: float) -> Curve:
        """The newest cost for a number of queries replaces an older one."""
        kept = tuple(point for point in self.points if point[0] != count)
        return Curve((*kept, (count, cost)))

    @property
    def slope(self) -> float:
        """The performance slope: cost of one more query. From the origin if there is one point."""
        count, cost = self.points[-1]
        far = [p for p in self.points[:-1] if abs(p[0] - count) >= max(1, count // 10)]
        before = far[-1] if far else (0, 0.0)
        return min(max(0.0, (cost - before[1]) / (count - before[0])), cost / count)

    def distance(self, count: int) -> float:
        """How far so many queries are from the last point, as a share of it."""
        last = self.points[-1][0]
        return abs(count - last) / last

    def expected(self, count: int) -> float:
        """The cost extrapolated to so many queries."""
        last, cost = self.points[-1]
        return max(0.0, cost + self.slope * (count - last))


@dataclass(frozen=True, slots=True)
class Step:
    """What one change did: the plan's cost, what was expected, and whether to reconstruct."""

    cost: float
    expected: float
    is_due: bool  # Eq. 6, or the curve does not reach so far

    @property
    def deviation(self) -> float:
        return deviation(self.cost, self.expected)


def deviation(cost: float, expected: float) -> float:
    """The left side of Eq. 6."""
    if expected <= 0:
        return math.inf if cost > 0 else 0.0
    return cost / expected - 1


class IncrementalWeave:
    """The current plan of a changing set of queries.

    `plan` is one to go on from instead of weaving. `tolerance` is ε: 0 reconstructs at every change, infinity never. `reach` is the share of the
    queries that may change before the curve is too short: ε unless given; infinity is the paper.
    """

    def __init__(
        self,
        queries: Iterable[Query],
        stream: Stream,
        model: CostModel = PAPER,
        *,
        tolerance: float = 0.2,
        reach: float | None = None,
        weaver: Weaver = weave_share,
        plan: Plan | None = None,
    ) -> None:
        self.stream, self.model, self.tolerance, self.weaver = stream, model, tolerance, weaver
        self.reach = tolerance if reach is None else reach
        self.queries: dict[str, Query] = {query.id: query for query in queries}
        self.benefits = 0  # merges weighed since the start, reconstruction not counted
        self.reconstructions = 0
        self.curve = Curve()
        if plan is not None:  # one that stands already: the curve starts with it
            self.adopt(plan)
            return
        if len(self.queries) >= 4:
            half = list(self.queries.values())[::2]
            forest = _forest_of(weaver(half, stream, model), half, stream, model)
            self.curve = self.curve.with_point(len(half), forest.total)
        self.forest = _forest_of((), (), stream, model)
        if self.queries:
            self.adopt(weaver(list(self.queries.values()), stream, model))

    @property
    def plan(self) -> Plan:
        return self.forest.plan

    @property
    def cost(self) -> float:
        return self.forest.total

    def add(self, query: Query) -> Step:
        """Weave one more query into the plan."""
        if query.id in self.queries:
            raise ValueError(f"query {query.id} is already in the plan")
        self.queries[query.id] = query
        if len(self.queries) == 1:
            self.forest = _forest_of(((query.id,),), [query], self.stream, self.model)
            self.curve = Curve().with_point(1, self.cost)
            return self._step()
        self._insert(query)
        return self._step()

    def delete(self, id: str) -> Step:
        """Take a query out of the plan."""
        del self.queries[id]
        slot, tree = next(
            (slot, tree)
            for slot, tree in enumerate(self.forest.trees)
            if any(query.id == id for bundle in tree for query in bundle)
        )
        left = _without(tree, id)
        if not left:
            self.forest.put(slot, None)
            self.forest.compact()
            return self._step()
        gone = next(b for b in tree if any(query.id == id for query in b))[0].classes
        rest = [bundle[0].classes for bundle in left]
        row = self.forest.rows[:, slot]
        if gone not in rest:
            row = remaining(self.forest.space, row, gone, rest)
        self.forest.put(slot, self.forest.standing(left, row))
        self._weave_in(slot)
        return self._step()

    def reconstruct(self) -> Step:
        """Weave everything from scratch, here and now."""
        return self.adopt(self.weaver(list(self.queries.values()), self.stream, self.model))

    def adopt(self, plan: Plan) -> Step:
        """Switch to a plan that was woven from scratch for a snapshot of the queries."""
        named = {id for tree in plan for id in tree}
        known = [query for query in self.queries.values() if query.id in named]
        trees = tuple(tuple(id for id in tree if id in self.queries) for tree in plan)
        self.forest = _forest_of(trees, known, self.stream, self.model)
        self.reconstructions += 1
        if known:
            self.curve = self.curve.with_point(len(known), self.cost)
        for query in self.queries.values():
            if query.id not in named:
                self._insert(query)
        return self._step()

    def _step(self) -> Step:
        if not self.queries:
            return Step(0.0, 0.0, False)
        cost, expected = self.cost, self.curve.expected(len(self.queries))
        is_far = self.curve.distance(len(self.queries)) > self.reach
        return Step(cost, expected, is_far or deviation(cost, expected) > self.tolerance)

    def _insert(self, query: Query) -> None:
        self.forest.make_room(query.classes)
        self._weave_in(self.forest.append(self.forest.standing([(query,)])))

    def _weave_in(self, slot: int) -> None:
        """Merge the tree in this slot with the one where that saves most, and so on."""
        forest = self.forest
        while len(forest) > 1:
            common = forest.common(forest.rows[:, slot])
            gains = forest.gains(slot, common)
            gains[slot] = -np.inf
            self.benefits += len(forest) - 1
            best = int(gains.argmax())
            if not gains[best] > 0:
                return
            slot, other = min(slot, best), max(slot, best)
            forest.merge(slot, other, float(common[best]))
            forest.compact()


def _without(tree: tuple[Bundle, ...], id: str) -> list[Bundle]:
    left = (tuple(query for query in bundle if query.id != id) for bundle in tree)
    return [bundle for bundle in left if bundle]


def _forest_of(plan: Plan, queries: Iterable[Query], stream: Stream, model: CostModel) -> Forest:
    named = {query.id: query for query in queries}
    trees = [bundles_of((named[id] for id in tree), model.is_even) for tree in plan if tree]
    return Forest(trees, stream, model)
