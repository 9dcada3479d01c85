"""The one module that reads state, runs plans, writes segments and commits.

A batch goes through these steps; after a crash in any of them the next start completes it:

    1. read the catalog                      nothing happened
    2. write the rows' segments              orphans: no catalog row names them; swept at start
    3. fold them, write their partials       orphans, likewise; for sources that can be read twice
       (and the windows somebody waits for); this goes on while the rows are written
       evaluate queries, write their changes
    4. commit one transaction                all of the batch is there: rows, clock, progress, answers
    5. Spark notes the batch as done         if not, Spark repeats it: its id is at or below the
                                             committed one, so it is skipped
    6. delete consumed inbox files           repeated at start: the commit says what was consumed

Registrations, heartbeats and table changes go through the same commit, between batches, so answers
are always those of a prefix of the data and of the registrations (PSoup §4.1).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from weft.catalog.change import Change
from weft.catalog.records import QueryRecord, Segment, StreamRecord, to_instant
from weft.catalog.store import Catalog
from weft.optimizer.network import Network, load_network
from weft.optimizer.placing import Placement
from weft.optimizer.profile import Profile
from weft.optimizer.selections import LiveSelection, Selections, load_selections
from weft.optimizer.weaving import Weaving
from weft.plan.recompute import RecomputePlan, follows_table
from weft.spark.answers import Outcome, evaluate
from weft.spark.folding import Folding, next_clock, see
from weft.spark.keep import keep_batch
from weft.spark.levels import affected, evaluate_level, evaluate_levels
from weft.spark.outcomes import commit_outcomes
from weft.spark.profiling import Observed, atoms_of, take_profile
from weft.spark.selecting import SelectDraft, SelectRegistration
from weft.spark.shared import Advance
from weft.spark.sharing import Draft, Registration
from weft.spark.world import (
    QueryState,
    StreamState,
    World,
    attach_shared,
    load_shared,
    load_world,
)
from weft.storage.crash import crash_point


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What a batch did; handed to progress callbacks."""

    stream: str
    batch_id: int
    rows: int
    late: int
    rejected: int
    queries: int
    clock: object
    ms: int


