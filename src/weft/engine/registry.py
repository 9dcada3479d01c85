"""Creating, replacing and dropping streams, tables and queries, between batches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from weft.catalog.change import Change
from weft.catalog.records import FINISHED_ON_SPARK, QueryRecord, StreamRecord
from weft.catalog.rules import (
    free_name,
    kind_of,
    owner_of,
    readers_above,
    readers_of,
    refuse_cycle,
    refuse_if_read,
    taken,
    unknown,
)
from weft.catalog.view import View
from weft.engine.aggregates import user_defined
from weft.engine.alike import Alike
from weft.engine.keeping import with_keep
from weft.engine.selecting import not_a_selection
from weft.engine.sharing import stream_of, what_it_shares
from weft.errors import SqlError
from weft.logical.aggregates import CannotShare
from weft.logical.query import BoundQuery
from weft.logical.relations import StreamDefinition, TableDefinition
from weft.optimizer.network import release_unused
from weft.plan.drafting import Sharing
from weft.plan.recompute import RecomputePlan, plan_recompute
from weft.plan.select import Selecting, is_selection
from weft.results.pull import Standing
from weft.sql.bind import bind
from weft.sql.options import check_query_options, check_stream_options
from weft.sql.statements import CreateQuery
from weft.storage.crash import crash_point

if TYPE_CHECKING:
    from weft.engine.core import Engine
    from weft.spark.selecting import SelectDraft
    from weft.spark.sharing import Draft
    from weft.spark.world import World


def create_stream(
    engine: Engine, definition: StreamDefinition, or_replace: bool, if_not_exists: bool
) -> None:
    check_stream_options(definition)
    definition = with_absolute_path(definition)
    with engine.lock:
        ticks = engine.become_writer()
        with engine.catalog.write() as change:
            old = free_name(change, definition.name, "stream", or_replace, if_not_exists)
            if old is False:
                return
            if isinstance(old, StreamRecord):
                engine.leave_loop(old)
            tick = ticks.next()
            change.add_stream(definition, tick)
            change.set_fact("tick", str(tick))
        with engine.catalog.read() as view:
            record = view.find(definition.name)
        engine.inbox(record)
        engine.join_loop(record)


def create_table(
    engine: Engine, definition: TableDefinition, or_replace: bool, if_not_exists: bool
) -> bool:
    """Whether a table was made (False: there was one, and IF NOT EXISTS)."""
    with engine.lock:
        ticks = engine.become_writer()
        with engine.catalog.write() as change:
            if free_name(change, definition.name, "table", or_replace, if_not_exists) is False:
                return False
            tick = ticks.next()
            change.add_table(definition, tick)
            change.set_fact("tick", str(tick))
    return True


def create_query(engine: Engine, statement: CreateQuery) -> QueryRecord:
    """Bind, plan, check, evaluate over the retained history, commit."""
    create_queries(engine, [statement])
    with engine.catalog.read() as view:
        return view.find(statement.name)


def create_queries(engine: Engine, statements: Sequence[CreateQuery]) -> None:
    """Register queries; those that come one after the other and share go in together."""
    with engine.lock:
        ticks = engine.become_writer()
        waiting = Waiting(engine)
        for statement in statements:
            if waiting.is_named_by(statement):
                waiting.flush()
            if (planned := waiting.alike(statement)) is not None:
                waiting.takes(planned)
                continue
            with waiting.view() as view:
                old = view.find(statement.name)
                if isinstance(old, QueryRecord) and statement.if_not_exists:
                    continue
                if old is not None and not (isinstance(old, QueryRecord) and statement.or_replace):
                    waiting.flush()
                    raise taken(old, "query")
                planned = waiting.planned(view, statement, old)
            if old is not None or not waiting.takes(planned):
                waiting.flush()
                _register(engine, planned, ticks.next())
        waiting.flush()


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A query that is bound, planned and checked, but not registered."""

    statement: CreateQuery
    bound: BoundQuery
    plan: RecomputePlan | None  # None: it is planned when somebody asks
    record: QueryRecord  # without an id
    old: QueryRecord | None
    sharing: Sharing | None = None
    selecting: Selecting | None = None  # it shares the rows themselves

    @property
    def stream_id(self) -> int | None:
        """The stream whose network it enters; None: it is evaluated by itself."""
        if self.selecting is not None:
            return self.selecting.value.stream_id
        return None if self.sharing is None else self.sharing.need.value.stream_id


