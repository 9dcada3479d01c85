"""Creating, replacing and dropping streams, tables and queries, between batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weft.catalog.records import QueryRecord, StreamRecord
from weft.catalog.rules import free_name, kind_of, refuse_if_read, taken, unknown
from weft.engine.waiting import Waiting, register_one, release
from weft.logical.relations import StreamDefinition, TableDefinition
from weft.sql.options import check_stream_options
from weft.sql.statements import CreateQuery
from weft.storage.crash import crash_point

if TYPE_CHECKING:
    from weft.engine.core import Engine


def create_stream(
    engine: Engine,
    definition: StreamDefinition,
    or_replace: bool,
    if_not_exists: bool,
    **place: int,
) -> None:
    check_stream_options(definition)
    definition = with_absolute_path(definition)
    with engine.lock:
        ticks = engine.become_writer()
        with engine.catalog.write() as change:
            old = free_name(change, definition.name, "stream", or_replace, if_not_exists, **place)
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
    engine: Engine,
    definition: TableDefinition,
    or_replace: bool,
    if_not_exists: bool,
    **place: int,
) -> bool:
    """Whether a table was made (False: there was one, and IF NOT EXISTS)."""
    with engine.lock:
        ticks = engine.become_writer()
        with engine.catalog.write() as change:
            old = free_name(change, definition.name, "table", or_replace, if_not_exists, **place)
            if old is False:
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
                    raise taken(old, "query", line=statement.line, column=statement.column)
                planned = waiting.planned(view, statement, old)
            if old is not None or not waiting.takes(planned):
                waiting.flush()
                register_one(engine, planned, ticks.next())
        waiting.flush()


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
