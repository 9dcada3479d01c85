"""INSERT, UPDATE and DELETE: a change of a table is new segments, never a rewrite.

Each stored row has an id and the tick from which it holds; a row that goes leaves its id and the
tick in a "gone" segment. So every version stays readable for the rows that arrived while it was
current (UPA §4.1), and a change is one catalog transaction.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from sqlglot import exp

from weft.catalog.records import Segment, TableRecord
from weft.catalog.view import View
from weft.errors import InputError, TypeProblem, UnknownName, did_you_mean
from weft.logical.query import BoundQuery
from weft.results import duck
from weft.results.answers import duck_type
from weft.results.pull import render, source_sql, table_sql
from weft.storage.crash import crash_point
from weft.storage.files import footer_segment, storage_problem, sync_file


@dataclass(frozen=True, slots=True)
class TableChange:
    """Segments to add, the ids used up, and how many rows came and went."""

    segments: tuple[Segment, ...]
    next_row: int
    inserted: int
    deleted: int


class TableWriter:
    """Writes the changes of one table at one tick."""

    def __init__(self, record: TableRecord, view: View, root: Path, tick: int) -> None:
        self._record, self._view, self._root, self._tick = record, view, root, tick
        self._connection = duck.cursor()

    def insert(self, bound: BoundQuery, columns: tuple[str, ...]) -> TableChange:
        for source in bound.sources:
            sql = source_sql(source, self._view, self._root)
            self._connection.execute(
                f"CREATE OR REPLACE TEMP VIEW {duck.name(source.placeholder)} AS {sql}"
            )
        return self._change(self._in_table_order(render(bound.tree), columns), None)

    def insert_arrow(self, rows) -> TableChange:
        """Rows of a DataFrame or Arrow table, already in the table's types."""
        self._connection.register("weft_given", rows)
        columns = ", ".join(duck.name(c.name) for c in self._record.definition.columns)
        return self._change(f"SELECT {columns} FROM weft_given", None)

    def update(self, assignments: tuple, where: exp.Expression | None) -> TableChange:
        known = {c.name.lower(): c for c in self._record.definition.columns}
        new = dict.fromkeys(known)
        for name, value in assignments:
            if name.lower() not in known:
                raise unknown_column(name, self._record)
            new[name.lower()] = value
        self._make_current()
        columns = [
            f"({v.sql('duckdb')})::{duck_type(known[n].type)}"
            if v is not None
            else duck.name(known[n].name)
            for n, v in new.items()
        ]
        condition = where.sql("duckdb") if where is not None else "true"
        touched = f"SELECT {', '.join(columns)} FROM weft_current WHERE {condition}"
        return self._change(touched, f"SELECT _weft_row FROM weft_current WHERE {condition}")

    def delete(self, where: exp.Expression | None) -> TableChange:
        self._make_current()
        condition = where.sql("duckdb") if where is not None else "true"
        return self._change(None, f"SELECT _weft_row FROM weft_current WHERE {condition}")

    def close(self) -> None:
        self._connection.close()

    def _make_current(self) -> None:
        segments = self._view.segments(self._record.owner, "rows", "gone")
        current = table_sql(self._record, segments, self._root, ", _weft_row")
        name = duck.name(self._record.name)
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW weft_current AS {current}")
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {current}")

    def _in_table_order(self, select: str, columns: tuple[str, ...]) -> str:
        """Match the select's columns with the table's, by the given list or by position."""
        table = self._record.definition.columns
        known = {c.name.lower(): c for c in table}
        for name in columns:
            if name.lower() not in known:
                raise unknown_column(name, self._record)
        targets = [n.lower() for n in columns] or list(known)
        width = len(self._run(f"DESCRIBE {select}").fetchall())
        if width != len(targets):
            raise InputError(
                f'INSERT gives {width} columns, table "{self._record.name}" takes {len(targets)}',
                detail="its columns are " + ", ".join(c.name for c in table),
                hint="name the columns: INSERT INTO t (a, b) VALUES (...)",
                code="WEFT_COLUMN_COUNT",
            )
        names = ", ".join(f"i{n}" for n in range(width))
        values = [
            f"i{targets.index(n)}::{duck_type(c.type)}"
            if n in targets
            else f"NULL::{duck_type(c.type)}"
            for n, c in known.items()
        ]
        return f"SELECT {', '.join(values)} FROM ({select}) AS given({names})"

    def _change(self, rows: str | None, gone: str | None) -> TableChange:
        record = self._record
        folder = (
            self._root / "tables" / str(record.id) / f"{self._tick:019d}-{uuid.uuid4().hex[:8]}"
        )
        folder.mkdir(parents=True)
        segments, next_row, counts = [], record.next_row, {"rows": 0, "gone": 0}
        if rows is not None:
            names = ", ".join(duck.name(c.name) for c in record.definition.columns)
            numbered = (
                f"SELECT *, {next_row} + row_number() OVER () - 1 AS _weft_row, {self._tick}::BIGINT AS _weft_from"
                f" FROM ({rows}) AS r({names})"
            )
            segments.append(self._write(numbered, folder / "rows.parquet", "rows"))
        if gone is not None:
            dated = f"SELECT _weft_row, {self._tick}::BIGINT AS _weft_to FROM ({gone})"
            segments.append(self._write(dated, folder / "gone.parquet", "gone"))
        for segment in segments:
            counts[segment.part] = segment.rows
        kept = tuple(s for s in segments if s.rows)
        return TableChange(kept, next_row + counts["rows"], counts["rows"], counts["gone"])

    def _write(self, select: str, path: Path, part: str) -> Segment:
        crash_point("table.before-write")
        self._run(f"COPY ({select}) TO {duck.text(str(path))} (FORMAT parquet, COMPRESSION zstd)")
        sync_file(path)
        crash_point("table.after-write")
        return footer_segment(path, self._root, self._record.owner, part, self._tick, None)

    def _run(self, sql: str):
        import duckdb

        try:
            return self._connection.execute(sql)
        except duckdb.ConversionException as error:
            raise TypeProblem(
                f'a value does not fit table "{self._record.name}"',
                detail=str(error).split("\n")[0],
                hint="check the types with DESCRIBE",
            ) from error
        except duckdb.IOException as error:
            raise storage_problem(self._root / "tables", error) from error
        except duckdb.Error as error:
            raise InputError(
                f'table "{self._record.name}" cannot be changed this way',
                detail=str(error).split("\n")[0],
                hint="INSERT, UPDATE and DELETE run on DuckDB: use functions that it knows too",
                code="WEFT_TABLE_CHANGE",
            ) from error


def unknown_column(name: str, record: TableRecord) -> UnknownName:
    names = [c.name for c in record.definition.columns]
    return UnknownName(
        f'column "{name}" does not exist in table "{record.name}"',
        detail="its columns are " + ", ".join(names),
        hint=did_you_mean(name, names),
        code="WEFT_UNKNOWN_COLUMN",
    )
