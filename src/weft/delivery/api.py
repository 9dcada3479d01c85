"""The Python API: connect, Database, Query. Thin: every method is a call into the room that owns it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.catalog.records import QueryRecord, to_micros
from weft.catalog.rules import unknown
from weft.delivery.statements import Executor, together
from weft.delivery.status import Status, read_status
from weft.engine import Engine
from weft.errors import InputError, SqlError, StorageError, WeftError
from weft.logical.declared import creation
from weft.results import answers, pull, reading
from weft.results.at import is_portable, refuse_gone, standing_at
from weft.results.kept import Answer, state_of
from weft.results.subscribe import Snapshot, Subscription
from weft.sql.parse import parse

if TYPE_CHECKING:
    import pandas
    import pyarrow as pa


def connect(
    path: str | os.PathLike = "warehouse", *, spark=None, catalog: str | None = None
) -> Database:
    """Open a warehouse: a folder, created if absent. Spark starts when it is needed.

    `spark` adopts a session instead of starting one; `catalog` is an SQLAlchemy URL, for example
    postgresql://..., instead of SQLite in the folder.
    """
    return Database(Engine(Path(path).absolute(), _catalog_url(catalog), spark))


def _catalog_url(url: str | None) -> str | None:
    if url is None:
        return None
    head, separator, rest = url.partition("://")
    if head in ("postgresql", "postgres") and separator:
        return f"postgresql+psycopg://{rest}"
    return url


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What one run() did."""

    batches: int
    rows: int
    late: int
    rejected: int


class Database:
    """A warehouse of streams, tables and standing queries."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._executor = Executor(engine, self.query)

    def sql(self, text: str) -> Any:
        """Run one or more statements; returns the last one's result.

        CREATE CONTINUOUS QUERY gives a Query; SELECT, SHOW, DESCRIBE and EXPLAIN a pyarrow.Table.
        """
        result = None
        for group in together(parse(text)):
            result = self._executor.execute_all(group)
        return result

    def script(self, text: str) -> Iterator[tuple[str, Any]]:
        """Run statements one by one, handing out each with its result."""
        from weft.delivery.split import split

        for piece in split(text):
            try:
                yield piece.text, self.sql(piece.text)
            except WeftError as error:
                raise piece.place(error) from None

    def register_aggregate(self, cls: type) -> None:
        """Register a class that is declared with @weft.aggregate, by its importable name."""
        self.sql(creation(cls))

    def push(self, stream: str, rows: Any) -> int:
        """Append rows to a stream (or table); they are durable when this returns. → how many."""
        return self._engine.push(stream, rows)

    def query(self, name: str) -> Query:
        kept = self._engine.kept.get(name, self._engine.catalog.version())
        if kept is not None:
            return Query(self._engine, kept.record.name)
        with self._engine.catalog.read() as view:
            record = view.find(name)
            if not isinstance(record, QueryRecord):
                raise unknown(view, name, "query", record)
        return Query(self._engine, record.name)

    def run(self, progress: Callable | None = None) -> RunSummary:
        """Process everything that is available now, then return."""
        reports = self._engine.run(progress)
        return RunSummary(
            len(reports),
            *(sum(getattr(r, part) for r in reports) for part in ("rows", "late", "rejected")),
        )

    def start(self, trigger: str = "1 second", progress: Callable | None = None) -> None:
        """Run in the background until stop()."""
        self._engine.start(trigger, progress)

    def stop(self) -> None:
        """Stop in good order. Raises what made the pipeline fail, if it did."""
        self._engine.stop()

    @property
    def is_running(self) -> bool:
        return self._engine.is_running

    def advance(self, stream: str, instant: str | datetime) -> None:
        """Move a stream's clock on when no rows come."""
        self._engine.advance(stream, as_instant(instant))

    def names(self) -> dict[str, str]:
        """Everything registered: name → "stream", "table" or "query"."""
        with self._engine.catalog.read() as view:
            return view.names()

    def columns(self, name: str) -> list[str]:
        with self._engine.catalog.read() as view:
            relation = pull.Namespace(view).find(name)
        return list(relation.column_names()) if relation else []

    def status(self) -> Status:
        """Streams, queries and recent batches; any process may ask."""
        return read_status(self._engine)

    @property
    def spark(self):
        """The Spark session (started if need be)."""
        return self._engine.spark

    def close(self) -> None:
        self._engine.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"weft.Database({str(self._engine.root)!r})"


