"""From classes to nodes: kinds, trees, roll-ups, and what feeds what. Pure; see each module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from weft.optimizer.feeding import fed, plan_cost
from weft.optimizer.fusing import Expressions
from weft.optimizer.lattice import PlannedNode, derived, node_for
from weft.optimizer.need import Need
from weft.optimizer.weaving import FED, Home, KindKey, Weaving

FEW = 200  # sets of panes for which a plan is also woven as if its trees were fed


def plan_nodes(
    needs: Sequence[Need],
    weaving: Weaving | None = None,
    current: Mapping[str, Home] | None = None,
    standing: Mapping[str, Expressions] | None = None,
) -> tuple[PlannedNode, ...]:
    """The nodes for a set of classes, each after the node it derives from.

    `current` and `standing` say which panes and which signatures classes read now; without them
    the plan is woven from scratch.
    """
    weaving = weaving or Weaving()
    kinds = weaving.kinds(needs, standing)
    best = _nodes(needs, kinds, weaving, weaving, current or {})
    if not current and weaving.forced is None and _are_few(needs):
        other = _nodes(needs, kinds, _fed_prices(weaving), weaving, {})
        if plan_cost(other, weaving.measures) < plan_cost(best, weaving.measures):
            return other
    return best


def _nodes(
    needs: Sequence[Need],
    kinds: Mapping[str, KindKey],
    prices: Weaving,
    weaving: Weaving,
    current: Mapping[str, Home],
) -> tuple[PlannedNode, ...]:
    homes = prices.homes(needs, kinds, current)
    groups: dict[tuple, list[Need]] = {}
    for need in needs:
        groups.setdefault((homes.get(need.key), kinds[need.key]), []).append(need)
    planned = [node_for(home, group) for (home, _), group in groups.items()]
    found = derived(planned, weaving.measures)
    if weaving.forced == FED:
        dear = replace(weaving.measures.costs, tree=1e9, step=0.0, cell=0.0, node=0.0)
        return fed(found, replace(weaving.measures, costs=dear))
    return found if weaving.forced else fed(found, weaving.measures)


def _fed_prices(weaving: Weaving) -> Weaving:
    """As if all trees were fed by cells: more of them pay then (weave/factor.py)."""
    costs = replace(weaving.measures.costs, tree=0.0, row=0.0, expand=0.0)
    return replace(weaving, measures=replace(weaving.measures, costs=costs))


def _are_few(needs: Sequence[Need]) -> bool:
    return 1 < len({n.value.panes for n in needs if n.value.window}) <= FEW
