"""The engine's core: who writes, when Spark starts, and the loop that runs the batches.

Writers hold the warehouse's lock from their first write on; readers never need it. Everything that
changes state takes `lock`, so that registrations, table changes and heartbeats fall between
batches, in order.
"""

from __future__ import annotations

import itertools
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

from weft.catalog.lock import WriterLock
from weft.catalog.records import QueryRecord, StreamRecord, TableRecord, to_micros
from weft.catalog.rules import unknown
from weft.catalog.store import Catalog
from weft.catalog.view import View
from weft.engine import aggregates, altering, data, ready, registry
from weft.engine.answers import Reads
from weft.engine.plans import Plans
from weft.engine.weaver import Weaver
from weft.errors import SqlError
from weft.logical.relations import Emit, StreamDefinition, TableDefinition
from weft.logical.windows import microseconds
from weft.plan.recompute import RecomputePlan, plan_recompute
from weft.results.kept import KeptAnswers
from weft.settings import load_settings
from weft.sql.intervals import interval_from_text
from weft.sql.statements import AlterQuery, CreateAggregate, CreateQuery, Select
from weft.storage.inbox import Inbox
from weft.storage.sweep import sweep_orphans

WEFT = "weft_"  # functions that Weft gives the session for itself


class Ticks:
    """Positions in the order of events; one writer, so a counter in memory is enough."""

    def __init__(self, last: int) -> None:
        self._counter = itertools.count(last + 1)
        self._lock = threading.Lock()

    def next(self) -> int:
        with self._lock:
            return next(self._counter)