def _planned(
    engine: Engine, view: View, world: World, statement: CreateQuery, old: QueryRecord | None,
    alike: Alike,
) -> Planned:  # fmt: skip
    from weft.spark.register import horizons_of, make_record
    from weft.spark.world import load_shared

    check_query_options(statement)
    bound = engine.plans.bind(view, statement.select, statement.emit)
    reads = _reads(engine, view, bound, statement)
    refuse_cycle(view, reads, old)
    drafted = plan_recompute(bound)
    if "materialize" in statement.options and not is_selection(drafted):
        raise not_a_selection(statement.name, "materialize")
    plan = engine.plans.written_out(view, drafted)
    load_shared(view, world, plan)
    analyses = engine.analyses
    answer = analyses.schema(world, plan, statement.text)
    horizons = horizons_of(plan, world)
    record = make_record(0, statement.name, statement.text, bound, plan, answer, reads, horizons, 0)
    record = with_keep(record, statement.options)
    shared: dict[str, Sharing | Selecting] = {}
    try:
        shared = what_it_shares(engine, view, statement, drafted, answer.names, horizons)
        sharing = shared.get("sharing")
        is_stored = sharing is not None and sharing.finish.on_spark
        record = replace(record, strategy=FINISHED_ON_SPARK if is_stored else "shared")
    except CannotShare as reason:
        record = replace(record, strategy=f"{record.strategy}; not shared: {reason}")
    if old is not None:
        _check_readers(engine, old, record)
    planned = Planned(statement, bound, plan, record, old, **shared)
    if planned.selecting is not None and not _may_read_queries(view, statement):
        alike.learn(planned, drafted, analyses.type_of(stream_of(drafted)))
    return planned


