"""Reading a query's stored answer as DuckDB SQL: newest window, all windows, or rows valid now.

Stored rows are signed (see spark/answers.py): an answer is each row as often as its diffs add up.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from weft.catalog.records import QueryRecord, Segment
from weft.logical.relations import Column
from weft.logical.types import arrow_schema, arrow_type
from weft.results import duck

if TYPE_CHECKING:
    import pyarrow as pa

START, END, DIFF, EVALUATION = "_weft_start", "_weft_end", "_weft_diff", "_weft_eval"
NUMBER = "_weft_number"  # tells last-n-rows windows apart that start and end at the same times
COUNT = "_weft_count"  # helper names are ours alone: a user's column may be called n or range


def current(
    record: QueryRecord, segments: list[Segment], root: Path, evaluation: int | None = None
) -> str:
    """The answer: the newest emitted window, or the rows valid now (or after an evaluation)."""
    if not record.is_per_window:
        return select(record, settled(record, segments, root, evaluation))
    if record.is_append_only:
        return _newest(record, segments, root, None)
    rows = settled(record, segments, root, evaluation)
    return f"WITH rows AS ({rows}) {select(record, 'rows', _is_newest())}"


def at_instant(
    record: QueryRecord, segments: list[Segment], root: Path, micros: int, evaluation: int
) -> str:
    """The answer as it stood at an instant of the query's clock."""
    if record.is_per_window and record.is_append_only:
        return _newest(record, segments, root, micros)
    return current(record, segments, root, evaluation)


def history(record: QueryRecord, segments: list[Segment], root: Path) -> str:
    """Every window emitted so far, oldest first."""
    changes = [s for s in segments if s.part == "changes"]
    if record.is_append_only:
        rows = _scan(record, changes, root)
    else:
        rows = settled(record, segments, root, None)
    return select(record, rows, order=[END, START, NUMBER])


def change_log(record: QueryRecord, segments: list[Segment], root: Path, after: int = 0) -> str:
    """Changes after an evaluation, one row each, in a fixed order: what goes before what comes."""
    changes = [s for s in segments if s.part == "changes" and s.evaluation > after]
    rows = f"(SELECT * FROM {_relation(_scan(record, changes, root))} WHERE {EVALUATION} > {after})"
    return signed(record, rows)


def signed(record: QueryRecord, rows: str) -> str:
    """Signed rows, one for each time that a row came or went, in a fixed order."""
    stored = ", ".join(duck.name(c) for c in stored_columns(record))
    log = (
        f"SELECT {stored}, sign({DIFF})::BIGINT AS {DIFF}, {EVALUATION}"
        f" FROM {rows}, {_times('abs(' + DIFF + ')')}"
    )
    keys = [EVALUATION, DIFF, *([END, START, NUMBER] if record.is_per_window else []), stored]
    ends = [END] if record.is_per_window else []
    columns = ", ".join([*shown(record), DIFF, EVALUATION, *ends])
    return f"SELECT {columns} FROM ({log}) ORDER BY {', '.join(keys)}"


def settled(
    record: QueryRecord, segments: list[Segment], root: Path, evaluation: int | None
) -> str:
    """The newest base at or before an evaluation plus the changes after it, added up."""
    bound = (
        evaluation if evaluation is not None else max((s.evaluation for s in segments), default=0)
    )
    bases = [s for s in segments if s.part == "base" and s.evaluation <= bound]
    base = max((s.evaluation for s in bases), default=0)
    later = [s for s in segments if s.part == "changes" and s.evaluation > base]
    settled_rows = [s for s in bases if s.evaluation == base]
    stored = ", ".join(duck.name(c) for c in stored_columns(record))
    log = (
        f"SELECT {stored}, {DIFF} FROM {_relation(_scan(record, settled_rows, root))}"
        f" UNION ALL SELECT {stored}, {DIFF} FROM {_relation(_scan(record, later, root))}"
        f" WHERE {EVALUATION} > {base} AND {EVALUATION} <= {bound}"
    )
    return (
        f"SELECT {stored} FROM (SELECT {stored}, sum({DIFF})::BIGINT AS {COUNT} FROM ({log})"
        f" GROUP BY ALL HAVING {COUNT} > 0), {_times(COUNT)}"
    )


def _times(count: str) -> str:
    """A relation to join with that repeats each row `count` times."""
    return f"range({count}) AS _weft_times(_weft_nth)"


