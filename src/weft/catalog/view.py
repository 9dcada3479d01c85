"""Looking things up in one consistent state of the catalog."""

from __future__ import annotations

import json
import time

import sqlalchemy as sa

from weft.catalog import schema as s
from weft.catalog.records import (
    QueryRecord,
    Segment,
    StreamRecord,
    TableRecord,
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

    def fact(self, key: str) -> str | None:
        return self._c.execute(sa.select(s.facts.c.value).where(s.facts.c.key == key)).scalar()

    def facts(self) -> dict[str, str]:
        return {row.key: row.value for row in self._c.execute(sa.select(s.facts))}

    def streams(self) -> list[StreamRecord]:
        return [_stream(row) for row in self._c.execute(sa.select(s.streams).order_by("id"))]

    def tables(self) -> list[TableRecord]:
        return [_table(row) for row in self._c.execute(sa.select(s.tables).order_by("id"))]

    def queries(self) -> list[QueryRecord]:
        return [_query(row) for row in self._c.execute(sa.select(s.queries).order_by("id"))]

    def find(self, name: str) -> Record | None:
        for table, load in ((s.streams, _stream), (s.tables, _table), (s.queries, _query)):
            found = self._c.execute(sa.select(table).where(table.c.folded == name.lower())).first()
            if found:
                return load(found)
        return None

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

    def files_set_aside(self, stream_id: int) -> list[sa.Row]:
        return list(
            self._c.execute(sa.select(s.set_aside).where(s.set_aside.c.stream_id == stream_id))
        )


def _stream(row: sa.Row) -> StreamRecord:
    return StreamRecord(
        row.id, load_stream(row.definition), row.clock, row.max_time, row.batch_id, row.rows,
        row.late, row.rejected, row.pruned_rows, row.pruned_before, row.created_tick,
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
    )


def _segment(row: sa.Row) -> Segment:
    return Segment(
        row.owner, row.part, row.path, row.rows, row.bytes, row.tick, row.min_time, row.max_time,
        row.evaluation, row.id,
    )  # fmt: skip
