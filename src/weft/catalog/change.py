"""A transaction in progress: everything in it happens, or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable

import sqlalchemy as sa

from weft.catalog import schema as s
from weft.catalog.records import (
    QueryRecord,
    Segment,
    StreamRecord,
    TableRecord,
    dump_answer,
    dump_stream,
    dump_table,
)
from weft.catalog.view import Record, View, now_micros
from weft.logical.relations import StreamDefinition, TableDefinition


class Change(View):
    """A transaction in progress: a view that can also write."""

    def set_fact(self, key: str, value: str) -> None:
        self._c.execute(sa.delete(s.facts).where(s.facts.c.key == key))
        self._c.execute(sa.insert(s.facts).values(key=key, value=value))

    def add_stream(self, definition: StreamDefinition, tick: int) -> int:
        values = {
            "name": definition.name,
            "folded": definition.name.lower(),
            "definition": dump_stream(definition),
            "created_tick": tick,
            **_next_id(self._c, s.streams),
        }
        return self._c.execute(sa.insert(s.streams).values(values)).inserted_primary_key[0]

    def set_stream(self, stream_id: int, **values: object) -> None:
        self._c.execute(sa.update(s.streams).where(s.streams.c.id == stream_id).values(values))

    def add_table(self, definition: TableDefinition, tick: int) -> int:
        values = {
            "name": definition.name,
            "folded": definition.name.lower(),
            "definition": dump_table(definition),
            "changed_tick": tick,
            **_next_id(self._c, s.tables),
        }
        return self._c.execute(sa.insert(s.tables).values(values)).inserted_primary_key[0]

    def set_table(self, table_id: int, **values: object) -> None:
        self._c.execute(sa.update(s.tables).where(s.tables.c.id == table_id).values(values))

    def reserve_query_id(self) -> int:
        """An id that no query has had, so that paths are never used twice."""
        value = int(self.fact("next_query_id") or 1)
        self.set_fact("next_query_id", str(value + 1))
        return value

    def add_query(self, record: QueryRecord) -> None:
        self._c.execute(
            sa.insert(s.queries).values(
                id=record.id,
                name=record.name,
                folded=record.name.lower(),
                statement=record.statement,
                columns=dump_answer(record),
                strategy=record.strategy,
                reads=json.dumps(record.reads),
                horizons=json.dumps(record.horizons),
                created_tick=record.created_tick,
                clock=record.clock,
                evaluated_tick=record.evaluated_tick,
                frontier=record.frontier,
                evaluation=record.evaluation,
                rows_out=record.rows_out,
                last_ms=record.last_ms,
                newest_end=record.newest_end,
                error=record.error,
            )
        )

    def repoint(self, old: QueryRecord, new: QueryRecord) -> None:
        """Let the readers of a replaced query read its successor."""
        for query in self.queries():
            if old.owner in query.reads:
                reads = [new.owner if owner == old.owner else owner for owner in query.reads]
                self.set_query(query.id, reads=json.dumps(reads))

    def set_query(self, query_id: int, **values: object) -> None:
        self._c.execute(sa.update(s.queries).where(s.queries.c.id == query_id).values(values))

    def count_rows_out(self, query_id: int, rows: int) -> None:
        c = s.queries.c
        more = sa.update(s.queries).where(c.id == query_id).values(rows_out=c.rows_out + rows)
        self._c.execute(more)

    def remove(self, record: Record) -> None:
        """Forget a stream, table or query; its files are swept later."""
        table = {StreamRecord: s.streams, TableRecord: s.tables, QueryRecord: s.queries}
        owner = table[type(record)]
        self._c.execute(sa.delete(owner).where(owner.c.id == record.id))
        self.drop_segments(self.segments(record.owner))
        if isinstance(record, QueryRecord):
            c = s.evaluations.c
            self._c.execute(sa.delete(s.evaluations).where(c.query_id == record.id))
        if isinstance(record, StreamRecord):
            self._c.execute(sa.delete(s.set_aside).where(s.set_aside.c.stream_id == record.id))

    def add_segments(self, found: Iterable[Segment]) -> None:
        rows = [
            {
                name: getattr(segment, name)
                for name in (
                    "owner",
                    "part",
                    "path",
                    "rows",
                    "bytes",
                    "min_time",
                    "max_time",
                    "evaluation",
                    "tick",
                )
            }
            for segment in found
        ]
        if rows:
            self._c.execute(sa.insert(s.segments), rows)

    def drop_segments(self, found: Iterable[Segment]) -> None:
        """Stop using segments; readers that still hold them finish before they are swept."""
        ids = [segment.id for segment in found]
        if ids:
            c = s.segments.c
            self._c.execute(
                sa.update(s.segments).where(c.id.in_(ids)).values(dropped_at=now_micros())
            )

    def forget_segments(self, found: Iterable[Segment]) -> None:
        ids = [segment.id for segment in found]
        if ids:
            self._c.execute(sa.delete(s.segments).where(s.segments.c.id.in_(ids)))

    def add_batch(self, **values: object) -> None:
        self._c.execute(sa.insert(s.batches).values(committed_at=now_micros(), **values))

    def add_evaluation(self, **values: object) -> None:
        self._c.execute(sa.insert(s.evaluations).values(committed_at=now_micros(), **values))

    def set_file_aside(self, stream_id: int, **values: object) -> None:
        self._c.execute(sa.insert(s.set_aside).values(stream_id=stream_id, **values))

    def take_file_back(self, row_id: int) -> None:
        self._c.execute(sa.delete(s.set_aside).where(s.set_aside.c.id == row_id))


def _next_id(connection: sa.Connection, table: sa.Table) -> dict[str, int]:
    """Ids are never reused, so that a dropped owner's files cannot be taken for a new one's."""
    key = f"next_{table.name}_id"
    view = Change(connection)
    value = int(view.fact(key) or 1)
    view.set_fact(key, str(value + 1))
    return {"id": value}
