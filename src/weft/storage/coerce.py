"""Rows as users have them → an Arrow table in the stream's types, with what does not fit marked.

A value that does not fit its column does not fail the push: its row goes to `<stream>.rejected`
with the reason. What is wrong with the call as a whole (no such column, not rows at all) is an
error, and nothing is stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from weft.errors import InputError, UnknownName, did_you_mean
from weft.logical.relations import Column
from weft.logical.types import arrow_type

if TYPE_CHECKING:
    import pyarrow as pa

RAW, REASON = "_weft_raw", "_weft_reason"


def coerce(rows: Any, columns: tuple[Column, ...], where: str) -> pa.Table:
    """The rows in the declared types, plus RAW and REASON (null where the row is good)."""
    import pyarrow as pa

    given = as_table(rows, columns, where)
    by_name = _match(given.column_names, columns, where)
    arrays, problems = [], {}
    for column in columns:
        target = arrow_type(column.type)
        if column.name not in by_name:
            arrays.append(pa.nulls(len(given), target))
            continue
        source = given.column(by_name[column.name])
        array, bad = _cast(source, target)
        arrays.append(array)
        for index in bad:
            value = source[index].as_py()
            problems.setdefault(index, f'column "{column.name}": {value!r} is not a {column.type}')
    raw, reason = _mark(given, problems)
    names = [column.name for column in columns]
    return pa.table([*arrays, raw, reason], names=[*names, RAW, REASON])


def as_table(rows: Any, columns: tuple[Column, ...], where: str) -> pa.Table:
    import pyarrow as pa

    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    if hasattr(rows, "to_arrow"):  # polars
        return rows.to_arrow()
    if hasattr(rows, "columns") and hasattr(rows, "dtypes"):  # pandas
        return _from_pandas(rows)
    if isinstance(rows, Mapping):
        rows = [rows]
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes):
        return _from_dicts(list(rows), columns, where)
    raise InputError(
        f"{type(rows).__name__} is not rows for {where}",
        hint="give a pyarrow.Table, a pandas or polars DataFrame, or a list of dicts",
        code="WEFT_NOT_ROWS",
    )


def _from_pandas(frame: Any) -> pa.Table:
    import pyarrow as pa

    arrays = {}
    for name in frame.columns:
        try:
            arrays[str(name)] = pa.Array.from_pandas(frame[name])
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # mixed values: let each be judged by itself
            arrays[str(name)] = pa.array([_text(v) for v in frame[name].tolist()])
    arrays = {
        n: a.combine_chunks() if hasattr(a, "combine_chunks") else a for n, a in arrays.items()
    }
    return pa.table(arrays)


def _from_dicts(rows: list, columns: tuple[Column, ...], where: str) -> pa.Table:
    import pyarrow as pa

    wrong = next((row for row in rows if not isinstance(row, Mapping)), None)
    if wrong is not None:
        raise InputError(
            f"a row for {where} is a {type(wrong).__name__}, not a dict",
            hint='write rows as {"column": value, ...}',
            code="WEFT_NOT_ROWS",
        )
    names = dict.fromkeys(key for row in rows for key in row)
    types = {c.name.lower(): arrow_type(c.type) for c in columns}
    arrays = {}
    for name in names:
        values = [row.get(name) for row in rows]
        arrays[str(name)] = _array(values, types.get(str(name).lower()))
    return pa.table(arrays) if arrays else pa.table({c.name: [] for c in columns[:1]})


def _array(values: list, target: pa.DataType | None) -> pa.Array:
    import pyarrow as pa

    problems = (
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        pa.ArrowNotImplementedError,
        OverflowError,
        TypeError,
        ValueError,
    )
    # pyarrow would cut 1.5 to 1 and take any number for microseconds; such values are cast below,
    # where they are found not to fit
    is_whole = target is None or not any(_is_cut(value, target) for value in values)
    for kind in (target, None) if is_whole else (None,):
        try:
            return pa.array(values, type=kind)
        except problems:
            continue
    return pa.array([_text(value) for value in values])


def _is_cut(value: Any, target: pa.DataType) -> bool:
    import pyarrow as pa

    if not isinstance(value, int | float | Decimal):
        return False
    return pa.types.is_temporal(target) or (pa.types.is_integer(target) and value % 1 != 0)


def _text(value: Any) -> str | None:
    if value is None or (isinstance(value, float) and value != value):
        return None
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _match(given: list[str], columns: tuple[Column, ...], where: str) -> dict[str, str]:
    known = {column.name.lower(): column.name for column in columns}
    found = {}
    for name in given:
        column = known.get(name.lower())
        if column is None:
            raise UnknownName(
                f'column "{name}" does not exist in {where}',
                detail="its columns are " + ", ".join(c.name for c in columns),
                hint=did_you_mean(name, known.values()),
                code="WEFT_UNKNOWN_COLUMN",
            )
        found[column] = name
    return found


def _cast(source: pa.ChunkedArray, target: pa.DataType) -> tuple[pa.ChunkedArray, list[int]]:
    """Cast a column; the positions of values that do not fit, which become null.

    Halving isolates bad values in O(bad · log n) vector casts, never one cast per good value.
    """
    import pyarrow as pa

    if source.type == target:
        return source, []
    pieces: list[pa.Array] = []
    bad: list[int] = []
    pending = [(0, len(source))]
    while pending:
        start, end = pending.pop()
        done = _try_cast(source.slice(start, end - start), target)
        if done is not None:
            pieces.append(done)
        elif end - start == 1:
            bad.append(start)
            pieces.append(pa.nulls(1, target))
        else:
            middle = (start + end) // 2
            pending += [(middle, end), (start, middle)]
    chunks = [c for p in pieces for c in (p.chunks if isinstance(p, pa.ChunkedArray) else [p])]
    return pa.chunked_array(chunks, type=target), bad


def _try_cast(piece: pa.ChunkedArray, target: pa.DataType) -> pa.Array | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        if (
            pa.types.is_timestamp(target)
            and pa.types.is_timestamp(piece.type)
            and piece.type.tz is None
            and target.tz
        ):
            return pc.assume_timezone(piece.cast(pa.timestamp("us"), safe=False), "UTC")
        if pa.types.is_timestamp(piece.type) and pa.types.is_timestamp(target):
            return piece.cast(target, safe=False)  # nanoseconds lose what a microsecond cannot hold
        if pa.types.is_timestamp(target) and _is_text(piece.type):
            return _parse_instants(piece, target)
        if _is_number(piece.type) and pa.types.is_temporal(target):
            return None  # seconds, milliseconds, microseconds: nobody can tell
        if _is_number(piece.type) and (pa.types.is_string(target) or pa.types.is_boolean(target)):
            return piece.cast(target) if pa.types.is_string(target) else None
        return piece.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return None


def _parse_instants(piece: pa.ChunkedArray, target: pa.DataType) -> pa.Array:
    """ISO 8601 texts, with or without a zone (UTC if none)."""
    import pyarrow as pa

    try:
        instants = [
            None if t is None else datetime.fromisoformat(t.strip()) for t in piece.to_pylist()
        ]
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from None
    utc = [i if i is None or i.tzinfo else i.replace(tzinfo=UTC) for i in instants]
    if target.tz is None:
        return pa.array(
            [i if i is None else i.astimezone(UTC).replace(tzinfo=None) for i in utc],
            target,
        )
    return pa.array(utc, target)


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _mark(given: pa.Table, problems: dict[int, str]) -> tuple[pa.Array, pa.Array]:
    import pyarrow as pa

    if not problems:
        return pa.nulls(len(given), pa.string()), pa.nulls(len(given), pa.string())
    raw: list[str | None] = [None] * len(given)
    for index in problems:
        row = given.slice(index, 1).to_pylist()[0]
        raw[index] = json.dumps(row, default=str)
    reasons = [problems.get(index) for index in range(len(given))]
    return pa.array(raw, pa.string()), pa.array(reasons, pa.string())