class Engine:
    def __init__(self, root: Path, catalog_url: str | None, session=None) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.catalog = Catalog(catalog_url) if catalog_url else Catalog.in_folder(root)
        self.catalog.open()
        self.writer = WriterLock(root, self.catalog.engine)
        self.settings = load_settings()
        self.plans = Plans(self.catalog, self._has_function)
        self.lock = threading.RLock()
        self._given_session = session
        self._session = None
        self._running = threading.Lock()
        self._ticks: Ticks | None = None
        self._batches = None
        self._analyses = None
        self._loop = None
        self._unmaintained = 0  # batches since the last round of maintenance
        self.reads = Reads()
        self.kept = KeptAnswers(self.settings.answers_bytes)
        self.weaver = Weaver(self)

    # the writer

    def become_writer(self) -> Ticks:
        """Become the writer, once: take the lock, clear what a crash left, find the last tick."""
        with self.lock:
            if self._ticks is None:
                self.writer.acquire()
                with self.catalog.read() as view:
                    last = int(view.fact("tick") or 0)
                    streams = view.streams()
                inboxes = [self.inbox(stream) for stream in streams]
                sweep_orphans(self.catalog, self.root)
                for stream, inbox in zip(streams, inboxes, strict=True):
                    self._sweep_inbox(stream, inbox)
                last = max([last, *(inbox.newest_tick() for inbox in inboxes)])
                self._ticks = Ticks(last)
                self.tell_spark()  # what another writer has registered meanwhile
            return self._ticks

    def _sweep_inbox(self, stream: StreamRecord, inbox: Inbox) -> None:
        with self.catalog.read() as view:
            consumed = int(view.fact(f"consumed:{stream.id}") or -1)
        inbox.sweep(consumed)
        for path in inbox.ready_files():
            if int(path.stem.split("-")[1]) <= consumed:
                path.unlink()

    # Spark, started when it is first needed

    @property
    def spark(self):
        """The Spark session, started when it is first needed; readers may have one too."""
        with self.lock:
            if self._session is None:
                from weft.spark.session import prepare, start_session

                self._session = self._given_session or start_session(self.root, self.settings)
                prepare(self._session)
                self.tell_spark()
            return self._session

    def _has_function(self, name: str) -> bool:
        """Whether the session, if there is one, has a function that the user has given it."""
        if self._session is None and self._given_session is None:
            return False
        return not name.startswith(WEFT) and self.spark.catalog.functionExists(name)

    def tell_spark(self) -> None:
        """Give the session, once there is one, the functions of Python aggregates."""
        if self._session is None:
            return
        with self.catalog.read() as view:
            definitions = aggregates.in_python(self.plans.aggregates(view))
        if definitions:
            from weft.spark.python import register_aggregates

            register_aggregates(self._session, definitions)

    @property
    def batches(self):
        with self.lock:
            if self._batches is None:
                from weft.spark.batch import Batches

                self.become_writer()
                self._batches = Batches(
                    self.spark, self.catalog, self.root, self.plans.load(), self.settings.parallel,
                    self.weaver.weaving, self.settings.take_rows,
                    lambda found: ready.keep(self, found),
                )  # fmt: skip
            return self._batches

    @property
    def analyses(self):
        with self.lock:
            if self._analyses is None:
                from weft.spark.register import Analyses

                self._analyses = Analyses(self.spark)
            if self._ticks is None:
                self.tell_spark()  # another process may be the writer
            return self._analyses

    def world(self, view: View):
        """What the analysis of a plan looks at."""
        from weft.spark.world import load_world

        return load_world(view, self.root, self.batches.plans)

    def network_changed(self) -> None:
        """Nodes or classes were dropped: read the networks again."""
        if self._batches is not None:
            self._batches.forget_networks()

    @property
    def loop(self):
        with self.lock:
            if self._loop is None:
                from weft.spark.loop import Loop

                self._loop = Loop(
                    self.batches.spark,
                    self.batches,
                    self.root,
                    self.become_writer(),
                    self.lock,
                    self.maintain,
                )
            return self._loop

    @property
    def is_running(self) -> bool:
        return self._loop is not None and self._loop.is_running

    def inbox(self, stream: StreamRecord) -> Inbox:
        return Inbox(self.root / "inbox" / str(stream.id))

    # plans

    def plan_of(self, view: View, record: QueryRecord) -> RecomputePlan:
        with self.lock:
            return self.plans.of(view, record)

    def plan_select(self, view: View, select: Select, emit: Emit | None) -> RecomputePlan:
        """The plan that a select would have if it were registered, its aggregates marked."""
        with self.lock:
            return plan_recompute(self.plans.bind(view, select, emit))

    # registering, and rows that come in

    def create_stream(
        self, definition: StreamDefinition, or_replace: bool, if_not_exists: bool, **place: int
    ) -> None:
        registry.create_stream(self, definition, or_replace, if_not_exists, **place)

    def create_table(
        self, definition: TableDefinition, or_replace: bool, if_not_exists: bool, **place: int
    ) -> bool:
        return registry.create_table(self, definition, or_replace, if_not_exists, **place)

    def create_query(self, statement: CreateQuery) -> QueryRecord:
        return registry.create_query(self, statement)

    def create_queries(self, statements: list[CreateQuery]) -> None:
        registry.create_queries(self, statements)

    def alter_query(self, statement: AlterQuery) -> None:
        altering.alter_query(self, statement)

    def create_aggregate(self, statement: CreateAggregate) -> None:
        aggregates.create_aggregate(self, statement)

    def drop(self, kind: str, name: str, if_exists: bool, **place: int) -> None:
        if kind == "aggregate":
            aggregates.drop_aggregate(self, name, if_exists, **place)
            return
        registry.drop(self, kind, name, if_exists, **place)

    def push(self, name: str, rows: Any) -> int:
        return data.push(self, name, rows)

    def change_table(self, record: TableRecord, work) -> Any:
        return data.change_table(self, record, work)

    # the loop

    def join_loop(self, record: StreamRecord) -> None:
        """A new stream takes part in a running pipeline at once."""
        if self.is_running:
            self._loop.add(record)

    def leave_loop(self, record: StreamRecord) -> None:
        if self._loop is not None:
            self._loop.remove(record)

    def run(self, progress=None) -> list:
        """Process everything that is available now."""
        self.become_writer()
        with self._running:
            if self.is_running:
                for record in self._streams():
                    self._loop.drain(record)
                return []
            reports = self.loop.run(self._streams(), progress)
            self._unmaintained += len(reports)
            if self._unmaintained >= self.settings.maintain_every:
                self.maintain()
            return reports

    def _streams(self) -> list[StreamRecord]:
        with self.catalog.read() as view:
            return view.streams()

    def start(self, trigger: str, progress=None) -> None:
        self.become_writer()
        if self.is_running:
            raise SqlError(
                "the pipeline is running already", hint="db.stop() stops it", code="WEFT_RUNNING"
            )
        every = interval_from_text(trigger)
        self.loop.start(self._streams(), f"{microseconds(every)} microseconds", progress)
        with self.catalog.write() as change:
            change.set_fact("pipeline", "running")

    def stop(self) -> None:
        if self._loop is None:
            return
        was_started = self._loop.was_started
        self._loop.stop()
        if was_started:
            with self.catalog.write() as change:
                change.set_fact("pipeline", "stopped")
            failure, self._loop.failure = self._loop.failure, None
            if failure is not None:
                raise failure
            self.maintain()

    def advance(self, name: str, instant: datetime) -> None:
        """Heartbeat: rows pushed before it count first, then the clock moves."""
        ticks = self.become_writer()
        with self.catalog.read() as view:
            record = view.find(name)
            if not isinstance(record, StreamRecord):
                raise unknown(view, name, "stream", record)
        if self.is_running:
            self._loop.drain(record)
        elif record.definition.source == "push" and self.inbox(record).has_rows():
            self.loop.run([record], None)
        with self.lock:
            from weft.spark.problems import run_problem

            try:
                self.batches.heartbeat(record, to_micros(instant), ticks.next())
            except Exception as error:
                raise run_problem(error, f'heartbeat of stream "{name}"') from error

    def maintain(self) -> None:
        """Prune, compact and sweep, and look after the plans, between batches."""
        from weft.spark.maintain import Maintainer

        batches = self.batches
        with self.lock:
            self._unmaintained = 0
            self.reads.choose(self)
            Maintainer(
                batches.spark, self.catalog, self.root, self.plans.by_id, self.settings
            ).run()
            self.network_changed()  # nodes may have let go of their past
            self.weaver.look()

    def close(self) -> None:
        try:
            self.stop()
        finally:
            self.weaver.close()
            if self._session is not None and self._given_session is None:
                from weft.spark.session import release_session

                release_session(self._session)
            self._session = self._batches = self._analyses = self._loop = None
            self.writer.release()
            self.catalog.close()
