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

    def find(self, name: str) -> Record | None:
        return self._find(name)  # what it is may change within the transaction

    def streams(self) -> list[StreamRecord]:
        return self._every_stream()

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
        self._c.execute(sa.insert(s.streams).values(values))
        self.add_clock(values["id"], 1, None, tick, -1)
        return values["id"]

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
        return self.reserve_query_ids(1)[0]

    def reserve_query_ids(self, count: int) -> list[int]:
        """Ids that no query has had, so that paths are never used twice."""
        return list(self._next_ids("next_query_id", count))

    def _next_ids(self, key: str, count: int) -> range:
        value = int(self.fact(key) or 1)
        self.set_fact(key, str(value + count))
        return range(value, value + count)

    def add_query(self, record: QueryRecord) -> None:
        self.add_queries([record])

    def add_queries(self, records: Iterable[QueryRecord]) -> None:
        rows = [_query_row(record) for record in records]
        if rows:
            self._c.execute(sa.insert(s.queries), rows)

    def repoint(self, old: QueryRecord, new: QueryRecord) -> None:
        """Let the readers of a replaced query read its successor."""
        for query in self.readers(old.owner):
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
            for found in (s.set_aside, s.profiles, s.weaves):
                self._c.execute(sa.delete(found).where(found.c.stream_id == record.id))

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

    # shared aggregation

    def add_clock(
        self, stream_id: int, evaluation: int, clock: int | None, tick: int, seen: int
    ) -> None:
        """Log an evaluation of a stream's shared queries; `seen`: the largest tick of its rows."""
        row = {"stream_id": stream_id, "evaluation": evaluation, "clock": clock, "tick": tick}
        self._c.execute(sa.insert(s.clocks).values(seen=seen, **row))

    def add_class(self, stream_id: int, key: str, definition: str, eager_from: int | None) -> int:
        values = {"stream_id": stream_id, "key": key, "definition": definition}
        values |= {"eager_from": eager_from, **_next_id(self._c, s.classes)}
        self._c.execute(sa.insert(s.classes).values(values))
        return values["id"]

    def add_classes(self, stream_id: int, definitions: dict[str, str]) -> dict[str, int]:
        """Add classes of selections, by key; → their ids."""
        ids = dict(
            zip(definitions, self._next_ids("next_classes_id", len(definitions)), strict=True)
        )
        rows = [
            {"id": ids[key], "stream_id": stream_id, "key": key, "definition": text}
            for key, text in definitions.items()
        ]
        if rows:
            self._c.execute(sa.insert(s.classes), rows)
        return ids

    def set_class(self, class_id: int, **values: object) -> None:
        self._c.execute(sa.update(s.classes).where(s.classes.c.id == class_id).values(values))

    def add_routes(self, routes: list[dict]) -> None:
        if routes:
            self._c.execute(sa.insert(s.routes), routes)

    def end_routes(self, class_ids: Iterable[int], tick: int) -> None:
        """Let the open routes of classes end with a tick; a route of no ticks goes."""
        c, ids = s.routes.c, list(class_ids)
        is_open = sa.and_(c.class_id.in_(ids), c.to_tick.is_(None))
        self._c.execute(sa.delete(s.routes).where(is_open, c.from_tick > tick))
        self._c.execute(sa.update(s.routes).where(is_open).values(to_tick=tick))

    def drop_routes(self, class_ids: Iterable[int]) -> None:
        self._c.execute(sa.delete(s.routes).where(s.routes.c.class_id.in_(list(class_ids))))

    def remove_classes(self, class_ids: Iterable[int]) -> None:
        ids = list(class_ids)
        self.drop_routes(ids)
        self._c.execute(sa.delete(s.classes).where(s.classes.c.id.in_(ids)))

    def reserve_node_id(self) -> int:
        return _next_id(self._c, s.group_topology)["id"]

    def add_node(self, values: dict, columns: list[dict], statistics: list[dict]) -> None:
        """Record a node in ARGUS's system catalog: topology, expressions, sets, columns."""
        self._c.execute(sa.insert(s.group_topology).values(rows_in=0, cells=0, **values))
        stream_id = values["stream_id"]
        known = sa.select(s.group_expressions.c.name).where(
            s.group_expressions.c.stream_id == stream_id
        )
        names = {name for (name,) in self._c.execute(known)}
        fresh = [{"stream_id": stream_id, **c} for c in columns if c["name"] not in names]
        for row in fresh:
            self._c.execute(sa.insert(s.group_expressions).values(row))
        if columns:
            rows = [{"node_id": values["id"], "name": c["name"]} for c in columns]
            self._c.execute(sa.insert(s.group_sets), rows)
        if statistics:
            rows = [{"node_id": values["id"], **c} for c in statistics]
            self._c.execute(sa.insert(s.group_columns), rows)

    def set_node(self, node_id: int, **values: object) -> None:
        c = s.group_topology.c
        self._c.execute(sa.update(s.group_topology).where(c.id == node_id).values(values))

    def remove_nodes(self, node_ids: Iterable[int]) -> None:
        """Forget nodes and what only they used; their files are swept later."""
        ids = list(node_ids)
        for table in (s.group_sets, s.group_columns):
            self._c.execute(sa.delete(table).where(table.c.node_id.in_(ids)))
        self._c.execute(sa.delete(s.group_topology).where(s.group_topology.c.id.in_(ids)))
        for node_id in ids:
            self.drop_segments(self.segments(f"node:{node_id}"))
        used = sa.select(s.group_topology.c.stream_id, s.group_sets.c.name).select_from(
            s.group_sets.join(s.group_topology, s.group_topology.c.id == s.group_sets.c.node_id)
        )
        e = s.group_expressions
        is_used = sa.tuple_(e.c.stream_id, e.c.name).in_(used)
        self._c.execute(sa.delete(e).where(sa.not_(is_used)))

    def set_profile(self, stream_id: int, sample: bytes) -> None:
        self._c.execute(sa.delete(s.profiles).where(s.profiles.c.stream_id == stream_id))
        row = {"stream_id": stream_id, "sample": sample, "taken_at": now_micros()}
        self._c.execute(sa.insert(s.profiles).values(row))

    def add_weave(self, **values: object) -> None:
        """Log that a plan was changed, and why."""
        self._c.execute(sa.insert(s.weaves).values(at=now_micros(), **values))

    def add_aggregate(self, name: str, statement: str) -> None:
        self.remove_aggregate(name)
        row = {"folded": name.lower(), "statement": statement}
        self._c.execute(sa.insert(s.aggregates).values(row))

    def remove_aggregate(self, name: str) -> None:
        self._c.execute(sa.delete(s.aggregates).where(s.aggregates.c.folded == name.lower()))

    def set_file_aside(self, stream_id: int, **values: object) -> None:
        self._c.execute(sa.insert(s.set_aside).values(stream_id=stream_id, **values))

    def take_file_back(self, row_id: int) -> None:
        self._c.execute(sa.delete(s.set_aside).where(s.set_aside.c.id == row_id))


def _query_row(record: QueryRecord) -> dict:
    return {
        "id": record.id,
        "name": record.name,
        "folded": record.name.lower(),
        "statement": record.statement,
        "columns": dump_answer(record),
        "strategy": record.strategy,
        "reads": json.dumps(record.reads),
        "horizons": json.dumps(record.horizons),
        "created_tick": record.created_tick,
        "clock": record.clock,
        "evaluated_tick": record.evaluated_tick,
        "frontier": record.frontier,
        "evaluation": record.evaluation,
        "rows_out": record.rows_out,
        "last_ms": record.last_ms,
        "newest_end": record.newest_end,
        "error": record.error,
        "class_id": record.class_id,
        "shared": record.shared,
    }


def _next_id(connection: sa.Connection, table: sa.Table) -> dict[str, int]:
    """Ids are never reused, so that a dropped owner's files cannot be taken for a new one's."""
    key = f"next_{table.name}_id"
    view = Change(connection)
    value = int(view.fact(key) or 1)
    view.set_fact(key, str(value + 1))
    return {"id": value}
