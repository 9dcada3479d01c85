"""Queries on their way into the catalog: those that share wait for each other and go in together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from weft.catalog.change import Change
from weft.catalog.records import QueryRecord
from weft.catalog.rules import readers_above
from weft.catalog.view import View
from weft.engine.alike import Alike
from weft.engine.planned import Planned, planned_query
from weft.errors import SqlError
from weft.optimizer.network import release_unused
from weft.sql.statements import CreateQuery
from weft.storage.crash import crash_point

if TYPE_CHECKING:
    from weft.engine.core import Engine
    from weft.spark.selecting import SelectDraft
    from weft.spark.sharing import Draft
    from weft.spark.world import World


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
            return planned_query(self._engine, view, self._world, statement, old, self._alike)
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


def register_one(engine: Engine, planned: Planned, tick: int) -> None:
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


def _drafts(found: list[Planned], records: list[QueryRecord]) -> list[Draft | SelectDraft]:
    from weft.spark.selecting import SelectDraft
    from weft.spark.sharing import Draft

    return [
        SelectDraft(record, p.selecting.value, p.selecting.selection)
        if p.selecting is not None
        else Draft(record, p.sharing.need, p.sharing.finish, p.plan)
        for record, p in zip(records, found, strict=True)
    ]


def _registered(engine: Engine, planned: Planned, record: QueryRecord) -> None:
    if planned.plan is not None:
        engine.plans.add(record, planned.bound, planned.plan)
    if planned.old is not None:
        engine.plans.forget(planned.old)
        _refresh_readers(engine, record)


def _refresh_readers(engine: Engine, record: QueryRecord) -> None:
    """Queries above a replaced one read the new one from now on."""
    with engine.catalog.read() as view:
        above = {q.name.lower() for q in readers_above(view, record)}
    if above:
        engine.batches.refresh(above, engine.become_writer().next())


def remove_query(change: Change, old: QueryRecord, successor: QueryRecord) -> None:
    """Forget a query; its readers read its successor."""
    change.repoint(old, successor)
    change.remove(old)


def release(change: Change, dropped: QueryRecord) -> None:
    """Free what only a dropped query used."""
    if dropped.class_id is not None:
        release_unused(change, int(dropped.reads[0].split(":")[1]))


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
