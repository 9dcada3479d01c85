"""Looking things up in one consistent state of the catalog."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import sqlalchemy as sa

from weft.catalog import schema as s
from weft.catalog.records import (
    FINISHED_ON_SPARK,
    QueryRecord,
    Segment,
    StreamRecord,
    TableRecord,
    load_keep,
    load_stream,
    load_table,
)
from weft.logical.relations import Column

Record = StreamRecord | TableRecord | QueryRecord


def now_micros() -> int:
    return time.time_ns() // 1000


class View:
    """Looks things up in one consistent state of the catalog."""

    def __init__(self, connection: sa.Connection) -> None:
        self._c = connection
        self._found: dict[str, Record | None] = {}
        self._streams: list[StreamRecord] | None = None

    def fact(self, key: str) -> str | None:
        return self._c.execute(sa.select(s.facts.c.value).where(s.facts.c.key == key)).scalar()

    def facts(self) -> dict[str, str]:
        return {row.key: row.value for row in self._c.execute(sa.select(s.facts))}

    def streams(self) -> list[StreamRecord]:
        """All streams. The state does not change, so it is looked at once."""
        if self._streams is None:
            self._streams = self._every_stream()
        return list(self._streams)

    def _every_stream(self) -> list[StreamRecord]:
        return [_stream(row) for row in self._c.execute(sa.select(s.streams).order_by("id"))]

    def stream(self, stream_id: int) -> StreamRecord:
        return next(stream for stream in self.streams() if stream.id == stream_id)

    def tables(self) -> list[TableRecord]:
        return [_table(row) for row in self._c.execute(sa.select(s.tables).order_by("id"))]

    def queries(self) -> list[QueryRecord]:
        return self._queries(sa.true())

    def sharing(self) -> list[QueryRecord]:
        """The queries that share their aggregation."""
        return self._queries(s.queries.c.class_id.is_not(None))

    def stored(self) -> list[QueryRecord]:
        """The queries whose answers batches compute and keep."""
        c = s.queries.c
        return self._queries(sa.or_(c.class_id.is_(None), c.strategy == FINISHED_ON_SPARK))

    def _queries(self, which: sa.ColumnElement) -> list[QueryRecord]:
        query = sa.select(s.queries).where(which)
        clocks = self._clocks()
        rows = self._c.execute(query.order_by("id"))
        return [self._with_clock(_query(row), clocks) for row in rows]

    def readers(self, owner: str) -> list[QueryRecord]:
        """The queries that read an owner, directly or through a view; "query:" means any query."""
        pattern = f'%"{owner}"%' if owner[-1].isdigit() else f'%"{owner}%'
        query = sa.select(s.queries).where(s.queries.c.reads.like(pattern)).order_by("id")
        clocks = self._clocks()
        return [self._with_clock(_query(row), clocks) for row in self._c.execute(query)]

    def _with_clock(self, record: QueryRecord, clocks: dict[int, int | None]) -> QueryRecord:
        """The clock of a query that is assembled when read is its stream's: no batch writes it."""
        if record.is_stored:
            return record
        return replace(record, clock=clocks.get(int(record.reads[0].split(":")[1])))

    def find(self, name: str) -> Record | None:
        """What has this name. The state does not change, so it is looked for once."""
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def remember(self, found: dict[str, Record | None]) -> None:
        """Use what an earlier look found, and add to it; for whoever knows that nothing changed."""
        self._found = found

    def _find(self, name: str) -> Record | None:
        for table, load in ((s.queries, _query), (s.streams, _stream), (s.tables, _table)):
            found = self._c.execute(sa.select(table).where(table.c.folded == name.lower())).first()
            if found and table is s.queries and found.class_id is not None:
                return self._with_clock(load(found), self._clocks())
            if found:
                return load(found)
        return None

    def _clocks(self) -> dict[int, int | None]:
        return {stream.id: stream.clock for stream in self.streams()}

    def names(self) -> dict[str, str]:
        found = {}
        for kind, table in (("stream", s.streams), ("table", s.tables), ("query", s.queries)):
            for (name,) in self._c.execute(sa.select(table.c.name).order_by("id")):
                found[name] = kind
        return found

    def segments(self, owner: str, *parts: str) -> list[Segment]:
        """Live segments of an owner, oldest first."""
        c = s.segments.c
        query = sa.select(s.segments).where(c.owner == owner, c.dropped_at.is_(None))
        if parts:
            query = query.where(c.part.in_(parts))
        return [_segment(row) for row in self._c.execute(query.order_by(c.id))]

    def every_path(self) -> set[str]:
        return {path for (path,) in self._c.execute(sa.select(s.segments.c.path))}

    def dropped(self, before: int) -> list[Segment]:
        c = s.segments.c
        query = sa.select(s.segments).where(c.dropped_at.is_not(None), c.dropped_at <= before)
        return [_segment(row) for row in self._c.execute(query)]

    def batches(self, limit: int) -> list[sa.Row]:
        query = sa.select(s.batches).order_by(s.batches.c.id.desc()).limit(limit)
        return list(self._c.execute(query))

    def stream_batches(self, stream_id: int, limit: int) -> list[sa.Row]:
        """The newest batches of a stream, newest first."""
        c = s.batches.c
        query = sa.select(s.batches).where(c.stream_id == stream_id)
        return list(self._c.execute(query.order_by(c.id.desc()).limit(limit)))

    def profile(self, stream_id: int) -> bytes | None:
        c = s.profiles.c
        return self._c.execute(sa.select(c.sample).where(c.stream_id == stream_id)).scalar()

    def weaves(self, stream_id: int, limit: int) -> list[sa.Row]:
        """The newest changes of a stream's plan, newest first."""
        c = s.weaves.c
        query = sa.select(s.weaves).where(c.stream_id == stream_id)
        return list(self._c.execute(query.order_by(c.id.desc()).limit(limit)))

    def evaluations(self, query_id: int) -> list[sa.Row]:
        c = s.evaluations.c
        query = sa.select(s.evaluations).where(c.query_id == query_id).order_by(c.evaluation)
        return list(self._c.execute(query))

    def evaluation_at(self, query_id: int, clock: int) -> int:
        """The newest evaluation at or before an instant of the query's clock; 0 if there is none."""
        c = s.evaluations.c
        query = sa.select(sa.func.max(c.evaluation)).where(
            c.query_id == query_id, sa.or_(c.clock.is_(None), c.clock <= clock)
        )
        return self._c.execute(query).scalar() or 0

    def clock_at(self, query_id: int, evaluation: int) -> int | None:
        c = s.evaluations.c
        found = sa.select(c.clock).where(c.query_id == query_id, c.evaluation == evaluation)
        return self._c.execute(found).scalar()

    def clocks(self, stream_id: int, after: int = 0) -> list[sa.Row]:
        """The stream's evaluations after one, in order: (evaluation, clock, tick)."""
        c = s.clocks.c
        query = sa.select(s.clocks).where(c.stream_id == stream_id, c.evaluation > after)
        return list(self._c.execute(query.order_by(c.evaluation)))

    def evaluation_of(self, stream_id: int, clock: int) -> int:
        """The newest evaluation of a stream at or before an instant of its clock; 0: none."""
        c = s.clocks.c
        query = sa.select(sa.func.max(c.evaluation)).where(
            c.stream_id == stream_id, c.clock.is_not(None), c.clock <= clock
        )
        return self._c.execute(query).scalar() or 0

    def nodes(self, stream_id: int | None = None) -> list[sa.Row]:
        query = sa.select(s.group_topology)
        if stream_id is not None:
            query = query.where(s.group_topology.c.stream_id == stream_id)
        return list(self._c.execute(query.order_by("id")))

    def classes(self, stream_id: int) -> list[sa.Row]:
        query = sa.select(s.classes).where(s.classes.c.stream_id == stream_id)
        return list(self._c.execute(query.order_by("id")))

    def class_of(self, class_id: int) -> sa.Row:
        return self._c.execute(sa.select(s.classes).where(s.classes.c.id == class_id)).one()

    def routes(self, class_id: int) -> list[sa.Row]:
        c = s.routes.c
        query = sa.select(s.routes).where(c.class_id == class_id)
        return list(self._c.execute(query.order_by(c.from_tick)))

    def routes_of_stream(self, stream_id: int) -> list[sa.Row]:
        joined = s.routes.join(s.classes, s.classes.c.id == s.routes.c.class_id)
        query = sa.select(s.routes).select_from(joined).where(s.classes.c.stream_id == stream_id)
        return list(self._c.execute(query.order_by(s.routes.c.class_id, s.routes.c.from_tick)))

    def rows(self, relation: str) -> list[sa.Row]:
        """Everything in one of the catalog's relations, by its key."""
        table = s.metadata.tables[relation]
        return list(self._c.execute(sa.select(table).order_by(*table.primary_key.columns)))

    def shared_texts(self, stream_id: int) -> list[sa.Row]:
        """(class, shared, columns) of every query of a stream that shares."""
        c = s.queries.c
        joined = s.queries.join(s.classes, s.classes.c.id == c.class_id)
        query = sa.select(c.class_id, c.shared, c.columns).select_from(joined)
        return list(self._c.execute(query.where(s.classes.c.stream_id == stream_id)))

    def sharers(self, class_id: int) -> list[str]:
        c = s.queries.c
        query = sa.select(c.name).where(c.class_id == class_id).order_by(c.id)
        return [name for (name,) in self._c.execute(query)]

    def aggregates(self) -> list[str]:
        """The statements of user-defined aggregates."""
        return [
            text
            for (text,) in self._c.execute(sa.select(s.aggregates.c.statement).order_by("folded"))
        ]

    def files_set_aside(self, stream_id: int) -> list[sa.Row]:
        return list(
            self._c.execute(sa.select(s.set_aside).where(s.set_aside.c.stream_id == stream_id))
        )


