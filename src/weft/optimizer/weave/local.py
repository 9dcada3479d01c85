"""Local search: move one bundle of queries at a time to where it costs least.

Source: Weave Share §6 (LS from No Share and from Random, bounded by 2, 5 or 10 times the
iterations of Weave Share). Differs: an iteration takes the next bundle in a shuffled order and
makes its best move, if that saves anything, instead of weighing all moves of all queries; so an
iteration costs about as much as one of Weave Share.

`improved` is the same search started from Weave Share's own plan, until a round of all bundles
moves nothing (or for a number of rounds). The paper does not do this; every move saves, so the
plan is never worse, and merging is tried again at the end since moves may make it pay.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np

from weft.optimizer.weave.cost import CostModel, Load, Stream
from weft.optimizer.weave.even import Members
from weft.optimizer.weave.forest import Bundle, Forest, Standing, bundles_of
from weft.optimizer.weave.greedy import weave, woven
from weft.optimizer.weave.kinds import KindShapes
from weft.optimizer.weave.plan import PAPER, Plan
from weft.optimizer.weave.space import packed, unpacked
from weft.optimizer.weave.windows import Query

LEAST = 1e-9  # a move saves something if it saves more than this share of the plan's cost


class Search:
    """A plan under search: where each bundle stands, and how many moves were tried and made."""

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.tried = self.made = 0
        self.home = {b[0].id: slot for slot, tree in enumerate(forest.trees) for b in tree}
        self.bundles = {b[0].id: b for tree in forest.trees for b in tree}
        self._held: dict[int, np.ndarray] = {}  # by how many bundles of a tree, for each edge
        self._once: dict[int, np.ndarray] = {}
        self._members: dict[int, Members] = {}

    def once(self, slot: int) -> np.ndarray:
        """The edges that one bundle alone brings to this tree: those that leave with it."""
        if slot not in self._held:
            self._held[slot] = np.zeros(64 * self.forest.space.words, dtype=np.int16)
            for bundle in self.forest.trees[slot]:
                self._held[slot] += unpacked(self.forest.row(bundle[0].classes))
        if slot not in self._once:
            self._once[slot] = packed(self._held[slot] == 1)
        return self._once[slot]

    def members(self, slot: int) -> Members:
        if slot not in self._members:
            self._members[slot] = Members(self.forest.trees[slot])
        return self._members[slot]

    def without(self, slot: int, alone: Standing) -> tuple[np.ndarray, float]:
        """The edges of a tree without one of its bundles, and their mass."""
        forest = self.forest
        if forest.space.is_even:
            panes = self.members(slot).panes_without(alone.bundles[0])
            return np.array(panes, dtype=np.uint64), 1 / panes[0]
        gone = alone.row & self.once(slot)
        mass = float(forest.mass[slot] - forest.space.mass(gone[:, None])[0])
        return forest.rows[:, slot] & ~gone, mass

    def least(self, slot: int, alone: Standing) -> tuple[float, float]:
        """At least how long the windows are that stay, and what is held by those that do."""
        forest, bundle = self.forest, alone.bundles[0]
        if forest.space.is_even and isinstance(forest.shapes, KindShapes):
            found = self.members(slot)
            kinds = forest.stream.counts.number(found.kinds_without(bundle))
            return found.longest_without(bundle), kinds
        other = next(found for found in forest.trees[slot] if found is not bundle)
        cells = forest.shapes.cells(forest.shapes.numbers(other))
        return max(query.length for query in other), cells

    def leave(self, slot: int, left: Standing, alone: Standing) -> None:
        """Let what is left of a tree stand where it stood."""
        self.forest.put(slot, left if left.bundles else None)
        self._changed(slot, alone, np.subtract)

    def arrive(self, slot: int | None, tree: Standing, alone: Standing) -> None:
        """Let a tree that has one bundle more stand in its slot (None: a new one)."""
        if slot is None:
            slot = self.forest.append(tree)
        else:
            self.forest.put(slot, tree)
        self._changed(slot, alone, np.add)
        self.home[alone.bundles[0][0].id] = slot

    def _changed(self, slot: int, alone: Standing, how: np.ufunc) -> None:
        if slot in self._held:
            how(self._held[slot], unpacked(alone.row), out=self._held[slot])
        self._once.pop(slot, None)
        self._members.pop(slot, None)


def local_search(
    queries: Iterable[Query],
    stream: Stream,
    model: CostModel = PAPER,
    *,
    start: Plan,
    iterations: int,
    seed: int = 0,
) -> Plan:
    """So many iterations from a given plan; bundles that it splits stay with their first query."""
    bundles = bundles_of(queries, model.is_even)
    search = Search(Forest(_grouped(bundles, start), stream, model))
    order = [bundle[0].id for bundle in bundles]
    draw = random.Random(seed)
    idle = 0
    while search.tried < iterations and idle < len(order):
        if search.tried % len(order) == 0:
            draw.shuffle(order)
        idle = 0 if _move(search, order[search.tried % len(order)]) else idle + 1
        search.tried += 1
    return search.forest.plan


def improved(
    queries: Iterable[Query], stream: Stream, model: CostModel = PAPER, rounds: int = 3
) -> Plan:
    """Weave Share, then local improvement: the plan that the engine uses."""
    return improve(woven(queries, stream, model), rounds).plan


def improve(forest: Forest, rounds: int = 3) -> Forest:
    """Move bundles and merge trees while that saves, at most so many rounds."""
    for _ in range(rounds):
        search = Search(forest)
        for id in [bundle[0].id for tree in forest.trees for bundle in tree]:
            _move(search, id)
        forest.compact()
        if not search.made:
            break
        forest = weave(forest)
    return forest


def _grouped(bundles: list[Bundle], plan: Plan) -> list[list[Bundle]]:
    home = {id: i for i, tree in enumerate(plan) for id in tree}
    trees: list[list[Bundle]] = [[] for _ in plan]
    for bundle in bundles:
        trees[home[bundle[0].id]].append(bundle)
    return [tree for tree in trees if tree]


def _move(search: Search, id: str) -> bool:
    """Make the best move of the bundle that begins with this query, if it saves."""
    forest, source = search.forest, search.home[id]
    bundle = search.bundles[id]
    alone = forest.standing([bundle], forest.row(bundle[0].classes))
    common = forest.common(alone.row)
    gains = forest.gains_of(alone, common)
    gains[source] = -np.inf
    target = int(gains.argmax())
    joins = gains[target] > 0
    arrival = alone.cost - (float(gains[target]) if joins else 0.0)  # what it costs where it goes
    left = _left(search, source, bundle, alone, arrival)
    least = LEAST * forest.total
    if left is None or forest.cost[source] - left.cost - arrival <= least:
        return False
    search.leave(source, left, alone)
    if joins:
        search.arrive(target, forest.joined(target, alone, float(common[target])), alone)
    else:
        search.arrive(None if left.bundles else source, alone, alone)
    search.made += 1
    return True


def _left(
    search: Search, source: int, bundle: Bundle, alone: Standing, arrival: float
) -> Standing | None:
    """The tree without the bundle; None if the move cannot save, told without counting it all.

    Its edge rate is exact, its load a difference, its cells at least those of one that stays.
    """
    forest = search.forest
    if len(forest.trees[source]) == 1:
        empty = np.zeros(0, dtype=np.uint64)
        return Standing((), empty, 0.0, (0, 0), alone.load, 0.0)
    row, mass = search.without(source, alone)
    longest, cells = search.least(source, alone)
    load = Load(
        mass / forest.space.scale,
        forest.overlap[source] - alone.load.overlap,
        forest.window_rate[source] - alone.load.window_rate,
        forest.window_bits[source] - alone.load.window_bits,
        longest,
        cells,
    )
    least = float(forest.model.tree(load, forest.stream)) * (1 - LEAST)
    if forest.cost[source] - least - arrival <= 0:
        return None
    rest = tuple(found for found in forest.trees[source] if found is not bundle)
    return forest.standing(rest, row, mass)
