"""Creating, replacing and dropping streams, tables and queries, between batches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weft.catalog.change import Change
from weft.catalog.records import QueryRecord, StreamRecord
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
from weft.errors import SqlError
from weft.logical.query import BoundQuery
from weft.logical.relations import StreamDefinition, TableDefinition
from weft.plan.recompute import RecomputePlan, plan_recompute
from weft.results.pull import Standing
from weft.sql.bind import bind
from weft.sql.options import check_stream_options
from weft.sql.statements import CreateQuery
from weft.storage.crash import crash_point

if TYPE_CHECKING:
    from weft.engine.core import Engine


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
    with engine.lock:
        ticks = engine.become_writer()
        with engine.catalog.read() as view:
            old = view.find(statement.name)
            if isinstance(old, QueryRecord) and statement.if_not_exists:
                return old
            if old is not None and not (isinstance(old, QueryRecord) and statement.or_replace):
                raise taken(old, "query")
            bound = engine.plans.bind(view, statement.select, statement.emit)
            reads = _reads(view, bound, statement)
            refuse_cycle(view, reads, old)
            plan = plan_recompute(bound)
        return _register(engine, statement, bound, plan, reads, old, ticks.next())


def _reads(view: View, bound: BoundQuery, statement: CreateQuery) -> tuple[str, ...]:
    """The owners that a statement names itself, before views are inlined, and what those read."""
    direct = bind(statement.select, Standing(view), statement.emit)
    names = [s.relation.name for s in (*direct.sources, *bound.sources)]
    return tuple(dict.fromkeys(owner_of(view, name) for name in names))


def _register(
    engine: Engine,
    statement: CreateQuery,
    bound: BoundQuery,
    plan: RecomputePlan,
    reads: tuple[str, ...],
    old: QueryRecord | None,
    tick: int,
) -> QueryRecord:
    from weft.spark.problems import run_problem
    from weft.spark.register import analyse, horizons_of, make_record
    from weft.spark.world import load_world

    batches = engine.batches
    with engine.catalog.read() as view:
        world = load_world(view, engine.root, engine.plans.by_id)
    answer = analyse(batches.spark, world, plan, statement.text)
    with engine.catalog.write() as change:
        query_id = change.reserve_query_id()
    crash_point("register.start")
    record = make_record(
        query_id, statement.name, statement.text, bound, plan, answer, reads,
        horizons_of(plan, world), tick,
    )  # fmt: skip
    if old is not None:
        _check_readers(engine, old, record)

    def replace_old(change: Change) -> None:
        if old is not None:
            change.repoint(old, record)
            change.remove(old)

    try:
        batches.register(record, plan, tick, replace_old)
    except Exception as error:
        raise query_problem(error) or run_problem(error, f'query "{record.name}"') from error
    engine.plans.add(record, bound, plan)
    if old is not None:
        engine.plans.forget(old)
        _refresh_readers(engine, record)
    with engine.catalog.read() as view:
        return view.find(record.name)


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
            crash_point("drop.before-commit")
        if isinstance(record, QueryRecord):
            engine.plans.forget(record)


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
