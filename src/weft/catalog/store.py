"""The catalog: a relational database that says what exists.

A file that no row of `segments` names does not exist, whatever the folder holds. So a batch writes
its files first and commits everything (segments, clock, progress, results) in one transaction:
a crash before it leaves only orphans, which the next start sweeps; a crash after it leaves nothing
to do. Source: the design's section 5; PSoup §4.1 (prefix consistency).
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

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
    load_stream,
    load_table,
)
from weft.errors import StorageError
from weft.logical.relations import Column, StreamDefinition, TableDefinition

Record = StreamRecord | TableRecord | QueryRecord


def now_micros() -> int:
    return time.time_ns() // 1000


class Catalog:
    """Opens the database, migrates it, and hands out transactions."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = _engine(url)

    def exists(self) -> bool:
        with self.engine.connect() as connection:
            return sa.inspect(connection).has_table("alembic_version")

    def open(self) -> None:
        """Bring the schema to this version; refuse a catalog that a newer Weft wrote."""
        try:
            found = self._version()
        except sa.exc.DBAPIError as error:
            raise StorageError(
                f"the catalog {self.engine.url.render_as_string()} cannot be opened",
                detail=str(error.orig),
                hint="check that the folder is writable, or that the server runs and lets you in",
                code="WEFT_CATALOG_UNREACHABLE",
            ) from error
        if found == s.VERSION:
            return
        if found is not None and found > s.VERSION:
            raise StorageError(
                f"the catalog has schema {found}, this Weft knows up to {s.VERSION}",
                hint="upgrade Weft: pip install --upgrade weft",
                code="WEFT_CATALOG_NEWER",
            )
        self._migrate()

    def _version(self) -> str | None:
        with self.engine.connect() as connection:
            if not sa.inspect(connection).has_table("alembic_version"):
                return None
            return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()

    def _migrate(self) -> None:
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        config.set_main_option("path_separator", "os")
        with self._writing() as connection:  # one process at a time; the others find it done
            config.attributes["connection"] = connection
            command.upgrade(config, "head")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction that is a writer's from its first statement on."""
        with self.engine.connect() as connection:
            if self.engine.dialect.name == "sqlite":
                connection = connection.execution_options(begin="BEGIN IMMEDIATE")
            with connection.begin():
                if self.engine.dialect.name == "postgresql":
                    connection.execute(
                        sa.text("SELECT pg_advisory_xact_lock(hashtext('weft-write'))")
                    )
                yield connection

    @contextlib.contextmanager
    def read(self) -> Iterator[View]:
        """A consistent view: every look inside sees the same state."""
        try:
            with self.engine.connect() as connection:
                if self.engine.dialect.name == "postgresql":  # its default is a new look each time
                    connection = connection.execution_options(isolation_level="REPEATABLE READ")
                with connection.begin():
                    yield View(connection)
        except sa.exc.OperationalError as error:
            raise StorageError(
                "the catalog could not be read",
                detail=str(error.orig),
                hint="check that its database is there and lets you in, then try again",
                code="WEFT_CATALOG_READ",
            ) from error

    @contextlib.contextmanager
    def write(self) -> Iterator[Change]:
        """One transaction. Everything inside happens, or nothing."""
        try:
            with self._writing() as connection:
                yield Change(connection)
        except sa.exc.OperationalError as error:
            raise StorageError(
                "the catalog could not commit",
                detail=str(error.orig),
                hint="free some disk space or check the database; nothing was changed",
                code="WEFT_CATALOG_WRITE",
            ) from error

    def close(self) -> None:
        self.engine.dispose()


def _engine(url: str) -> sa.Engine:
    engine = sa.create_engine(url)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _on_sqlite_connect)
        sa.event.listen(engine, "begin", _on_sqlite_begin)
    return engine


def _on_sqlite_connect(connection, _record) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves, so that reads are snapshots too
    for pragma in ("busy_timeout=10000", "journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")


def _on_sqlite_begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))


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
