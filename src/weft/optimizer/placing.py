"""Placing new queries in a stream's network: which class, which node, and what must change.

A query joins the class it equals; a class reads the smallest node that has what it needs; where none
has, it is woven into the trees that stand (Weave Share §5.2) and the nodes that differ are made, the
rest stays (ARGUS §3.1: the network is expanded by what is new). `reweave` places all classes anew.
A `Placement` is a value; nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from weft.optimizer.lattice import PlannedNode, choose
from weft.optimizer.need import Need
from weft.optimizer.network import Network, reaches
from weft.optimizer.nodes import LiveClass, LiveNode, Node, Route
from weft.optimizer.planning import plan_nodes
from weft.optimizer.predicates import Condition
from weft.optimizer.weaving import Home, Weaving

NEW = -1  # nodes to be made are numbered -1, -2, … until the catalog gives them ids


@dataclass(slots=True, eq=False)
class Placement:
    """What registering some queries does to a network."""

    needs: list[Need]  # of each query, in order; its class may tell itself apart (`since`)
    routes: dict[str, Route] = field(default_factory=dict)  # new classes → their only route
    made: list[LiveNode] = field(default_factory=list)
    moved: dict[str, Route] = field(default_factory=dict)  # classes that read on from another node
    whole: set[str] = field(default_factory=set)  # of those: for all ticks, not only from now on
    retired: set[int] = field(default_factory=set)


def place(
    network: Network,
    needs: Sequence[Need],
    tick: int,
    can_refill: bool,
    weaving: Weaving | None = None,
    clock: int | None = None,
) -> Placement:
    """Find each need a class and a node. `can_refill`: every row since the start is retained."""
    weaving = weaving or Weaving()
    placement = Placement([_apart(network, need, tick, can_refill, clock) for need in needs])
    pending, asked = [], _together(placement.needs)
    for need in asked:
        known = network.classes.get(need.key)
        if known is not None and _serves(network, known, need):
            continue
        found = None
        if weaving.forced is None:
            both = _with_known(network, need, clock)
            nodes = [n for n in network.folding() if network.has_past(n, both, clock)]
            found = choose(nodes, both, weaving.measures)
        if found is not None:
            _settle(network, need.key, Route(found[0].id, found[1], 0, None), placement)
        else:
            pending.append(need)
    if pending:
        _replan(network, asked, tick, can_refill, placement, weaving, clock)
    return placement


def _together(needs: Sequence[Need]) -> list[Need]:
    """What new queries of one class need together."""
    found: dict[str, Need] = {}
    for need in needs:
        other = found.get(need.key, need)
        found[need.key] = replace(
            need,
            statistics=_union(other.statistics, need.statistics),
            is_eager=other.is_eager or need.is_eager,
            forgotten=_both_forgot(other, need),
        )
    return list(found.values())


def _both_forgot(one: Need, other: Need) -> int | None:
    cuts = (one.forgotten, other.forgotten)
    return None if None in cuts else min(cuts)


def reweave(network: Network, tick: int, weaving: Weaving) -> Placement:
    """Place all classes anew, by a plan from scratch: the nodes that it lacks fold from the next
    tick on, and classes read on from them. No row is folded again, no partial is moved."""
    return switched(network, plan_nodes(list(needs_of(network).values()), weaving), tick)


def switched(network: Network, planned: Sequence[PlannedNode], tick: int) -> Placement:
    """What takes a network to a plan."""
    placement = Placement([])
    ids = _matched(network, planned, placement, born=tick + 1)
    for item, node_id in zip(planned, ids, strict=True):
        for key, condition in item.conditions.items():
            known = network.classes.get(key)
            if known is not None and known.open_route.node_id != node_id:
                placement.moved[key] = Route(node_id, condition, tick + 1, None)
    placement.retired = {live.id for live in network.folding()} - set(ids)
    return placement


def needs_of(network: Network, clock: int | None = None) -> dict[str, Need]:
    """What the classes of a network need, by their keys."""
    return {
        c.value.key: Need(
            c.value, _union(c.statistics), c.eager_from is not None, c.forgotten(clock)
        )
        for c in network.classes.values()
    }


def homes_of(network: Network) -> dict[str, Home]:
    """The panes that the classes of a network read."""
    found = {}
    for key, known in network.classes.items():
        node = network.nodes[known.open_route.node_id].node
        if node.panes is not None:
            found[key] = Home(node.panes, node.apart)
    return found


def signatures_of(network: Network) -> dict[str, frozenset[str]]:
    """The expressions of the nodes that the classes of a network read."""
    nodes = {i: frozenset(a.key for a in n.node.signature()) for i, n in network.nodes.items()}
    return {key: nodes[known.open_route.node_id] for key, known in network.classes.items()}


def _serves(network: Network, known: LiveClass, need: Need) -> bool:
    """Whether every node on a class's routes has the statistics."""
    wanted = {s.column for s in need.statistics}
    return all(
        wanted <= {s.column for s in network.nodes[r.node_id].node.statistics} for r in known.routes
    )


def _apart(network: Network, need: Need, tick: int, can_refill: bool, clock: int | None) -> Need:
    """A class that needs what its elder has not, or no longer keeps, and whose elder's past cannot
    be refilled, is a class of its own."""
    known = network.classes.get(need.key)
    if known is None:
        return need
    is_logged = need.value.is_versioned or need.value.window is None
    if not reaches(known.forgotten(clock), need.forgotten):
        return _younger(network, need, tick, clock)
    if _serves(network, known, need) or (can_refill and not is_logged):
        return need
    return replace(need, value=replace(need.value, since=tick))