class Batches:
    """Applies batches, heartbeats, registrations and table changes, one at a time."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        root: Path,
        plans: dict[int, RecomputePlan],
        parallel: int = 4,
        weaving: Callable[[int], Weaving] = lambda _: Weaving(),
        take_rows: int = 10_000,
        on_ready: Callable[[list[LiveSelection]], None] = lambda _: None,
    ) -> None:
        self.spark = spark
        self._catalog = catalog
        self._root = root
        self.plans = plans
        self._parallel = parallel
        self._folding = Folding(spark, catalog, root, take_rows)
        self._networks: dict[int, Network] = {}  # of streams, as the catalog has them
        self._selections: dict[int, Selections] = {}
        self._weaving = weaving  # how a stream's network is planned
        self._on_ready = on_ready  # told after a commit whose windows are ready
        self.observed = Observed()

    def network(self, stream_id: int) -> Network:
        """The shared network of a stream, read once and kept until it changes."""
        if stream_id not in self._networks:
            with self._catalog.read() as view:
                self._networks[stream_id] = load_network(view, stream_id)
        return self._networks[stream_id]

    def selections(self, stream_id: int) -> Selections:
        """The selections over a stream, read once and kept until they change."""
        if stream_id not in self._selections:
            with self._catalog.read() as view:
                self._selections[stream_id] = load_selections(view, stream_id)
        return self._selections[stream_id]

    def forget_networks(self) -> None:
        self._networks.clear()
        self._selections.clear()

    def apply(
        self,
        stream_id: int,
        frame: DataFrame,
        batch_id: int | None,
        tick: int,
        also: Callable[[Change], object] | None = None,
        files: Sequence[Path] = (),
    ) -> BatchReport | None:
        """Ingest one micro-batch and bring every query up to date; None if it was committed before.

        Without a batch id the rows come from outside Spark's count (mended files); `also` makes
        such a batch happen once, in the same transaction. `files`: what the frame reads, if known.
        """
        started = time.monotonic()
        world = self._world()
        state = next(s for s in world.streams.values() if s.record.id == stream_id)
        record = state.record
        if batch_id is None:
            batch_id = record.batch_id
        elif batch_id <= record.batch_id:
            return None
        crash_point("batch.start")
        network = self.network(record.id)
        brought, ahead = self._folding.store(frame, world, record, network, tick, batch_id, files)
        crash_point("batch.rows-written")
        clock, largest = next_clock(record, brought.max_time())
        state.clock, state.first_new = clock, brought.min_time()
        state.segments = state.segments + brought.of("rows")
        state.newest_tick = max(state.newest_tick, brought.max_tick)
        advance = Advance(
            record.clock, clock, record.evaluation + 1, tick, tuple(brought.of("rows"))
        )
        partials = self._folding.fold(world, state, network, advance, ahead)
        crash_point("batch.partials-written")
        kept = keep_batch(self.spark, world, state, self.selections(record.id), advance)
        crash_point("batch.matches-written")
        outcomes = self._evaluate(world, affected(world, {record.name.lower()}), tick)
        crash_point("batch.results-written")
        with self._catalog.write() as change:
            change.add_segments(brought.segments)
            counts = {part: brought.count(part) for part in ("rows", "late", "rejected")}
            change.set_stream(
                record.id, clock=clock, max_time=largest, batch_id=batch_id,
                **{part: getattr(record, part) + count for part, count in counts.items()},
            )  # fmt: skip
            commit_outcomes(change, outcomes)
            self._commit_advance(change, state, advance, partials, kept)
            change.set_fact("tick", str(tick))
            change.set_fact(f"consumed:{record.id}", str(state.newest_tick))
            if also is not None:
                also(change)
            elapsed = round((time.monotonic() - started) * 1000)
            change.add_batch(
                stream_id=record.id, stream=record.name, batch_id=batch_id, queries=len(outcomes),
                ms=elapsed, clock=clock, **counts,
            )  # fmt: skip
            crash_point("batch.before-commit")
        crash_point("batch.committed")
        self.observed.note(record.id, self.network(record.id), advance, partials, elapsed)
        self._tell_ready(record.id, advance)
        return BatchReport(
            record.name, batch_id, counts["rows"], counts["late"], counts["rejected"],
            len(outcomes), to_instant(clock), elapsed,
        )  # fmt: skip

    def heartbeat(self, stream: StreamRecord, instant: int, tick: int) -> None:
        """Move a stream's clock on without rows."""
        world = self._world()
        state = world.streams[stream.name.lower()]
        if state.clock is not None and instant <= state.clock:
            return
        advance = Advance(state.clock, instant, state.record.evaluation + 1, tick)
        state.clock = instant
        partials = self._folding.fold(world, state, self.network(stream.id), advance)
        kept = keep_batch(self.spark, world, state, self.selections(stream.id), advance)
        outcomes = self._evaluate(world, affected(world, {stream.name.lower()}), tick)
        crash_point("heartbeat.results-written")
        with self._catalog.write() as change:
            change.set_stream(stream.id, clock=instant)
            commit_outcomes(change, outcomes)
            self._commit_advance(change, state, advance, partials, kept)
            change.set_fact("tick", str(tick))
        self._tell_ready(stream.id, advance)

    def _tell_ready(self, stream_id: int, advance: Advance) -> None:
        if ready := self.selections(stream_id).ready(advance.evaluation):
            self._on_ready(ready)

    def register(
        self,
        record: QueryRecord,
        plan: RecomputePlan,
        tick: int,
        before_commit: Callable[[Change], None],
    ) -> None:
        """Evaluate a new query over the retained history and commit it with its first answer."""
        with self._catalog.read() as view:
            world = load_world(view, self._root, self.plans)
            load_shared(view, world, plan)
        state = QueryState(record, plan, [], None)
        world.queries[record.name.lower()] = state
        outcome = evaluate(self.spark, world, state, tick)
        crash_point("register.results-written")
        with self._catalog.write() as change:
            before_commit(change)
            change.add_query(record)
            commit_outcomes(change, [outcome])
            change.set_fact("tick", str(tick))
            crash_point("register.before-commit")
        crash_point("register.committed")

    def register_shared(
        self,
        drafts: Sequence[Draft | SelectDraft],
        tick: int,
        before: Callable[[Change], None],
        after: Callable[[Change], None],
    ) -> None:
        """Register queries over one stream that share, filled by one job, in one transaction."""
        stream_id = drafts[0].stream_id
        network = self.network(stream_id)
        with self._catalog.read() as view:
            world = load_world(view, self._root, {})
        self._folding.load_partials(world, network)
        state = next(s for s in world.streams.values() if s.record.id == stream_id)
        folded = [d for d in drafts if isinstance(d, Draft)]
        selected = [d for d in drafts if isinstance(d, SelectDraft)]
        registration = Registration(world, state, network, folded, tick, self._weaving(stream_id))
        segments = registration.fill(self.spark, self._reserve_nodes)
        see(world, segments)
        outcomes = evaluate_level(
            self.spark, world, registration.stored(), tick, set(), self._parallel
        )
        selecting = SelectRegistration(world, state, selected, tick)
        derived = selecting.fill(self.spark, self.selections(stream_id))
        crash_point("register.results-written")
        with self._catalog.write() as change:
            before(change)
            registration.commit(change, segments)
            commit_outcomes(change, outcomes)
            selecting.commit(change, derived)
            after(change)
            change.set_fact("tick", str(tick))
            crash_point("register.before-commit")
        self.forget_networks()
        crash_point("register.committed")

    def switch(
        self, stream_id: int, placement: Placement, tick: int, log: Callable[[Change], None]
    ) -> None:
        """Change a stream's plan: new nodes fold from the next tick on. No rows are touched."""
        network = self.network(stream_id)
        with self._catalog.read() as view:
            world = load_world(view, self._root, {})
        state = next(s for s in world.streams.values() if s.record.id == stream_id)
        change_over = Registration(world, state, network, [], tick, placement=placement)
        change_over.fill(self.spark, self._reserve_nodes)
        crash_point("reweave.start")
        with self._catalog.write() as change:
            change_over.commit(change, [])
            log(change)
            change.set_fact("tick", str(tick))
            crash_point("reweave.before-commit")
        self.forget_networks()
        crash_point("reweave.committed")

    def profile(self, stream_id: int) -> Profile | None:
        """Sample the newest rows of a stream; None if there are none."""
        with self._catalog.read() as view:
            world = load_world(view, self._root, {})
        state = next(s for s in world.streams.values() if s.record.id == stream_id)
        atoms = atoms_of(self.network(stream_id).folding())
        if not state.segments or not atoms:
            return None
        newest = max(s.tick for s in state.segments)
        fresh = [s for s in state.segments if s.tick == newest]
        return take_profile(self.spark, world, state, fresh, atoms)

    def _reserve_nodes(self, count: int) -> list[int]:
        if not count:
            return []
        with self._catalog.write() as change:
            return [change.reserve_node_id() for _ in range(count)]

    def _commit_advance(
        self, change: Change, state: StreamState, advance: Advance, partials: list[Segment],
        kept: list[Segment],
    ) -> None:  # fmt: skip
        """A stream's shared queries move on: one row of the log, whatever their number."""
        record = state.record
        change.set_stream(record.id, evaluation=advance.evaluation)
        change.add_clock(
            record.id, advance.evaluation, advance.clock, advance.tick, state.newest_tick
        )
        change.add_segments(partials)
        change.drop_segments(change.segments(record.owner, "ready"))
        change.add_segments(kept)
        rows = sum(s.rows for s in advance.fresh)
        network = self.network(record.id)
        for live in network.folding() if rows else ():
            mine = [s for s in partials if s.owner == live.owner and s.part == "partials"]
            cells = sum(s.rows for s in mine)
            change.set_node(live.id, rows_in=rows, cells=cells)
            network.nodes[live.id] = replace(live, rows_in=rows, cells=cells)

    def table_changed(
        self, name: str, tick: int, apply: Callable[[World], Callable[[Change], None]]
    ) -> None:
        """Change a table; re-evaluate what follows it: retroactive readers, and table-only queries."""
        world = self._world()
        commit = apply(world)
        touched = {
            folded for folded, state in world.queries.items() if follows_table(state.plan, name)
        }
        levels = affected(world, set(), touched)
        forced = {name for level in levels for name in level}  # also those that read the readers
        outcomes = self._evaluate(world, levels, tick, forced)
        crash_point("table.results-written")
        with self._catalog.write() as change:
            commit(change)
            commit_outcomes(change, outcomes)
            change.set_fact("tick", str(tick))

    def refresh(self, names: set[str], tick: int) -> None:
        """Bring queries up to date whose definition has changed below them."""
        world = self._world()
        outcomes = self._evaluate(world, affected(world, set(), names), tick, names)
        with self._catalog.write() as change:
            commit_outcomes(change, outcomes)
            change.set_fact("tick", str(tick))

    def consumed(self, stream_id: int) -> int:
        """The newest push whose rows are committed."""
        with self._catalog.read() as view:
            return int(view.fact(f"consumed:{stream_id}") or -1)

    def files_set_aside(self, stream_id: int) -> list:
        with self._catalog.read() as view:
            return view.files_set_aside(stream_id)

    def _world(self) -> World:
        with self._catalog.read() as view:
            world = load_world(view, self._root, self.plans)
        for state in world.queries.values():
            if state.record.class_id is not None:
                attach_shared(world, state, self.network(stream_of(state.record)))
        return world

    def _evaluate(
        self, world: World, levels: list[list[str]], tick: int, forced: Iterable[str] = ()
    ) -> list[Outcome]:
        return evaluate_levels(self.spark, world, levels, tick, set(forced), self._parallel)


def stream_of(record: QueryRecord) -> int:
    """The stream of a query that shares: it reads nothing else."""
    return int(record.reads[0].split(":")[1])
