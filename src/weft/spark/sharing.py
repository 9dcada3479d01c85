"""Registering queries that share: their class and node, back-filled in one job, one transaction.

1. place the queries in the stream's network      nothing happened
2. fill new nodes from their parents or the rows,  orphans: no catalog row names them
   first answers of those that Spark finishes
3. commit nodes, classes, routes, queries          all of it is there
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from weft.catalog.change import Change
from weft.catalog.records import QueryRecord, Segment
from weft.logical.statistics import Statistic
from weft.optimizer.changing import came, logged
from weft.optimizer.codec import dump
from weft.optimizer.need import Need
from weft.optimizer.network import Network, add_class, add_node, release_unused, route_row
from weft.optimizer.nodes import Finish, LiveClass, LiveNode, Route
from weft.optimizer.placing import Placement, place
from weft.optimizer.weaving import Weaving
from weft.plan.recompute import RecomputePlan
from weft.spark.shared import Advance, fill
from weft.spark.world import QueryState, SharedState, StreamState, World


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A query to be registered: its record without a class, what it needs, how it is finished."""

    record: QueryRecord
    need: Need
    finish: Finish
    plan: RecomputePlan

    @property
    def stream_id(self) -> int:
        return self.need.value.stream_id

    @property
    def is_eager(self) -> bool:
        return self.finish.policy == "eager"


class Registration:
    """Some queries over one stream, on their way into its network."""

    def __init__(
        self,
        world: World,
        state: StreamState,
        network: Network,
        drafts: Sequence[Draft],
        tick: int,
        weaving: Weaving | None = None,
        placement: Placement | None = None,
    ) -> None:
        self._world, self._state, self._network = world, state, network
        self._drafts, self._tick, self._weaving = drafts, tick, weaving or Weaving()
        can_refill = state.record.pruned_rows == 0
        clock = state.clock
        needs = [replace(d.need, forgotten=d.record.keep.forgotten(clock)) for d in drafts]
        self.placement = placement or place(network, needs, tick, can_refill, weaving, clock)

    def fill(self, spark: SparkSession, reserve: Callable[[int], list[int]]) -> list[Segment]:
        """Give new nodes their ids and their first partials."""
        ids = dict(
            zip([n.id for n in self.placement.made], reserve(len(self.placement.made)), strict=True)
        )
        self._number(ids)
        made = [n for n in self.placement.made if n.born_tick == 0]
        advance = Advance(
            self._state.clock, self._state.clock, self._state.record.evaluation, self._tick
        )
        return fill(spark, self._world, self._state, made, self._network.nodes, advance)

    def stored(self) -> list[QueryState]:
        """The queries that Spark finishes, to be evaluated over what their nodes hold now."""
        names = self._world.streams.items()
        stream = next(n for n, s in names if s.record.id == self._network.stream_id)
        nodes = self._network.nodes | {live.id: live for live in self.placement.made}
        ids = {need.key: -1 - i for i, need in enumerate(self.placement.needs)}  # until committed
        found = []
        for draft, need in zip(self._drafts, self.placement.needs, strict=True):
            if draft.finish.on_spark:
                live = LiveClass(ids[need.key], need.value, self._routes(need.key))
                read = {r.node_id: nodes[r.node_id] for r in live.routes}
                shared = SharedState(draft.record, stream, live, draft.finish, read)
                found.append(QueryState(draft.record, draft.plan, [], None, shared))
        return found

    def _routes(self, key: str) -> tuple[Route, ...]:
        """Where a class reads what there is now: a route that starts with the next tick has nothing."""
        if key in self.placement.routes:
            return (self.placement.routes[key],)
        if key in self.placement.whole:
            return (self.placement.moved[key],)
        return self._network.classes[key].routes

    def _number(self, ids: dict[int, int]) -> None:
        def real(node_id: int | None) -> int | None:
            return ids.get(node_id, node_id)

        found: Placement = self.placement
        found.made = [replace(n, id=real(n.id), parent_id=real(n.parent_id)) for n in found.made]
        for routes in (found.routes, found.moved):
            for key, route in routes.items():
                routes[key] = replace(route, node_id=real(route.node_id))

    def commit(self, change: Change, segments: Sequence[Segment]) -> None:
        for live in self.placement.made:
            add_node(change, live)
        for node_id in self.placement.retired:
            change.set_node(node_id, retired_tick=self._tick)
        self._move(change)
        class_ids = self._add_classes(change)
        for draft, need in zip(self._drafts, self.placement.needs, strict=True):
            change.add_query(self._record(draft, class_ids[need.key]))
        change.add_segments(segments)
        if self._drafts and self.placement.moved:
            why, measures = came([d.record.name for d in self._drafts]), self._weaving.measures
            row = logged(self._network, self.placement, measures, self._tick, why)
            change.add_weave(**row)
        if self.placement.moved or self.placement.retired:
            release_unused(change, self._network.stream_id)

    def _move(self, change: Change) -> None:
        """Let classes read on from another node: from now on, or for all ticks."""
        moved = self.placement.moved
        ids = {key: self._network.classes[key].id for key in moved}
        change.drop_routes(ids[key] for key in moved if key in self.placement.whole)
        change.end_routes([ids[k] for k in moved if k not in self.placement.whole], self._tick)
        change.add_routes([route_row(ids[key], route) for key, route in moved.items()])
        for key in moved:  # what was kept ready lies with the old node
            if self._network.classes[key].eager_from is not None:
                change.set_class(ids[key], eager_from=self._since())

    def _since(self) -> int:
        """Windows that end later are kept ready."""
        return self._state.clock if self._state.clock is not None else -(2**62)

    def _add_classes(self, change: Change) -> dict[str, int]:
        eager = {
            need.key
            for draft, need in zip(self._drafts, self.placement.needs, strict=True)
            if draft.is_eager and need.value.is_closing
        }
        since = self._since()
        values = {need.key: need.value for need in self.placement.needs}
        wanted: dict[str, set[Statistic]] = defaultdict(set)
        for need in self.placement.needs:
            wanted[need.key].update(need.statistics)
        found: dict[str, int] = {}
        rows: list[dict] = []
        for key, value in values.items():
            known = self._network.classes.get(key)
            if known is not None:
                found[key] = known.id
                if known.eager_from is None:
                    is_new = key in eager
                else:  # what is ready lacks a statistic that nobody wanted so far
                    is_new = not wanted[key] <= known.statistics
                if is_new:
                    change.set_class(known.id, eager_from=since)
                continue
            found[key] = add_class(change, value, since if key in eager else None)
            rows.append(route_row(found[key], self._open(key)))
        change.add_routes(rows)
        return found

    def _open(self, key: str) -> Route:
        return self.placement.routes[key]

    def _record(self, draft: Draft, class_id: int) -> QueryRecord:
        evaluation = self._state.record.evaluation
        finish = replace(draft.finish, evaluation=evaluation)
        record = replace(draft.record, class_id=class_id, shared=dump(finish))
        return record if record.is_stored else replace(record, evaluation=evaluation)

    @property
    def made(self) -> list[LiveNode]:
        return self.placement.made
