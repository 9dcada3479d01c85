"""The engine: wires catalog, plans, Spark and answers together. Each method hands over to a room.

Writers hold the warehouse's lock from their first write on; readers never need it. Everything that
changes state takes `_lock`, so that registrations, table changes and heartbeats fall between
batches, in order.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from weft.catalog.lock import WriterLock
from weft.catalog.records import QueryRecord, StreamRecord, TableRecord, to_micros
from weft.catalog.store import Catalog, Change, Record, View
from weft.errors import NameTaken, SqlError, UnknownName, did_you_mean
from weft.logical.query import BoundQuery
from weft.logical.relations import StreamDefinition, TableDefinition
from weft.plan.inline import inline_views
from weft.plan.recompute import RecomputePlan, plan_recompute
from weft.results.pull import Standing
from weft.settings import load_settings
from weft.sql.bind import bind
from weft.sql.parse import parse
from weft.sql.statements import CreateQuery, Select
from weft.storage.coerce import coerce
from weft.storage.crash import crash_point
from weft.storage.inbox import Inbox, stamp
from weft.storage.sweep import sweep_orphans


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
        self.catalog = Catalog(catalog_url or f"sqlite:///{root / 'catalog.db'}")
        self.catalog.open()
        self.writer = WriterLock(root, self.catalog.engine)
        self._given_session = session
        self.settings = load_settings()
        self._lock = threading.RLock()
        self._running = threading.Lock()
        self._ticks: Ticks | None = None
        self._batches = None
        self._loop = None
        self._unmaintained = 0  # batches since the last round of maintenance
        self._definitions: dict[int, BoundQuery] = {}
        self._plans: dict[int, RecomputePlan] = {}

    # the writer's side

    def _write(self) -> Ticks:
        """Become the writer, once: take the lock, clear what a crash left, find the last tick."""
        with self._lock:
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
            return self._ticks

    def _sweep_inbox(self, stream: StreamRecord, inbox: Inbox) -> None:
        with self.catalog.read() as view:
            consumed = int(view.fact(f"consumed:{stream.id}") or -1)
        inbox.sweep(consumed)
        for path in inbox.ready_files():
            if int(path.stem.split("-")[1]) <= consumed:
                path.unlink()

    @property
    def spark(self):
        """The Spark session, started when it is first needed."""
        return self.batches.spark

    @property
    def batches(self):
        with self._lock:
            if self._batches is None:
                from weft.spark.batch import Batches
                from weft.spark.session import prepare, start_session

                self._write()
                session = self._given_session or start_session(self.root, self.settings)
                prepare(session)
                self._batches = Batches(
                    session, self.catalog, self.root, self._load_plans(), self.settings.parallel
                )
            return self._batches

    @property
    def loop(self):
        with self._lock:
            if self._loop is None:
                from weft.spark.loop import Loop

                self._loop = Loop(
                    self.batches.spark,
                    self.batches,
                    self.root,
                    self._write(),
                    self._lock,
                    self.maintain,
                )
            return self._loop

    @property
    def is_running(self) -> bool:
        return self._loop is not None and self._loop.is_running

    def inbox(self, stream: StreamRecord) -> Inbox:
        return Inbox(self.root / "inbox" / str(stream.id))

    # plans

    def _load_plans(self) -> dict[int, RecomputePlan]:
        """Plan every registered query again from its statement; no Spark is needed for it."""
        with self.catalog.read() as view:
            for record in view.queries():
                self._plan_record(view, record)
        return self._plans

    def _plan_record(self, view: View, record: QueryRecord) -> RecomputePlan:
        if record.id not in self._plans:
            statement = parse(record.statement)[0]
            bound = self._bind(view, statement.select, statement.emit)
            self._definitions[record.id] = bound
            self._plans[record.id] = plan_recompute(bound)
        return self._plans[record.id]

    @property
    def plans(self) -> dict[int, RecomputePlan]:
        """The plan of every registered query."""
        return self.batches.plans

    def plan_of(self, view: View, record: QueryRecord) -> RecomputePlan:
        with self._lock:
            return self._plan_record(view, record)

    def plan_select(self, view: View, select: Select, emit) -> RecomputePlan:
        """The plan that a select would have if it were registered."""
        with self._lock:
            return plan_recompute(self._bind(view, select, emit))

    def _bind(self, view: View, select: Select, emit) -> BoundQuery:
        bound = bind(select, Standing(view), emit)
        return inline_views(bound, lambda name: self._definition(view, name))

    def _definition(self, view: View, name: str) -> BoundQuery:
        record = view.find(name)
        self._plan_record(view, record)
        return self._definitions[record.id]

    # registering

    def create_stream(
        self, definition: StreamDefinition, or_replace: bool, if_not_exists: bool
    ) -> None:
        from weft.sql.options import check_stream_options

        check_stream_options(definition)
        definition = with_absolute_path(definition)
        with self._lock:
            ticks = self._write()
            with self.catalog.write() as change:
                old = self._free_name(change, definition.name, "stream", or_replace, if_not_exists)
                if old is False:
                    return
                if isinstance(old, StreamRecord) and self._loop is not None:
                    self._loop.remove(old)
                tick = ticks.next()
                stream_id = change.add_stream(definition, tick)
                change.set_fact("tick", str(tick))
            with self.catalog.read() as view:
                record = view.find(definition.name)
            Inbox(self.root / "inbox" / str(stream_id))
            if self.is_running:
                self._loop.add(record)

    def create_table(
        self, definition: TableDefinition, or_replace: bool, if_not_exists: bool
    ) -> bool:
        with self._lock:
            ticks = self._write()
            with self.catalog.write() as change:
                old = self._free_name(change, definition.name, "table", or_replace, if_not_exists)
                if old is False:
                    return False
                tick = ticks.next()
                change.add_table(definition, tick)
                change.set_fact("tick", str(tick))
        return True

    def _free_name(
        self, change: Change, name: str, kind: str, or_replace: bool, if_not_exists: bool
    ) -> Record | bool | None:
        """Make room for a name. False: it exists and that is fine."""
        old = change.find(name)
        if old is None:
            return None
        same_kind = kind_of(old) == kind
        if same_kind and if_not_exists:
            return False
        if not (same_kind and or_replace):
            raise NameTaken(
                f'{kind_of(old)} "{old.name}" already exists',
                hint=f"use another name, or CREATE OR REPLACE {CREATE_WORDS[kind]}"
                if same_kind
                else "use another name",
            )
        if kind != "query":
            refuse_if_read(change, old)
            change.remove(old)
        return old

    def create_query(self, statement: CreateQuery) -> QueryRecord:
        """Bind, plan, check, evaluate over the retained history, commit."""
        with self._lock:
            ticks = self._write()
            with self.catalog.read() as view:
                old = view.find(statement.name)
                if isinstance(old, QueryRecord) and statement.if_not_exists:
                    return old
                if old is not None and not (isinstance(old, QueryRecord) and statement.or_replace):
                    raise taken(old, "query")
                bound = self._bind(view, statement.select, statement.emit)
                reads = tuple(
                    dict.fromkeys(
                        owner_of(view, name) for name in names_read(bound, statement, view)
                    )
                )
                refuse_cycle(view, reads, old)
                plan = plan_recompute(bound)
            return self._register(statement, bound, plan, reads, old, ticks.next())

    def _register(self, statement: CreateQuery, bound, plan, reads, old, tick: int) -> QueryRecord:
        from weft.spark.problems import run_problem
        from weft.spark.register import analyse, horizons_of, make_record
        from weft.spark.world import load_world

        batches = self.batches
        with self.catalog.read() as view:
            world = load_world(view, self.root, self._plans)
        answer = analyse(batches.spark, world, plan, statement.text)
        with self.catalog.write() as change:
            query_id = change.reserve_query_id()
        crash_point("register.start")
        record = make_record(
            query_id, statement.name, statement.text, bound, plan, answer, reads,
            horizons_of(plan, world), tick,
        )  # fmt: skip
        if old is not None:
            self._check_readers(old, record)

        def replace_old(change: Change) -> None:
            if old is not None:
                change.repoint(old, record)
                change.remove(old)

        try:
            batches.register(record, plan, tick, replace_old)
        except Exception as error:
            raise query_problem(error, statement.text) or run_problem(
                error, f'query "{statement.name}"'
            ) from error
        self._plans[record.id] = plan
        self._definitions[record.id] = bound
        if old is not None:
            self._forget(old)
            self._refresh_readers(record)
        with self.catalog.read() as view:
            return view.find(record.name)

    def _refresh_readers(self, record: QueryRecord) -> None:
        """Queries above a replaced one read the new one from now on."""
        with self.catalog.read() as view:
            above = {q.name.lower() for q in readers_above(view, record)}
        if above:
            self.batches.refresh(above, self._write().next())

    def _check_readers(self, old: QueryRecord, new: QueryRecord) -> None:
        with self.catalog.read() as view:
            readers = readers_of(view, old)
        if readers and old.output_columns() != new.output_columns():
            raise SqlError(
                f'query "{old.name}" is read by {", ".join(readers)}, and its columns would change',
                hint="keep the columns, or drop the queries that read it first",
                code="WEFT_IN_USE",
            )

    def _forget(self, record: QueryRecord) -> None:
        """Plans that had the old definition inlined are made anew."""
        self._plans.pop(record.id, None)
        self._definitions.pop(record.id, None)
        with self.catalog.read() as view:
            live = {q.id for q in view.queries()}
            for query_id in list(self._plans):
                if query_id not in live:
                    self._plans.pop(query_id)
            for query in view.queries():
                if any(owner.startswith("query:") for owner in query.reads):
                    self._plans.pop(query.id, None)
                    self._definitions.pop(query.id, None)
            for query in view.queries():
                self._plan_record(view, query)

    def drop(self, kind: str, name: str, if_exists: bool, **place: int) -> None:
        with self._lock:
            self._write()
            with self.catalog.read() as view:
                record = view.find(name)
                if record is None or kind_of(record) != kind:
                    if record is None and if_exists:
                        return
                    raise unknown(view, name, kind, record, **place)
            if isinstance(record, StreamRecord) and self._loop is not None:
                self._loop.remove(record)
            with self.catalog.write() as change:
                refuse_if_read(change, record)
                change.remove(record)
                crash_point("drop.before-commit")
            if isinstance(record, QueryRecord):
                self._forget(record)

    # data

    def push(self, name: str, rows) -> int:
        """Store rows for a push stream (durable on return), or append them to a table."""
        ticks = self._write()
        with self.catalog.read() as view:
            record = view.find(name)
            if not isinstance(record, StreamRecord | TableRecord):
                raise unknown(view, name, "stream", record)
        if isinstance(record, TableRecord):
            return self._insert_rows(record, rows)
        if record.definition.source != "push":
            raise SqlError(
                f'stream "{record.name}" reads from {record.definition.source}, nothing can be pushed to it',
                hint="declare it without source = ...", code="WEFT_NOT_PUSH",
            )  # fmt: skip
        table = coerce(rows, record.definition.columns, f'stream "{record.name}"')
        if len(table) == 0:
            return 0
        inbox = self.inbox(record)
        with inbox.pushing:
            tick = ticks.next()
            inbox.add(stamp(table, tick), tick)
        return len(table)

    def _insert_rows(self, record: TableRecord, rows) -> int:
        from weft.storage.coerce import REASON

        table = coerce(rows, record.definition.columns, f'table "{record.name}"')
        bad = [reason for reason in table.column(REASON).to_pylist() if reason]
        if bad:
            raise SqlError(
                f'{len(bad)} rows do not fit table "{record.name}"',
                detail=bad[0],
                code="WEFT_TYPE_MISMATCH",
            )
        return self.change_table(record, lambda writer: writer.insert_arrow(table)).inserted

    def change_table(self, record: TableRecord, work: Callable):
        """Apply one change of a table and what follows from it, in one transaction."""
        from weft.results.tables import TableWriter

        with self._lock:
            tick = self._write().next()
            with self.catalog.read() as view:
                record = view.find(record.name)
                writer = TableWriter(record, view, self.root, tick)
                try:
                    made = work(writer)
                finally:
                    writer.close()
                is_followed = any(record.owner in q.reads for q in view.queries())

            def commit(change: Change) -> None:
                change.add_segments(made.segments)
                change.set_table(record.id, next_row=made.next_row, changed_tick=tick)
                change.set_fact("tick", str(tick))
                crash_point("table.before-commit")

            if is_followed:
                self._follow_table(record, made, tick, commit)
            else:
                with self.catalog.write() as change:
                    commit(change)
            crash_point("table.committed")
            return made

    def _follow_table(self, record: TableRecord, made, tick: int, commit: Callable) -> None:
        from weft.spark.problems import run_problem

        def apply(world):
            state = world.tables[record.name.lower()]
            state.segments = state.segments + list(made.segments)
            return commit

        try:
            self.batches.table_changed(record.name, tick, apply)
        except Exception as error:
            raise run_problem(error, f'table "{record.name}"') from error

    def run(self, progress=None) -> list:
        """Process everything that is available now."""
        self._write()
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
        self._write()
        if self.is_running:
            raise SqlError(
                "the pipeline is running already", hint="db.stop() stops it", code="WEFT_RUNNING"
            )
        self.loop.start(self._streams(), trigger, progress)
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
        ticks = self._write()
        with self.catalog.read() as view:
            record = view.find(name)
            if not isinstance(record, StreamRecord):
                raise unknown(view, name, "stream", record)
        if self.is_running:
            self._loop.drain(record)
        elif record.definition.source == "push" and self.inbox(record).has_rows():
            self.loop.run([record], None)
        with self._lock:
            from weft.spark.problems import run_problem

            try:
                self.batches.heartbeat(record, to_micros(instant), ticks.next())
            except Exception as error:
                raise run_problem(error, f'heartbeat of stream "{name}"') from error

    def maintain(self) -> None:
        """Prune, compact and sweep, between batches."""
        from weft.spark.maintain import Maintainer

        batches = self.batches
        with self._lock:
            self._unmaintained = 0
            Maintainer(batches.spark, self.catalog, self.root, self._plans, self.settings).run()

    def close(self) -> None:
        try:
            self.stop()
        finally:
            if self._batches is not None and self._given_session is None:
                self._batches.spark.stop()
            self._batches = self._loop = None
            self.writer.release()
            self.catalog.close()


CREATE_WORDS = {"query": "CONTINUOUS QUERY", "stream": "STREAM", "table": "TABLE"}


def with_absolute_path(definition: StreamDefinition) -> StreamDefinition:
    """A relative path means the folder of whoever wrote it, also when another process runs it."""
    path = definition.options.get("path")
    if definition.source != "files" or path is None or ":" in path.split("/")[0]:
        return definition
    return replace(definition, options={**definition.options, "path": str(Path(path).absolute())})


def kind_of(record: Record) -> str:
    return {StreamRecord: "stream", TableRecord: "table", QueryRecord: "query"}[type(record)]


def taken(old: Record, kind: str) -> NameTaken:
    same = kind_of(old) == kind
    hint = (
        f"use another name, or CREATE OR REPLACE {CREATE_WORDS[kind]}"
        if same
        else "use another name"
    )
    return NameTaken(f'{kind_of(old)} "{old.name}" already exists', hint=hint)


def unknown(view: View, name: str, kind: str, found: Record | None, **place: int) -> UnknownName:
    names = [n for n, k in view.names().items() if k == kind]
    detail = f'"{name}" is a {kind_of(found)}' if found is not None else None
    return UnknownName(
        f'{kind} "{name}" does not exist',
        detail=detail,
        hint=did_you_mean(name, names),
        code=f"WEFT_UNKNOWN_{kind.upper()}",
        **place,
    )


def readers_of(view: View, record: Record) -> list[str]:
    return [q.name for q in view.queries() if record.owner in q.reads]


def readers_above(view: View, record: Record) -> list[QueryRecord]:
    """The queries that read a record, directly or through others."""
    owners, found, grew = {record.owner}, [], True
    while grew:
        new = [q for q in view.queries() if q.owner not in owners and owners & set(q.reads)]
        owners |= {q.owner for q in new}
        found += new
        grew = bool(new)
    return found


def refuse_if_read(view: View, record: Record) -> None:
    readers = readers_of(view, record)
    if readers:
        raise SqlError(
            f'{kind_of(record)} "{record.name}" is read by {len(readers)} queries',
            detail="read by " + ", ".join(readers[:8]),
            hint="drop those queries first",
            code="WEFT_IN_USE",
        )


def names_read(bound: BoundQuery, statement: CreateQuery, view: View) -> list[str]:
    """What the statement names itself, before views are inlined, and what those read."""
    direct = bind(statement.select, Standing(view), statement.emit)
    return [s.relation.name for s in (*direct.sources, *bound.sources)]


def owner_of(view: View, name: str) -> str:
    return view.find(name).owner


def refuse_cycle(view: View, reads: tuple[str, ...], old: QueryRecord | None) -> None:
    """A replaced query must not come to read itself."""
    if old is None:
        return
    by_owner = {q.owner: q for q in view.queries()}
    waiting, seen = list(reads), set()
    while waiting:
        owner = waiting.pop()
        if owner == old.owner:
            raise SqlError(
                f'query "{old.name}" would read itself', hint="use another name", code="WEFT_CYCLE"
            )
        if owner in by_owner and owner not in seen:
            seen.add(owner)
            waiting += by_owner[owner].reads


def query_problem(error: Exception, text: str) -> SqlError | None:
    """A query that fails on the retained rows is refused with what Spark says of them."""
    from weft.spark.problems import data_problem_text, is_data_problem

    if isinstance(error, SqlError):
        return error
    if not is_data_problem(error):
        return None
    return SqlError(
        "the query fails on rows that are already there",
        detail=data_problem_text(error),
        hint="guard the expression, for example try_divide(a, b), try_cast(x AS INT)",
        code="WEFT_DATA_ERROR",
    )