class Waiting:
    """Queries that share and wait to be registered together: one back-fill, one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._found: list[Planned] = []
        self._names: set[str] = set()
        self._world: World | None = None  # what analyses look at, until something is registered
        self._known: dict = {}  # what was found by name, until then
        self._taken: set[str] | None = None  # names that are registered
        self._alike = Alike()

    def alike(self, statement: CreateQuery) -> Planned | None:
        """The plan of a new query whose shape is known; no look at the catalog is needed for it."""
        if self._taken is None or statement.name.lower() in self._taken:
            return None
        return self._alike.planned(statement)

    @contextmanager
    def view(self) -> Iterator[View]:
        """A look at the catalog; this process alone writes, so what was found before still stands."""
        with self._engine.catalog.read() as view:
            view.remember(self._known)
            yield view

    def is_named_by(self, statement: CreateQuery) -> bool:
        """Whether a statement reads or repeats a query that still waits."""
        return not self._names.isdisjoint(re.findall(r"\w+", statement.text.lower()))

    def planned(self, view: View, statement: CreateQuery, old: QueryRecord | None) -> Planned:
        """Plan; a bad statement leaves those before it registered, as if given one by one."""
        if self._world is None:
            self._world = self._engine.world(view)
        try:
            if self._taken is None:
                self._taken = {name.lower() for name in view.names()}
            return _planned(self._engine, view, self._world, statement, old, self._alike)
        except Exception:
            self.flush()
            raise

    def takes(self, planned: Planned) -> bool:
        """Keep a query for later, if it can wait: later ones must not read it meanwhile."""
        if planned.stream_id is None:
            return False
        if self._found and planned.stream_id != self._found[0].stream_id:
            self.flush()
        self._found.append(planned)
        self._names.update(re.findall(r"\w+", planned.statement.name.lower()))
        return True

    def flush(self) -> None:
        found, self._found = self._found, []
        self._names.clear()
        self._world, self._known, self._taken = None, {}, None
        self._alike.clear()
        if found:
            _register_shared(self._engine, found, self._engine.become_writer().next())


def _drafts(found: list[Planned], records: list[QueryRecord]) -> list[Draft | SelectDraft]:
    from weft.spark.selecting import SelectDraft
    from weft.spark.sharing import Draft

    return [
        SelectDraft(record, p.selecting.value, p.selecting.selection)
        if p.selecting is not None
        else Draft(record, p.sharing.need, p.sharing.finish, p.plan)
        for record, p in zip(records, found, strict=True)
    ]


def _register_shared(engine: Engine, found: list[Planned], tick: int) -> None:
    from weft.spark.problems import is_data_problem, run_problem

    batches = engine.batches
    with engine.catalog.write() as change:
        ids = change.reserve_query_ids(len(found))
    records = [replace(p.record, id=i, created_tick=tick) for p, i in zip(found, ids, strict=True)]
    crash_point("register.start")
    drafts = _drafts(found, records)

    def replace_old(change: Change) -> None:
        for planned, record in zip(found, records, strict=True):
            if planned.old is not None:
                remove_query(change, planned.old, record)

    def release_old(change: Change) -> None:
        for planned in found:
            if planned.old is not None:
                release(change, planned.old)

    try:
        batches.register_shared(drafts, tick, replace_old, release_old)
    except Exception as error:
        if len(found) > 1 and is_data_problem(error):  # as if given one by one
            for planned in found:
                _register_shared(engine, [planned], engine.become_writer().next())
            return
        name = found[0].statement.name
        raise query_problem(error) or run_problem(error, f'query "{name}"') from error
    for planned, record in zip(found, records, strict=True):
        _registered(engine, planned, record)


def _registered(engine: Engine, planned: Planned, record: QueryRecord) -> None:
    if planned.plan is not None:
        engine.plans.add(record, planned.bound, planned.plan)
    if planned.old is not None:
        engine.plans.forget(planned.old)
        _refresh_readers(engine, record)


def remove_query(change: Change, old: QueryRecord, successor: QueryRecord) -> None:
    """Forget a query; its readers read its successor."""
    change.repoint(old, successor)
    change.remove(old)


def release(change: Change, dropped: QueryRecord) -> None:
    """Free what only a dropped query used."""
    if dropped.class_id is not None:
        release_unused(change, int(dropped.reads[0].split(":")[1]))


def _reads(
    engine: Engine, view: View, bound: BoundQuery, statement: CreateQuery
) -> tuple[str, ...]:
    """The owners that a statement names itself, before views are inlined, and what those read."""
    if not _may_read_queries(view, statement):
        return tuple(dict.fromkeys(owner_of(view, s.relation.name) for s in bound.sources))
    functions = user_defined(engine.plans.aggregates(view))
    direct = bind(statement.select, Standing(view), statement.emit, functions=functions)
    names = [s.relation.name for s in (*direct.sources, *bound.sources)]
    return tuple(dict.fromkeys(owner_of(view, name) for name in names))


def _may_read_queries(view: View, statement: CreateQuery) -> bool:
    """Whether a statement may name a registered query; most name none, which is seen at a glance."""
    words = re.findall(r"\b[^\W\d]\w*", statement.text.lower())
    names = (view.find(word) for word in dict.fromkeys(words))
    return "`" in statement.text or any(isinstance(found, QueryRecord) for found in names)


def _register(engine: Engine, planned: Planned, tick: int) -> None:
    if planned.stream_id is not None:
        return _register_shared(engine, [planned], tick)
    from weft.spark.problems import run_problem

    with engine.catalog.write() as change:
        query_id = change.reserve_query_id()
    crash_point("register.start")
    record = replace(planned.record, id=query_id, created_tick=tick)

    def replace_old(change: Change) -> None:
        if planned.old is not None:
            remove_query(change, planned.old, record)
            release(change, planned.old)

    try:
        engine.batches.register(record, planned.plan, tick, replace_old)
    except Exception as error:
        raise query_problem(error) or run_problem(error, f'query "{record.name}"') from error
    _registered(engine, planned, record)
    return None


def _refresh_readers(engine: Engine, record: QueryRecord) -> None:
    """Queries above a replaced one read the new one from now on."""
    with engine.catalog.read() as view:
        above = {q.name.lower() for q in readers_above(view, record)}
    if above:
        engine.batches.refresh(above, engine.become_writer().next())


def _check_readers(engine: Engine, old: QueryRecord, new: QueryRecord) -> None:
    with engine.catalog.read() as view:
        readers = readers_of(view, old)
    if readers and old.output_columns() != new.output_columns():
        raise SqlError(
            f'query "{old.name}" is read by {", ".join(readers)}, and its columns would change',
            hint="keep the columns, or drop the queries that read it first",
            code="WEFT_IN_USE",
        )


def drop(engine: Engine, kind: str, name: str, if_exists: bool, **place: int) -> None:
    with engine.lock:
        engine.become_writer()
        with engine.catalog.read() as view:
            record = view.find(name)
            if record is None or kind_of(record) != kind:
                if record is None and if_exists:
                    return
                raise unknown(view, name, kind, record, **place)
            refuse_if_read(view, record)
        if isinstance(record, StreamRecord):
            engine.leave_loop(record)
        with engine.catalog.write() as change:
            change.remove(record)
            if isinstance(record, QueryRecord):
                release(change, record)
            crash_point("drop.before-commit")
        if isinstance(record, QueryRecord):
            engine.plans.forget(record)
            engine.network_changed()


def with_absolute_path(definition: StreamDefinition) -> StreamDefinition:
    """A relative path means the folder of whoever wrote it, also when another process runs it."""
    path = definition.options.get("path")
    if definition.source != "files" or path is None or ":" in path.split("/")[0]:
        return definition
    return replace(definition, options={**definition.options, "path": str(Path(path).absolute())})


def query_problem(error: Exception) -> SqlError | None:
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
