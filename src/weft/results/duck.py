"""The reading engine: an in-memory DuckDB over Parquet segments."""

from __future__ import annotations

import atexit
import re
import threading
import warnings
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from weft.errors import StorageError, Unsupported, WeftError
from weft.logical.declared import FAILURE

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """SQL, and the small relations that it names beside stored ones."""

    sql: str
    tables: dict[str, pa.Table] = field(default_factory=dict)

    def renamed(self, suffix: str) -> Reading:
        """The same with other names for its relations, so that several can be used together."""
        sql = self.sql
        for name in self.tables:
            sql = re.sub(rf"\b{name}\b", name + suffix, sql)
        return Reading(sql, {name + suffix: table for name, table in self.tables.items()})


_lock = threading.Lock()
_root: duckdb.DuckDBPyConnection | None = None


def cursor() -> duckdb.DuckDBPyConnection:
    """A connection of its own, cheap to make, with views of its own."""
    return root().cursor()


def root() -> duckdb.DuckDBPyConnection:
    """The connection that all others come of; functions made in it are known to all."""
    global _root
    import duckdb

    with _lock:
        if _root is None:
            _root = duckdb.connect(":memory:")
            _root.execute("SET GLOBAL TimeZone = 'UTC'")
            _root.execute("SET autoinstall_known_extensions = false")
            warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning)
            atexit.register(_root.close)  # lets go of Python functions while Python still runs
        return _root


def fetch(sql: str, using: duckdb.DuckDBPyConnection | None = None, read: str = "") -> pa.Table:
    """Run a query and return all of its answer; `read` is the SQL of the views it uses.

    DuckDB advises against `execute` for Arrow, since it copies the answer once more. A relation
    parses and binds the query twice and opens its files twice, which costs a small answer more.
    """
    connection = using or cursor()
    import duckdb

    try:
        return connection.execute(sql).to_arrow_table()
    except duckdb.Error as error:
        raise reading_problem(error, sql + read) from error
    finally:
        if using is None:
            connection.close()


def fetch_with(sql: str, tables: dict[str, pa.Table]) -> pa.Table:
    """Run a query that names small relations beside stored ones."""
    connection = cursor()
    try:
        for name, table in tables.items():
            connection.register(name, table)
        return fetch(sql, connection)
    finally:
        connection.close()


def reading_problem(error: Exception, read: str) -> WeftError:
    """An error of DuckDB as Weft's; `read` is the SQL that names the segments."""
    import duckdb

    text = str(error).split("\n")[0]
    if FAILURE in str(error):
        return _failed_aggregate(str(error))
    path = re.search(r"[\"']?(/[^\s\"',]+\.parquet)", str(error))
    if not (isinstance(error, duckdb.IOException | duckdb.InvalidInputException) and path):
        path = _unreadable(read)  # some errors do not say which file they met
    if path:
        is_missing = "No such file" in text or "No files found" in text
        verb = "is missing" if is_missing else "cannot be read"
        return StorageError(
            f"a segment {verb}: {path.group(1)}",
            detail=text,
            hint="restore the file from a backup; nothing else is affected",
            code="WEFT_FILE_MISSING" if is_missing else "WEFT_CORRUPT_SEGMENT",
        )
    return Unsupported(
        "this SELECT cannot be answered from the stored answers",
        detail=text,
        hint="a pull SELECT runs on DuckDB; register it as a continuous query to run it on Spark",
        code="WEFT_PULL_FAILED",
    )


def _failed_aggregate(text: str) -> WeftError:
    return Unsupported(
        "a Python aggregate raised an error",
        detail=text.split(FAILURE)[-1].split("\n")[0],
        hint="correct the class and the rows, or leave such rows out with WHERE or FILTER",
        code="WEFT_AGGREGATE_FAILED",
    )


def values(width: int, rows: list[tuple]) -> pa.Table:
    """Rows of Python values as a table, without a detour through pandas."""
    names = ", ".join(f"c{i}" for i in range(width))
    if not rows:
        return fetch(f"SELECT {', '.join(f'NULL AS c{i}' for i in range(width))} WHERE false")
    lines = ", ".join("(" + ", ".join(literal(value) for value in row) + ")" for row in rows)
    return fetch(f"SELECT * FROM (VALUES {lines}) AS v({names})")


def literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f"TIMESTAMPTZ {text(value.isoformat())}"
    return str(value) if isinstance(value, int | float) else text(str(value))


def _unreadable(sql: str) -> re.Match | None:
    """The first segment in a query's text whose content cannot be read."""
    import pyarrow.parquet as pq

    for found in re.finditer(r"'(/[^']+\.parquet)'", sql):
        try:
            pq.read_table(found.group(1), partitioning=None)
        except Exception:
            return found
    return None


def name(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def scan(paths: list[str]) -> str:
    """A relation over Parquet files of one schema."""
    files = ", ".join(text(path) for path in paths)
    return f"read_parquet([{files}], hive_partitioning = false, union_by_name = false)"


def instant(micros: int) -> str:
    return f"make_timestamptz({micros})"