class Query:
    """A standing query: its answer, its history, its changes. Reading starts no Spark job."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self.name = name

    def results(self, at: str | datetime | None = None) -> pa.Table:
        """The current answer, or the answer as it stood at an instant of the query's clock."""
        if at is None:
            return self._current()
        micros = to_micros(as_instant(at))
        return self._look(lambda view, record: self._at(view, record, micros))

    def _current(self) -> pa.Table:
        """The answer now: the one that was read or made ready before, if it still stands."""
        engine = self._engine
        version = engine.catalog.version()
        if (kept := engine.kept.get(self.name, version)) is not None:
            self._note(kept.record)
            return kept.table

        def read(view, record: QueryRecord) -> pa.Table:
            refuse_failed(record)
            state = state_of(view, record)
            if (kept := engine.kept.renew(self.name, version, state)) is not None:
                return kept.table
            found = reading.current(view, record, engine.root)
            table = reading.fetch(found, record.output_columns())
            engine.kept.put({self.name: Answer(record, table, state)}, version, table.nbytes)
            return table

        return self._look(read)

    def _at(self, view, record: QueryRecord, micros: int) -> pa.Table:
        """The answer at an instant: as it was stored then, else computed over what the windows held."""
        root, columns = self._engine.root, record.output_columns()
        is_stored = record.clock is None or micros >= record.clock
        is_stored = is_stored or reading.is_evaluated_at(view, record, micros)
        if record.is_per_window or is_stored:
            return reading.fetch(reading.at_instant(view, record, root, micros), columns)
        plan = self._engine.plan_of(view, record)
        refuse_gone(plan, view, micros)
        if is_portable(plan):
            return reading.fetch(standing_at(record, plan, view, root, micros), columns)
        from weft.spark.frames import answer_at

        return answers.typed(answer_at(self._engine, record, micros), columns)

    def history(self) -> pa.Table:
        """Every window emitted so far; for a standing answer, its changes."""

        def read(view, record: QueryRecord) -> pa.Table:
            found = reading.history(view, record, self._engine.root)
            return reading.fetch(found, pull.history_columns(record))

        return self._look(read)

    def pandas(self, at: str | datetime | None = None) -> pandas.DataFrame:
        return self.results(at).to_pandas()

    def spark(self):
        """The current answer as a Spark DataFrame, for answers too large to hold here."""
        from weft.spark.frames import answer_frame, frame_of

        record = self._record()
        if not record.is_stored:  # assembled, not stored: read it and hand it over
            return frame_of(self._engine, self.results(), record)
        return answer_frame(self._engine, record)

    def subscribe(
        self, token: str | None = None, *, follow: bool | None = None, timeout: float | None = None
    ) -> Subscription:
        """Changes from the beginning, or after `token`. Follows while the pipeline runs here, or
        while `follow` is true; `timeout` is how many seconds to wait for the next change."""
        is_following = (lambda: self._engine.is_running) if follow is None else (lambda: follow)

        def look(after: int) -> Snapshot:
            with self._engine.catalog.read() as view:
                record = self._find(view)
                if is_following():
                    self._engine.reads.note_wait(None if record.is_stored else record.class_id)
                log = reading.change_log(view, record, self._engine.root, after)
                return Snapshot(record, log, reading.clocks(view, record))

        return Subscription(look, self._record().id, token, is_following, timeout)

    def explain(self, format: str = "text") -> str:
        from weft.delivery.explain import explain_query, render

        with self._engine.catalog.read() as view:
            return render(explain_query(self._engine, view, self._find(view)), format)

    def drop(self) -> None:
        self._engine.drop("query", self.name, False)

    @property
    def columns(self) -> list[str]:
        return [c.name for c in self._record().output_columns()]

    def _record(self) -> QueryRecord:
        with self._engine.catalog.read() as view:
            return self._find(view)

    def _find(self, view) -> QueryRecord:
        record = view.find(self.name)
        if not isinstance(record, QueryRecord):
            raise unknown(view, self.name, "query", record)
        return record

    def _look(self, read: Callable) -> Any:
        """Read; if a file went away between the look at the catalog and the read, look again."""
        for attempt in range(3):
            try:
                with self._engine.catalog.read() as view:
                    record = self._find(view)
                    self._note(record)
                    return read(view, record)
            except StorageError as error:
                if error.code != "WEFT_FILE_MISSING" or attempt == 2:
                    raise
        raise AssertionError("unreachable")

    def _note(self, record: QueryRecord) -> None:
        self._engine.reads.note(None if record.is_stored else record.class_id, record.id)

    def __repr__(self) -> str:
        return f"weft.Query({self.name!r})"


def refuse_failed(record: QueryRecord) -> None:
    if record.error:
        raise SqlError(
            f'query "{record.name}" fails on the rows it meets',
            detail=record.error,
            hint="its last good answer is in results(at=...) and history(); CREATE OR REPLACE it with a guard, for example try_divide",
            code="WEFT_QUERY_FAILED",
        )


def as_instant(value: str | datetime | date) -> datetime:
    """An instant from a datetime or ISO text; UTC where no zone is given."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise InputError(
                f"{value!r} is not an instant", hint='write ISO 8601, for example "2026-01-01T00:00:00Z"',
                code="WEFT_BAD_INSTANT",
            ) from None  # fmt: skip
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return value if value.tzinfo else value.replace(tzinfo=UTC)
