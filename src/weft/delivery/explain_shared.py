"""EXPLAIN of a shared query: its class, the nodes on its way, and who else uses each of them.

Everything is read from the catalog (ARGUS §3.1: the system catalog records the topology); only how
many partials cover a window is computed, by the same cover that reading uses.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from weft.catalog.records import QueryRecord, StreamRecord, to_instant
from weft.catalog.view import View
from weft.delivery.explain_weave import WeaveExplained, explain_weave
from weft.logical.panes import (
    Paned,
    Panes,
    Windows,
    cover,
    hopping_of,
    longest,
    windows_between,
)
from weft.logical.windows import Cumulating, Hopping, instant, microseconds
from weft.optimizer.described import (
    BEGINNING,
    column_text,
    edges_text,
    kind_of,
    levels_of,
    panes_text,
    readable,
    window_text,
)
from weft.optimizer.network import Network, finish_of, load_network
from weft.optimizer.nodes import AggregateClass, Atom, LiveClass, LiveNode, Route
from weft.optimizer.predicates import Ranking

LOOKED_AT = 64  # newest windows whose covers are counted


@dataclass(frozen=True, slots=True)
class ColumnExplained:
    name: str  # in the partials
    kind: str  # dimension, ranking or bit
    expression: str
    constants: int | None  # of a ranking: how many it is compared with
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class StatisticExplained:
    name: str
    statistic: str
    type: str
    queries: list[str]  # that use it, here or in a node below


@dataclass(frozen=True, slots=True)
class NodeExplained:
    id: int
    parent: int | None  # None: computed from the rows
    columns: list[ColumnExplained]
    panes: str
    levels: list[str]
    statistics: list[StatisticExplained]
    classes: list[int]  # that read it
    queries: list[str]  # of those classes
    below: list[int]  # nodes computed from it
    is_folding: bool
    rows_in: int  # of the last batch, and the partials that they became
    partials_out: int
    rows: int  # in state
    segments: int


@dataclass(frozen=True, slots=True)
class RouteExplained:
    node: int
    from_tick: int
    to_tick: int | None
    test: str  # on the node's signature columns
    most: int | None  # partials that cover one window: at most, and typically
    typical: int | None
    edges: str | None = None  # what is read from the rows beside them


@dataclass(frozen=True, slots=True)
class SharedExplained:
    answers: str  # lazy, eager or finished on Spark
    answers_why: str
    class_id: int
    window: str
    predicate: str
    dimensions: list[str]
    with_queries: list[str]  # the others in the class
    routes: list[RouteExplained]
    nodes: list[NodeExplained]  # on its routes and above them, parents first
    tree: str
    weave: WeaveExplained | None  # None: it has no panes
    finish: str
    may_fail: list[str]  # what fails on some rows: who reads an answer that holds one is told


@dataclass(slots=True)
class Users:
    """Who uses what of a stream's network."""

    network: Network
    names: dict[int, list[str]] = field(default_factory=dict)  # class → its queries
    statistics: dict[str, set[str]] = field(default_factory=dict)  # query → columns

    def reading(self, node_id: int) -> list[LiveClass]:
        classes = self.network.classes.values()
        return [c for c in classes if any(r.node_id == node_id for r in c.routes)]

    def queries(self, node_id: int) -> list[str]:
        return [name for found in self.reading(node_id) for name in self.names.get(found.id, ())]

    def below(self, node_id: int) -> list[int]:
        return [n.id for n in self.network.nodes.values() if n.parent_id == node_id]

    def of_statistic(self, node_id: int, column: str) -> list[str]:
        """The queries that use a statistic of a node, directly or through nodes below it."""
        found = [name for name in self.queries(node_id) if column in self.statistics[name]]
        for child in self.below(node_id):
            found += self.of_statistic(child, column)
        return list(dict.fromkeys(found))


def explain_shared(view: View, record: QueryRecord) -> SharedExplained:
    """What the catalog knows of a registered query that shares."""
    stream = stream_of(view, record)
    users = load_users(view, stream.id)
    found = next(c for c in users.network.classes.values() if c.id == record.class_id)
    chain = _with_parents(users.network, [r.node_id for r in found.routes])
    finish = finish_of(record.shared)
    answers, why = answers_of(found.value, found.eager_from)
    if finish.on_spark:
        answers, why = "finished on Spark", stored_why(record, finish.on_spark)
    elif is_for_sketches(view, found):
        why = f"{why}, since what its sketches estimate depends on the order of merging"
    return SharedExplained(
        answers, why, found.id, window_text(found.value), readable(found.value.predicate.text),
        [d.key for d in found.value.dimensions],
        [name for name in users.names[found.id] if name != record.name],
        [_route(users.network, found.value, route, stream.clock) for route in found.routes],
        [_node(view, users, live) for live in chain],
        _tree(stream.name, users.network, found, record.name),
        explain_weave(view, stream, users.network, found),
        finish.spark if finish.on_spark else finish.duck, [text for _, text in finish.failures],
    )  # fmt: skip


