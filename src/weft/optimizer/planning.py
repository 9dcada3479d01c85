"""From classes to nodes: kinds, trees, roll-ups, and what feeds what. Pure; see each module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.optimizer.feeding import fed
from weft.optimizer.fusing import Expressions
from weft.optimizer.lattice import PlannedNode, derived, node_for
from weft.optimizer.need import Need
from weft.optimizer.weaving import Home, Weaving


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
    homes = weaving.homes(needs, kinds, current or {})
    groups: dict[tuple, list[Need]] = {}
    for need in needs:
        groups.setdefault((homes.get(need.key), kinds[need.key]), []).append(need)
    planned = [node_for(home, group) for (home, _), group in groups.items()]
    found = derived(planned, weaving.measures)
    return found if weaving.forced else fed(found, weaving.measures)
