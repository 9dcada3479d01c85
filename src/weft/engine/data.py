"""Rows that come in: pushes to streams, changes of tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.catalog.change import Change
from weft.catalog.records import StreamRecord, TableRecord
from weft.catalog.rules import unknown
from weft.errors import SqlError
from weft.plan.recompute import follows_table
from weft.results.tables import TableChange, TableWriter
from weft.storage.coerce import REASON, coerce
from weft.storage.crash import crash_point
from weft.storage.inbox import stamp

if TYPE_CHECKING:
    from weft.engine.core import Engine


def push(engine: Engine, name: str, rows: Any) -> int:
    """Store rows for a push stream (durable on return), or append them to a table."""
    ticks = engine.become_writer()
    with engine.catalog.read() as view:
        record = view.find(name)
        if not isinstance(record, StreamRecord | TableRecord):
            raise unknown(view, name, "stream", record)
    if isinstance(record, TableRecord):
        return _insert_rows(engine, record, rows)
    if record.definition.source != "push":
        raise SqlError(
            f'stream "{record.name}" reads from {record.definition.source}, nothing can be pushed to it',
            hint="declare it without source = ...",
            code="WEFT_NOT_PUSH",
        )
    table = coerce(rows, record.definition.columns, f'stream "{record.name}"')
    if len(table) == 0:
        return 0
    inbox = engine.inbox(record)
    with inbox.pushing:
        tick = ticks.next()
        inbox.add(stamp(table, tick), tick)
    return len(table)


def _insert_rows(engine: Engine, record: TableRecord, rows: Any) -> int:
    table = coerce(rows, record.definition.columns, f'table "{record.name}"')
    bad = [reason for reason in table.column(REASON).to_pylist() if reason]
    if bad:
        raise SqlError(
            f'{len(bad)} rows do not fit table "{record.name}"',
            detail=bad[0],
            code="WEFT_TYPE_MISMATCH",
        )
    return change_table(engine, record, lambda writer: writer.insert_arrow(table)).inserted


def change_table(
    engine: Engine, record: TableRecord, work: Callable[[TableWriter], TableChange]
) -> TableChange:
    """Apply one change of a table and what follows from it, in one transaction."""
    with engine.lock:
        tick = engine.become_writer().next()
        with engine.catalog.read() as view:
            record = view.find(record.name)
            writer = TableWriter(record, view, engine.root, tick)
            try:
                made = work(writer)
            finally:
                writer.close()
            readers = [q for q in view.queries() if record.owner in q.reads]
            is_followed = any(follows_table(engine.plans.of(view, q), record.name) for q in readers)

        def commit(change: Change) -> None:
            change.add_segments(made.segments)
            change.set_table(record.id, next_row=made.next_row, changed_tick=tick)
            change.set_fact("tick", str(tick))
            crash_point("table.before-commit")

        if is_followed:
            _follow(engine, record, made, tick, commit)
        else:
            with engine.catalog.write() as change:
                commit(change)
        crash_point("table.committed")
        return made


def _follow(
    engine: Engine, record: TableRecord, made: TableChange, tick: int, commit: Callable
) -> None:
    """Evaluate the queries whose answer changes with the table, and commit all of it together."""
    from weft.spark.problems import run_problem

    def apply(world):
        state = world.tables[record.name.lower()]
        state.segments = state.segments + list(made.segments)
        return commit

    try:
        engine.batches.table_changed(record.name, tick, apply)
    except Exception as error:
        raise run_problem(error, f'table "{record.name}"') from error
