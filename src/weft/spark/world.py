"""What an evaluation may see: one consistent state of the catalog plus what this batch adds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from weft.catalog.records import QueryRecord, Segment, StreamRecord, TableRecord
from weft.catalog.view import View
from weft.logical.relations import Kind
from weft.optimizer.codec import load
from weft.optimizer.network import Network, finish_of, live_node, route_of
from weft.optimizer.nodes import Finish, LiveClass, LiveNode
from weft.plan.recompute import RecomputePlan
from weft.storage.files import intact_paths


@dataclass(slots=True)
class StreamState:
    record: StreamRecord
    clock: int | None
    segments: list[Segment]  # its retained rows
    first_new: int | None = None  # earliest event time that this batch brings
    newest_tick: int = -1  # largest tick of a row in the segments


@dataclass(slots=True)
class TableState:
    record: TableRecord
    segments: list[Segment]  # parts "rows" and "gone"


@dataclass(slots=True)
class SharedState:
    """A shared query that Spark finishes: its class, and the nodes on its routes."""

    record: QueryRecord
    stream: str  # its folded name
    found: LiveClass
    finish: Finish
    nodes: dict[int, LiveNode]


@dataclass(slots=True)
class QueryState:
    """A query whose answer is stored, recomputed or finished from what it shares."""

    record: QueryRecord
    plan: RecomputePlan
    segments: list[Segment]  # parts "changes" and "base"
    clock: int | None
    shared: SharedState | None = None  # where batches evaluate it


@dataclass(slots=True)
class World:
    root: Path
    streams: dict[str, StreamState] = field(default_factory=dict)  # by folded name
    tables: dict[str, TableState] = field(default_factory=dict)
    queries: dict[str, QueryState] = field(default_factory=dict)
    shared: dict[str, SharedState] = field(default_factory=dict)  # those that others read
    partials: dict[int, list[Segment]] = field(default_factory=dict)  # by node, where asked for

    def paths(self, segments: list[Segment]) -> list[str]:
        return intact_paths(self.root, segments)

    def clock_of(self, names: set[str]) -> int | None:
        """The clock of a query over several streams is the smallest of theirs."""
        clocks = [self._clock(name) for name in names]
        if not clocks or any(clock is None for clock in clocks):
            return None
        return min(clocks)

    def newest_tick(self, names: set[str]) -> int:
        """The largest tick among the rows of streams: what comes later has a larger one."""
        return max((self.streams[n].newest_tick for n in names if n in self.streams), default=-1)

    def _clock(self, folded: str) -> int | None:
        if folded in self.shared:
            folded = self.shared[folded].stream
        if folded in self.streams:
            return self.streams[folded].clock
        return self.queries[folded].clock

    def feeds(self, folded: str) -> str:
        """What must change for a source to change: itself, or the stream of a shared query."""
        return self.shared[folded].stream if folded in self.shared else folded


def load_world(view: View, root: Path, plans: dict[int, RecomputePlan]) -> World:
    """Read the state that evaluations start from."""
    world = World(root)
    for stream in view.streams():
        segments = view.segments(stream.owner, "rows")
        newest = int(view.fact(f"consumed:{stream.id}") or -1)
        world.streams[stream.name.lower()] = StreamState(
            stream, stream.clock, segments, newest_tick=newest
        )
    for table in view.tables():
        segments = view.segments(table.owner, "rows", "gone")
        world.tables[table.name.lower()] = TableState(table, segments)
    for query in view.stored():
        if query.id in plans:
            segments = view.segments(query.owner, "changes", "base")
            world.queries[query.name.lower()] = QueryState(
                query, plans[query.id], segments, query.clock
            )
    for plan in [state.plan for state in world.queries.values()]:
        load_shared(view, world, plan)
    return world


def attach_shared(world: World, state: QueryState, network: Network) -> None:
    """Give a stored query that shares its class, as the network has it."""
    found = next(c for c in network.classes.values() if c.id == state.record.class_id)
    stream = next(n for n, s in world.streams.items() if s.record.id == network.stream_id)
    nodes = {r.node_id: network.nodes[r.node_id] for r in found.routes}
    finish = finish_of(state.record.shared)
    state.shared = SharedState(state.record, stream, found, finish, nodes)


def load_shared(view: View, world: World, plan: RecomputePlan) -> None:
    """Load the shared queries that a plan reads, and that nobody stores."""
    for planned in plan.sources:
        name = planned.source.relation.name.lower()
        if planned.source.relation.kind is not Kind.QUERY or name in world.queries | world.shared:
            continue
        record = view.find(name)
        row = view.class_of(record.class_id)
        routes = tuple(route_of(r) for r in view.routes(record.class_id))
        finish = finish_of(record.shared)
        found = LiveClass(
            row.id, load(row.definition), routes, row.eager_from, frozenset(finish.statistics)
        )
        read = {route.node_id for route in routes}
        nodes = {r.id: live_node(r) for r in view.nodes(row.stream_id) if r.id in read}
        stream = next(n for n, s in world.streams.items() if s.record.id == row.stream_id)
        world.shared[name] = SharedState(record, stream, found, finish, nodes)
        for live in nodes.values():
            world.partials.setdefault(live.id, view.segments(live.owner, "partials"))