def stream_of(view: View, record: QueryRecord) -> StreamRecord:
    """The stream of a shared query."""
    return next(s for s in view.streams() if s.owner == record.reads[0])


def load_users(view: View, stream_id: int) -> Users:
    users = Users(load_network(view, stream_id))
    classes = {c.id for c in users.network.classes.values()}
    for query in view.sharing():
        if query.class_id in classes:
            users.names.setdefault(query.class_id, []).append(query.name)
            columns = {s.column for s in finish_of(query.shared).statistics}
            users.statistics[query.name] = columns
    return users


def stored_why(record: QueryRecord, reason: str) -> str:
    what = "each window, when it closes," if record.is_append_only else "each change of the answer"
    return f"{what} is stored, since {reason}"


def answers_of(value: AggregateClass, eager_from: int | None) -> tuple[str, str]:
    if value.is_sliding:
        why = "the answer at any instant is merged from partials of full panes and the rows at its edges"
        return "lazy", f"{why} when it is read"
    if eager_from is None:
        what = "each window" if value.window is not None else "the answer"
        return "lazy", f"{what} is merged from partials when it is read"
    if eager_from == BEGINNING:
        return "eager", "every window is merged when it falls due"
    since = instant(to_instant(eager_from))
    return "eager", f"windows that end after {since} are merged when they fall due"


def is_for_sketches(view: View, found: LiveClass) -> bool:
    """Whether a class is eager only because of what sketches some of its queries have."""
    finishes = [finish_of(q.shared) for q in view.sharing() if q.class_id == found.id]
    eager = [finish for finish in finishes if finish.policy == "eager"]
    return bool(eager) and not any(finish.is_repeatable for finish in eager)


def columns_of(atoms: tuple[Atom, ...]) -> list[ColumnExplained]:
    return [_column(atom) for atom in atoms]


def _column(atom: Atom) -> ColumnExplained:
    constants = len(atom.cuts) if isinstance(atom, Ranking) else None
    expression = readable(atom.key)
    return ColumnExplained(atom.column, kind_of(atom), expression, constants, column_text(atom))


def covers(
    window: Paned | None, panes: Panes | None, pyramid: tuple[int, ...], clock: int
) -> tuple[int | None, int | None]:
    """How many partials cover one of the newest windows: at most, and typically (the median)."""
    if window is None or panes is None:
        return None, None
    found = newest_windows(hopping_of(window), clock)
    counts = np.bincount(cover(found, panes, pyramid).window, minlength=len(found))
    return int(counts.max()), int(np.median(counts))


def newest_windows(window: Hopping | Cumulating, clock: int) -> Windows:
    """The last windows that ended by an instant."""
    step = microseconds(window.step if isinstance(window, Cumulating) else window.slide)
    after = clock - LOOKED_AT * step
    return windows_between(window, after, clock, after - longest(window), clock)


def _route(
    network: Network, value: AggregateClass, route: Route, clock: int | None
) -> RouteExplained:
    node = network.nodes[route.node_id].node
    most, typical = covers(value.window, node.panes, node.pyramid, clock or 0)
    test = route.condition.sql
    edges = edges_text(value, node.panes)
    return RouteExplained(route.node_id, route.from_tick, route.to_tick, test, most, typical, edges)


def _with_parents(network: Network, node_ids: list[int]) -> list[LiveNode]:
    """Nodes and what they are computed from, parents first."""
    found: dict[int, LiveNode] = {}
    for node_id in node_ids:
        chain = []
        while node_id is not None and node_id in network.nodes:
            chain.append(network.nodes[node_id])
            node_id = network.nodes[node_id].parent_id
        found |= {live.id: live for live in reversed(chain)}
    return list(found.values())


def _node(view: View, users: Users, live: LiveNode) -> NodeExplained:
    segments = view.segments(live.owner, "partials", "totals")
    statistics = [
        StatisticExplained(s.column, s.key, s.type, users.of_statistic(live.id, s.column))
        for s in live.node.statistics
    ]
    return NodeExplained(
        live.id, live.parent_id, columns_of(live.node.columns), panes_text(live.node),
        levels_of(live.node), statistics, [c.id for c in users.reading(live.id)],
        users.queries(live.id), users.below(live.id), live.retired_tick is None,
        live.rows_in, live.cells, sum(s.rows for s in segments), len(segments),
    )  # fmt: skip


def _tree(stream: str, network: Network, found: LiveClass, name: str) -> str:
    chain = _with_parents(network, [found.open_route.node_id])
    nodes = [f"node {live.id}" for live in chain]
    return " → ".join([f"rows of {stream}", *nodes, f"class {found.id}", name])
