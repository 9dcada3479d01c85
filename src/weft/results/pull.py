"""Pull SELECT: ordinary SQL over answers, tables and retained streams, joined as you like.

The names were bound like those of a standing query; each source becomes a view over the segments
of one consistent look at the catalog, and the select, rendered by sqlglot for DuckDB, runs on them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.catalog.records import QueryRecord, Segment, StreamRecord, TableRecord
from weft.catalog.view import View
from weft.errors import Unsupported
from weft.logical.aggregates import BUILT_IN, Aggregates
from weft.logical.query import BoundQuery, Source
from weft.logical.relations import ARRIVAL, Column, Kind, Relation
from weft.logical.windows import LastRows, WholeStream, bounds
from weft.results import duck, reading, system
from weft.results.answers import duck_type
from weft.results.duck import Reading
from weft.results.functions import provide_known
from weft.results.rows import scan_rows

if TYPE_CHECKING:
    import pyarrow as pa

LATE_EXTRA = (Column("arrived_at", "TIMESTAMP"),)
REJECTED = (Column("raw", "STRING"), Column("reason", "STRING"), Column("arrived_at", "TIMESTAMP"))
CHANGE = (Column("changed_at", "TIMESTAMP"), Column("change", "STRING"))


class Namespace:
    """The names a select may use: what is registered, trades.late, trades.rejected, hot.history, and
    the catalog itself as weft.queries, weft.classes, …"""

    def __init__(self, view: View) -> None:
        self._view = view

    def find(self, name: str) -> Relation | None:
        if system.is_system(name):
            return system.relation(name)
        record, part = self.resolve(name)
        if record is None:
            return system.refuse_unknown(name)
        if part == "late":
            return Relation(
                Kind.TABLE, name, record.definition.columns + LATE_EXTRA, is_retroactive=True
            )
        if part == "rejected":
            return Relation(Kind.TABLE, name, REJECTED, is_retroactive=True)
        if part == "history":
            return Relation(Kind.TABLE, name, history_columns(record), is_retroactive=True)
        return record.relation()

    def resolve(self, name: str) -> tuple[StreamRecord | TableRecord | QueryRecord | None, str]:
        head, dot, part = name.rpartition(".")
        record = self._view.find(head if dot else name)
        allowed = {StreamRecord: ("late", "rejected"), QueryRecord: ("history",)}.get(
            type(record), ()
        )
        if dot and part.lower() not in allowed:
            return None, ""
        return record, part.lower() if dot else ""

    def all(self) -> list[str]:
        return list(self._view.names())


class Standing(Namespace):
    """The names a standing query may read: nothing with a dot."""

    def find(self, name: str) -> Relation | None:
        record, part = self.resolve(name)
        if (record is not None and part) or system.is_system(name):
            raise Unsupported(
                f'"{name}" cannot be read by a standing query', hint="read it with a plain SELECT"
            )
        return record.relation() if record else None


def history_columns(record: QueryRecord) -> tuple[Column, ...]:
    shown = record.output_columns()
    return shown if record.is_per_window else CHANGE + shown


def pull(bound: BoundQuery, view: View, root: Path, aggregates: Aggregates = BUILT_IN) -> pa.Table:
    """Answer a bound select from the stored segments; `aggregates` are those that are known."""
    text = render(bound.tree)
    provide_known(aggregates, text)
    connection = duck.cursor()
    read = ""
    try:
        for number, source in enumerate(bound.sources):
            found = source_sql(source, view, root, aggregates).renamed(f"_of_{number}")
            for name, table in found.tables.items():
                connection.register(name, table)
            read += found.sql
            connection.execute(
                f"CREATE OR REPLACE TEMP VIEW {duck.name(source.placeholder)} AS {found.sql}"
            )
        return duck.fetch(text, connection, read)
    except Exception as error:
        import duckdb

        if isinstance(error, duckdb.Error):
            raise duck.reading_problem(error, read) from error
        raise
    finally:
        connection.close()


def render(tree: exp.Query) -> str:
    return tree.sql(dialect="duckdb")


def source_sql(
    source: Source, view: View, root: Path, aggregates: Aggregates = BUILT_IN
) -> Reading:
    if system.is_system(source.relation.name):
        return system.reading(source.relation.name, view, aggregates)
    record, part = Namespace(view).resolve(source.relation.name)
    if isinstance(record, QueryRecord):
        if part == "history":
            return reading.history(view, record, root)
        return reading.current(view, record, root)
    if isinstance(record, TableRecord):
        return Reading(table_sql(record, view.segments(record.owner, "rows", "gone"), root))
    if part:
        return Reading(_aside(record, part, view.segments(record.owner, part), root))
    return Reading(_stream(record, source, view.segments(record.owner, "rows"), root))


def table_sql(record: TableRecord, segments: list[Segment], root: Path, extra: str = "") -> str:
    """A table as it is now. `extra` adds helper columns, for UPDATE and DELETE."""
    columns = ", ".join(duck.name(c.name) for c in record.definition.columns) + extra
    rows = [str(root / s.path) for s in segments if s.part == "rows"]
    gone = [str(root / s.path) for s in segments if s.part == "gone"]
    if not rows:
        return empty(record.definition.columns, extra)
    sql = f"SELECT {columns} FROM {duck.scan(rows)}"
    if gone:
        sql += f" WHERE _weft_row NOT IN (SELECT _weft_row FROM {duck.scan(gone)})"
    return sql


def empty(columns: tuple[Column, ...], extra: str = "") -> str:
    nulls = [f"NULL::{duck_type(c.type)} AS {duck.name(c.name)}" for c in columns]
    nulls += ["NULL::BIGINT AS _weft_row"] if extra else []
    return f"SELECT {', '.join(nulls)} WHERE false"


def _aside(record: StreamRecord, part: str, segments: list[Segment], root: Path) -> str:
    """Late and rejected rows of a stream."""
    paths = [str(root / s.path) for s in segments]
    if part == "rejected":
        columns = "_weft_raw AS raw, _weft_reason AS reason, _weft_arrival AS arrived_at"
        return f"SELECT {columns} FROM {duck.scan(paths)}" if paths else empty(REJECTED)
    if not paths:
        return empty(record.definition.columns + LATE_EXTRA)
    columns = ", ".join(duck.name(c.name) for c in record.definition.columns)
    return f"SELECT {columns}, _weft_arrival AS arrived_at FROM {duck.scan(paths)}"


def _stream(record: StreamRecord, source: Source, segments: list[Segment], root: Path) -> str:
    """Retained rows of a stream, or what a window on it holds now."""
    columns = [duck.name(c.name) for c in record.definition.columns]
    if record.definition.time_column is None:
        columns.append(f"_weft_time AS {ARRIVAL}")
    if not segments:
        extra = (Column(ARRIVAL, "TIMESTAMP"),) if record.definition.time_column is None else ()
        return empty(record.definition.columns + extra)
    rows = scan_rows(record, segments, root)
    return f"SELECT {', '.join(columns)} FROM {rows}{_window(record, source)}"


def _window(record: StreamRecord, source: Source) -> str:
    window, clock = source.window, record.clock
    if isinstance(window, WholeStream):
        return ""
    if window.is_per_window:
        raise Unsupported(
            f"a pull SELECT cannot use a window that is {window}",
            hint="register it as a continuous query, or use [RANGE ...], [ROWS n], [SINCE ...]",
        )
    if clock is None:
        return " WHERE false"
    low, high = bounds(window, clock)
    where = f" WHERE _weft_time <= {duck.instant(high)}"
    if low is not None:
        where += f" AND _weft_time >= {duck.instant(low)}"
    if isinstance(window, LastRows):
        where += f" ORDER BY _weft_time DESC, _weft_tick DESC, _weft_ord DESC LIMIT {window.count}"
    return where
