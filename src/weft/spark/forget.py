"""Letting go of what is only of windows that are kept no longer: WITH (keep = …).

A window is needed while a query still shows it, or one on top may still read it, as with RETAIN.
Stored answers that end before are dropped. So are partials of a node, if all classes that read it
have such a bound: a window that ends after it starts less than its length before it. By whole
segments here; what lies beside newer things goes when segments are merged (compact_nodes.py).
A node that lost partials has no longer the whole past, and says so (`born_tick`): a class that sees
further back is never placed on it, nor is another node filled from it.
Readers leave forgotten windows out by themselves, so nothing depends on when this is done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from weft.catalog.change import Change
from weft.catalog.records import RESULTS, Segment, stream_owner
from weft.catalog.store import Catalog
from weft.catalog.view import View
from weft.logical.relations import Kind
from weft.optimizer.need import first_seen
from weft.optimizer.network import Network, load_network
from weft.optimizer.nodes import LiveClass, LiveNode
from weft.spark.needed import need_of
from weft.spark.world import World
from weft.storage.crash import crash_point


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Instants up to which nobody needs windows that end there, by query and by class."""

    queries: dict[int, int] = field(default_factory=dict)
    classes: dict[int, int] = field(default_factory=dict)

    def of_node(self, network: Network, live: LiveNode) -> int | None:
        """The instant from which on a node's partials are needed; None: all are."""
        if live.node.panes is None or live.node.is_versioned:
            return None
        readers = _readers(network, live)
        cuts = [first_seen(c.value, self.classes.get(c.id)) for c in readers]
        if not readers:  # a base that others are computed from
            below = [n for n in network.nodes.values() if n.parent_id == live.id]
            cuts = [self.of_node(network, node) for node in below]
        return least(cuts)

    def of_results(self, network: Network) -> int | None:
        """The instant up to which no eager class needs windows that are kept ready."""
        return least([self.classes.get(c.id) for c in network.eager()])


def forget(catalog: Catalog, world: World) -> Bounds:
    """Drop the segments that nobody needs; what bounds the rest is told to who merges them."""
    with catalog.read() as view:
        found = bounds_of(view, world)
        gone = [
            s
            for state in world.queries.values()
            for s in state.segments
            if s.part == "changes" and is_past(s, found.queries.get(state.record.id))
        ]
        nodes = {}
        if found.classes:
            networks = [load_network(view, stream.id) for stream in view.streams()]
            nodes = _past_of_nodes(view, networks, found)
            gone += _past_results(view, networks, found)
    if gone or nodes:
        crash_point("forget.before-commit")
        with catalog.write() as change:
            change.drop_segments(gone)
            for live, segments in nodes.items():
                change.drop_segments(segments)
                cut_off(change, live, segments)
        crash_point("forget.committed")
    return found


def is_past(segment: Segment, cut: int | None) -> bool:
    return cut is not None and segment.max_time is not None and segment.max_time <= cut


def cut_off(change: Change, live: LiveNode, gone: Iterable[Segment]) -> None:
    """Note that a node has lost partials, and so has not the whole past."""
    ticks = [s.tick for s in gone if s.part == "partials"]
    if ticks and live.born_tick == 0:
        change.set_node(live.id, born_tick=max(ticks) + 1)


def bounds_of(view: View, world: World) -> Bounds:
    held: dict[str, list[int | None]] = defaultdict(list)  # by queries on top
    for state in world.queries.values():
        for planned in state.plan.sources:
            if planned.source.relation.kind is Kind.QUERY:
                name = planned.source.relation.name.lower()
                held[name].append(need_of(world, state, planned))
    queries: dict[int, int] = {}
    classes: dict[int, list[int | None]] = defaultdict(list)
    for record in view.queries():
        cut = least([record.forgotten, *held.get(record.name.lower(), ())])
        if cut is not None:
            queries[record.id] = cut
        if record.class_id is not None:
            classes[record.class_id].append(cut)
    cuts_of = {class_id: least(cuts) for class_id, cuts in classes.items()}
    return Bounds(queries, {class_id: cut for class_id, cut in cuts_of.items() if cut is not None})


def _past_of_nodes(
    view: View, networks: list[Network], bounds: Bounds
) -> dict[LiveNode, list[Segment]]:
    found = {}
    for network in networks:
        for live in network.nodes.values():
            cut, panes = bounds.of_node(network, live), live.node.panes
            if cut is None:
                continue
            parts = view.segments(live.owner, "partials")
            gone = [s for s in parts if panes.start(s.max_time + 1) <= cut]
            if gone:
                found[live] = gone
    return found


def _past_results(view: View, networks: list[Network], bounds: Bounds) -> list[Segment]:
    return [
        s
        for network in networks
        for s in view.segments(stream_owner(network.stream_id), RESULTS)
        if is_past(s, bounds.of_results(network))
    ]


def _readers(network: Network, live: LiveNode) -> list[LiveClass]:
    return [
        c for c in network.classes.values() if any(route.node_id == live.id for route in c.routes)
    ]


def least(cuts: list[int | None]) -> int | None:
    """The least of some instants; None if one has no bound, or there are none."""
    return None if None in cuts else min(cuts, default=None)
