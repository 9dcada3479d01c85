"""The shared network of one stream as the catalog has it: nodes, classes, routes.

ARGUS §3.1: the system catalog records the topology so that a new query can be matched against it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from weft.catalog.change import Change
from weft.catalog.records import Keep, load_keep
from weft.catalog.view import View
from weft.logical.statistics import Dimension, Statistic
from weft.optimizer.codec import dump, load
from weft.optimizer.need import Need, first_seen
from weft.optimizer.nodes import AggregateClass, Finish, LiveClass, LiveNode, Route
from weft.optimizer.predicates import Ranking
from weft.optimizer.selections import SelectClass


@dataclass(slots=True)
class Network:
    """Nodes by id and classes by key; `retired` nodes are still read, but fold nothing."""

    stream_id: int
    nodes: dict[int, LiveNode] = field(default_factory=dict)
    classes: dict[str, LiveClass] = field(default_factory=dict)

    def folding(self) -> list[LiveNode]:
        return [n for n in self.nodes.values() if n.retired_tick is None]

    def eager(self) -> list[LiveClass]:
        return [c for c in self.classes.values() if c.eager_from is not None]

    def has_past(self, live: LiveNode, need: Need, clock: int | None) -> bool:
        """Whether a node has all that a new class must see: everything, or as much as another
        class sees that has read it from the start."""
        if live.born_tick == 0 or need.forgotten is None:
            return live.born_tick == 0
        return any(
            route.node_id == live.id and route.from_tick == 0
            and reaches(first_seen(c.value, c.forgotten(clock)), need.seen_from)
            for c in self.classes.values() for route in c.routes[-1:]
        )  # fmt: skip


def reaches(one: int | None, other: int | None) -> bool:
    """Whether what is seen from an instant on has all that is seen from another; None: all."""
    return one is None or (other is not None and one <= other)


def load_network(view: View, stream_id: int) -> Network:
    network = Network(stream_id)
    for row in view.nodes(stream_id):
        network.nodes[row.id] = live_node(row)
    routes: dict[int, list[Route]] = {}
    for row in view.routes_of_stream(stream_id):
        routes.setdefault(row.class_id, []).append(route_of(row))
    statistics: dict[int, set[Statistic]] = {}
    keeps: dict[int, set[Keep]] = {}
    for row in view.shared_texts(stream_id):
        keeps.setdefault(row.class_id, set()).add(load_keep(row.columns))
        statistics.setdefault(row.class_id, set()).update(load(row.shared).statistics)
    for row in view.classes(stream_id):
        value = load(row.definition)
        if isinstance(value, SelectClass):
            continue
        network.classes[row.key] = LiveClass(
            row.id,
            value,
            tuple(routes.get(row.id, ())),
            row.eager_from,
            frozenset(statistics.get(row.id, ())),
            frozenset(keeps.get(row.id, ())),
        )
    return network


def live_node(row) -> LiveNode:
    return LiveNode(
        row.id, row.stream_id, load(row.definition), row.parent_id, row.born_tick, row.retired_tick,
        row.rows_in, row.cells,
    )  # fmt: skip


def route_of(row) -> Route:
    return Route(row.node_id, load(row.condition), row.from_tick, row.to_tick)


def finish_of(shared: str) -> Finish:
    return load(shared)


def add_node(change: Change, live: LiveNode) -> None:
    node = live.node
    kinds = {Dimension: "dimension", Ranking: "ranking"}
    columns = [
        {"name": a.column, "kind": kinds.get(type(a), "bit"), "expression": _described(a)}
        for a in node.columns
    ]
    statistics = [
        {"name": s.column, "statistic": s.key, "type": s.type, "merge": s.merge}
        for s in node.statistics
    ]
    values = {
        "id": live.id, "stream_id": live.stream_id, "parent_id": live.parent_id,
        "definition": dump(node), "born_tick": live.born_tick, "retired_tick": live.retired_tick,
    }  # fmt: skip
    change.add_node(values, columns, statistics)


def _described(atom) -> str:
    if isinstance(atom, Ranking):
        return f"{atom.expression} among {json.dumps([str(cut) for cut in atom.cuts])}"
    return atom.key


def add_class(change: Change, value: AggregateClass, eager_from: int | None) -> int:
    return change.add_class(value.stream_id, value.key, dump(value), eager_from)


def route_row(class_id: int, route: Route) -> dict:
    return {
        "class_id": class_id, "node_id": route.node_id, "condition": dump(route.condition),
        "from_tick": route.from_tick, "to_tick": route.to_tick,
    }  # fmt: skip


def release_unused(change: Change, stream_id: int) -> None:
    """Free what no query uses any more: classes without queries, nodes without routes."""
    network = load_network(change, stream_id)
    policies = policies_of(change, stream_id)
    idle = [row.id for row in change.classes(stream_id) if row.id not in policies]
    if idle:
        change.remove_classes(idle)
    for found in network.eager():
        if found.id in policies and "eager" not in policies[found.id]:
            change.set_class(found.id, eager_from=None)
    read = {row.node_id for row in change.routes_of_stream(stream_id)}
    open_ones = {row.node_id for row in change.routes_of_stream(stream_id) if row.to_tick is None}
    change.remove_nodes(
        n for n in network.nodes if n not in _with_parents(network, read, open_ones)
    )


def policies_of(view: View, stream_id: int) -> dict[int, set[str]]:
    """What the queries of each class say of their answers."""
    found: dict[int, set[str]] = {}
    for row in view.shared_texts(stream_id):
        found.setdefault(row.class_id, set()).add(load(row.shared).policy)
    return found


def _with_parents(network: Network, read: set[int], open_ones: Iterable[int]) -> set[int]:
    """Nodes that are read, and those that they are computed from while they still fold."""
    kept = set(read)
    for node_id in open_ones:
        while node_id is not None:
            kept.add(node_id)
            node_id = network.nodes[node_id].parent_id
    return kept
