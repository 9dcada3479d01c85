"""Placing queries in a network: what stays, what is made, what folds no more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlglot import parse_one

from weft.logical.statistics import Dimension, Statistic
from weft.logical.windows import Hopping
from weft.optimizer.factors import EVERYTHING, factor
from weft.optimizer.need import Need
from weft.optimizer.network import Network
from weft.optimizer.nodes import AggregateClass, LiveClass
from weft.optimizer.placing import Placement, place

SYM = Dimension("sym", "string", "sym")
COUNT = Statistic("count(*)", "bigint", "count(*)", "sum({})", "sum({})")
MAX = Statistic("max(price)", "double", "max(price)", "max({})", "max({})")
BUSY = factor(parse_one("qty > 3", dialect="spark"), lambda _: "int")


def need(seconds: int, predicate, statistic: Statistic, slide: int = 20) -> Need:
    window = Hopping(timedelta(seconds=seconds), timedelta(seconds=slide))
    return Need(AggregateClass(1, window, (SYM,), predicate, False), (statistic,))


def grown(network: Network, placement: Placement, tick: int) -> Network:
    """The network as a registration would leave it."""
    nodes = dict(network.nodes)
    ids = {made.id: len(nodes) + i for i, made in enumerate(placement.made, 1)}
    for made in placement.made:
        parent = ids.get(made.parent_id, made.parent_id)
        nodes[ids[made.id]] = replace(made, id=ids[made.id], parent_id=parent)
    for node_id in placement.retired:
        nodes[node_id] = replace(nodes[node_id], retired_tick=tick)
    classes = dict(network.classes)
    for found in placement.needs:
        route = placement.routes.get(found.key)
        if route is not None:
            route = replace(route, node_id=ids.get(route.node_id, route.node_id))
            kept = frozenset(found.statistics)
            classes[found.key] = LiveClass(len(classes) + 1, found.value, (route,), None, kept)
    return Network(1, nodes, classes)


@pytest.mark.parametrize("can_refill", [True, False])
def test_a_node_that_folds_has_a_parent_that_folds(can_refill: bool) -> None:
    """A new statistic replaces the upper node; the one below it must not hang on to the old."""
    first = place(Network(1), [need(60, BUSY, COUNT), need(600, EVERYTHING, COUNT)], 1, can_refill)
    network = grown(Network(1), first, 1)
    assert any(live.parent_id is not None for live in network.folding())
    second = place(network, [need(60, BUSY, MAX)], 2, can_refill)
    assert second.retired, "the new statistic makes a new node"
    network = grown(network, second, 2)
    folding = {live.id for live in network.folding()}
    assert {live.parent_id for live in network.folding()} - {None} <= folding


@pytest.mark.parametrize("order", [(COUNT, MAX), (MAX, COUNT)])
def test_new_queries_of_one_class_get_what_they_need_together(order: tuple) -> None:
    """One of them finds a node as it is; that node must have what the other needs, too."""
    network = grown(Network(1), place(Network(1), [need(60, BUSY, COUNT)], 1, True), 1)
    found = place(network, [need(120, BUSY, statistic) for statistic in order], 2, True)
    (key,) = {each.key for each in found.needs}
    nodes = network.nodes | {made.id: made for made in found.made}
    assert {COUNT, MAX} <= set(nodes[found.routes[key].node_id].node.statistics)


@pytest.mark.parametrize("can_refill", [True, False])
def test_a_class_that_is_served_as_it_is_keeps_what_it_needs_when_another_moves_it(
    can_refill: bool,
) -> None:
    """Its node has a statistic for another class, which has gone; what it moves to must have it, too."""
    first = place(Network(1), [need(60, BUSY, COUNT), need(120, BUSY, MAX)], 1, can_refill)
    network = grown(Network(1), first, 1)
    gone = first.needs[1].key
    classes = {key: c for key, c in network.classes.items() if key != gone}
    network = replace(network, classes=classes)
    asked = [need(60, BUSY, MAX), need(70, BUSY, COUNT, slide=10)]
    found = place(network, asked, 2, can_refill)
    nodes = network.nodes | {made.id: made for made in found.made}
    key = found.needs[0].key
    route = found.moved.get(key) or network.classes[key].open_route
    assert MAX in nodes[route.node_id].node.statistics
    assert route.node_id not in found.retired