def _stream(row: sa.Row) -> StreamRecord:
    return StreamRecord(
        row.id, load_stream(row.definition), row.clock, row.max_time, row.batch_id, row.rows,
        row.late, row.rejected, row.pruned_rows, row.pruned_before, row.created_tick, row.evaluation,
    )  # fmt: skip


def _table(row: sa.Row) -> TableRecord:
    return TableRecord(row.id, load_table(row.definition), row.changed_tick, row.next_row)


def _query(row: sa.Row) -> QueryRecord:
    answer = json.loads(row.columns)
    return QueryRecord(
        id=row.id,
        name=row.name,
        statement=row.statement,
        columns=tuple(Column(*pair) for pair in answer["columns"]),
        order=tuple(tuple(key) for key in answer["order"]),
        is_per_window=answer["per_window"],
        is_append_only=answer["append_only"],
        shows_window=answer["shows_window"],
        window=answer["window"],
        strategy=row.strategy,
        reads=tuple(json.loads(row.reads)),
        horizons=json.loads(row.horizons),
        created_tick=row.created_tick,
        clock=row.clock,
        evaluated_tick=row.evaluated_tick,
        frontier=row.frontier,
        evaluation=row.evaluation,
        rows_out=row.rows_out,
        last_ms=row.last_ms,
        newest_end=row.newest_end,
        error=row.error,
        class_id=row.class_id,
        shared=row.shared,
        keep=load_keep(row.columns),
    )


def _segment(row: sa.Row) -> Segment:
    return Segment(
        row.owner, row.part, row.path, row.rows, row.bytes, row.tick, row.min_time, row.max_time,
        row.evaluation, row.id,
    )  # fmt: skip