def _younger(network: Network, need: Need, tick: int, clock: int | None) -> Need:
    """A class that keeps more than its elder: one that another query has brought, or a new one."""
    for other in network.classes.values():
        has_past = reaches(other.forgotten(clock), need.forgotten)
        is_same = has_past and replace(other.value, since=0) == need.value
        if is_same and _serves(network, other, need):
            return replace(need, value=other.value)
    return replace(need, value=replace(need.value, since=tick))


def _settle(network: Network, key: str, route: Route, placement: Placement) -> None:
    """Let a class read one node that has all its rows."""
    if key in network.classes:
        placement.moved[key] = route
        placement.whole.add(key)
    else:
        placement.routes[key] = route


def _with_known(network: Network, need: Need, clock: int | None) -> Need:
    known = network.classes.get(need.key)
    if known is None:
        return need
    both = _union(known.statistics, need.statistics)
    return replace(need, statistics=both, forgotten=known.forgotten(clock))


def _union(*groups) -> tuple:
    if sum(map(len, groups)) < 2:
        return tuple(s for group in groups for s in group)
    found = {s.key: s for group in groups for s in group}
    return tuple(found[key] for key in sorted(found))


def _replan(
    network: Network,
    asked: list[Need],
    tick: int,
    can_refill: bool,
    placement: Placement,
    weaving: Weaving,
    clock: int | None,
) -> None:
    """Plan the nodes anew. A class that its node serves as it is counts with what it needs now, too,
    since it may move; one that has found another node stays out of it."""
    needs = needs_of(network, clock)
    settled = placement.routes.keys() | placement.moved.keys()
    for need in asked:
        known = needs.get(need.key, need)
        both, is_eager = _union(known.statistics, need.statistics), known.is_eager or need.is_eager
        forgotten = _both_forgot(known, need)
        needs[need.key] = replace(need, statistics=both, is_eager=is_eager, forgotten=forgotten)
    needs = {key: need for key, need in needs.items() if key not in settled}
    standing = signatures_of(network)
    planned = plan_nodes(list(needs.values()), weaving, homes_of(network), standing)
    ids = _matched(network, planned, placement, needs, clock)
    for item, node_id in zip(planned, ids, strict=True):
        for key, condition in item.conditions.items():
            _route(network, key, node_id, condition, tick, can_refill, placement)
    kept = set(ids)
    for route in (*placement.routes.values(), *placement.moved.values()):
        node_id = route.node_id
        while node_id in network.nodes:  # with those that it is computed from
            kept.add(node_id)
            node_id = network.nodes[node_id].parent_id
    for live in network.folding():
        if live.id not in kept:
            placement.retired.add(live.id)


def _matched(
    network: Network, planned: Sequence[PlannedNode], placement: Placement,
    needs: Mapping[str, Need] | None = None, clock: int | None = None, born: int = 0,
) -> list[int]:  # fmt: skip
    """The id of each planned node: that of a live one that is the same, else a new one.

    One that holds only part of the past serves those who read it, and those who need no more.
    """
    live = {(n.node, n.parent_id): n for n in network.folding()}
    ids: list[int] = []
    for item in planned:
        parent = None if item.parent is None else ids[item.parent]
        found = live.get((item.node, parent)) or _wider(network, item.node, parent)
        if found is not None and found.born_tick > 0 and not born:
            found = found if _has_past(network, item, found, needs, clock) else None
        if found is None:
            found = LiveNode(NEW - len(placement.made), network.stream_id, item.node, parent, born)
            placement.made.append(found)
        ids.append(found.id)
    return ids


def _has_past(
    network: Network, item: PlannedNode, live: LiveNode, needs: Mapping[str, Need],
    clock: int | None,
) -> bool:  # fmt: skip
    for key in item.conditions:
        known = network.classes.get(key)
        is_reader = known is not None and known.open_route.node_id == live.id
        if not is_reader and not network.has_past(live, needs[key], clock):
            return False
    return True


def _wider(network: Network, node: Node, parent: int | None) -> LiveNode | None:
    """A live node with the same columns and parent that has more statistics or levels than needed.

    With another parent it would go on deriving from one that may fold no more.
    """
    for live in network.folding():
        same = live.node.panes == node.panes and live.node.columns == node.columns
        same = same and live.parent_id == parent and live.node.apart == node.apart
        if same and live.node.is_versioned == node.is_versioned:
            has_all = set(node.statistics) <= set(live.node.statistics)
            if has_all and len(live.node.pyramid) >= len(node.pyramid):
                return live
    return None


def _route(
    network: Network,
    key: str,
    node_id: int,
    condition: Condition,
    tick: int,
    can_refill: bool,
    placement: Placement,
) -> None:
    known = network.classes.get(key)
    if known is None:
        placement.routes[key] = Route(node_id, condition, 0, None)
    elif known.open_route.node_id != node_id:
        is_logged = known.value.is_versioned or known.value.window is None
        placement.moved[key] = Route(node_id, condition, tick + 1, None)
        if can_refill and not is_logged:
            _settle(network, key, Route(node_id, condition, 0, None), placement)