def stored_columns(record: QueryRecord) -> list[str]:
    names = [c.name for c in record.columns]
    names += [key[0] for key in record.order if key[0] not in names]
    return names + ([START, END, NUMBER] if record.is_per_window else [])


def _newest(record: QueryRecord, segments: list[Segment], root: Path, upto: int | None) -> str:
    changes = [s for s in segments if s.part == "changes" and s.max_time is not None]
    if upto is None:
        newest = max((s.max_time for s in changes), default=None)
        changes = [s for s in changes if s.max_time == newest]
        bound = ""
    else:
        changes = [s for s in changes if s.min_time <= upto]
        bound = f" WHERE {END} <= {duck.instant(upto)}"
    rows = _scan(record, changes, root)
    return f"WITH rows AS ({rows}) {select(record, 'rows', _is_newest(bound))}"


def _is_newest(bound: str = "") -> str:
    last = (
        f"SELECT row({END}, {NUMBER}) FROM rows{bound} ORDER BY {END} DESC, {NUMBER} DESC LIMIT 1"
    )
    return f"row({END}, {NUMBER}) = ({last})"


def _scan(record: QueryRecord, segments: list[Segment], root: Path) -> str:
    cut = record.forgotten
    if cut is not None:  # whether or not its file is there still
        segments = [s for s in segments if s.max_time > cut]
    if segments:
        kept = "" if cut is None else f" WHERE {END} > {duck.instant(cut)}"
        return f"SELECT * FROM {duck.scan([str(root / s.path) for s in segments])}{kept}"
    types = {c.name: c.type for c in record.columns}
    types |= {key[0]: key[3] for key in record.order if key[0] not in types}
    columns = [f"NULL::{duck_type(t)} AS {duck.name(n)}" for n, t in types.items()]
    columns += [f"NULL::TIMESTAMPTZ AS {n}" for n in (START, END)]
    columns += [f"NULL::BIGINT AS {n}" for n in (NUMBER, DIFF, EVALUATION)]
    return f"SELECT {', '.join(columns)} WHERE false"


def duck_type(spark_type: str) -> str:
    from sqlglot import exp

    kind = arrow_type(spark_type)
    if str(kind).startswith("timestamp[us, tz"):
        return "TIMESTAMPTZ"
    if str(kind) == "timestamp[us]":
        return "TIMESTAMP"
    return exp.DataType.build(spark_type, dialect="spark").sql(dialect="duckdb")


def _relation(sql: str) -> str:
    return sql if sql.isidentifier() else f"({sql})"


def shown(record: QueryRecord) -> list[str]:
    columns = [duck.name(c.name) for c in record.columns]
    if record.shows_window:
        columns = [f"{START} AS window_start", f"{END} AS window_end", *columns]
    return columns


def select(
    record: QueryRecord, rows: str, where: str | None = None, order: list[str] | None = None
) -> str:
    sql = f"SELECT {', '.join(shown(record))} FROM {_relation(rows)}"
    if where:
        sql += f" WHERE {where}"
    return sql + order_by(record, order)


def order_by(record: QueryRecord, first: list[str] | None = None) -> str:
    """The ORDER BY that the user asked for, applied on reading."""
    keys = list(first or [])
    for column, is_descending, is_nulls_first, _ in record.order:
        way = "DESC" if is_descending else "ASC"
        nulls = "FIRST" if is_nulls_first else "LAST"
        keys.append(f"{duck.name(column)} {way} NULLS {nulls}")
    return f" ORDER BY {', '.join(keys)}" if keys else ""


def windows(
    record: QueryRecord, segments: list[Segment], root: Path, where: str, extra: str
) -> str:
    """Windows of a per-window answer that satisfy a condition, with helper columns."""
    if record.is_append_only:
        rows = _scan(record, [s for s in segments if s.part == "changes"], root)
    else:
        rows = settled(record, segments, root, None)
    return f"SELECT {', '.join(shown(record))}{extra} FROM {_relation(rows)} WHERE {where}"


def typed(table: pa.Table, columns: tuple[Column, ...]) -> pa.Table:
    """The answer in exactly the declared Arrow types."""
    schema = arrow_schema(columns)
    return table.rename_columns(schema.names).cast(schema)


def read(sql: Callable[[], str] | str, columns: tuple[Column, ...]) -> pa.Table:
    return typed(duck.fetch(sql if isinstance(sql, str) else sql()), columns)
