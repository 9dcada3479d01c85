"""Row files that a stream takes as they lie: Parquet of its source, copied byte for byte.

Why: rows that lie in Parquet already would be decoded and encoded once more for nothing but four
helper columns, which costs as much as folding them. A taken file has none of them; its readers
make them up: the time is the stream's time column, the tick and the number of the file stand in its
path, the place in the order of arrival is the row's number.

Only a file whose footer shows that every row counts is taken (none without a time, none late), with
exactly the declared types, as every engine that reads it understands them alike.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

from weft.catalog.records import Segment, StreamRecord
from weft.logical.relations import Column, StreamDefinition
from weft.logical.types import arrow_type
from weft.storage.files import footer_segment, micros_of, sync_folder, write_durably

TICK, FILE = "_weft_tick", "_weft_file"
FILE_SPAN = 2**40  # rows of one file are numbered below this
LARGEST = 128 * 2**20  # bytes: larger files are split and sorted for their readers
HARMLESS = {
    "source", "path", "format", "maxfilespertrigger", "maxbytespertrigger", "latestfirst", "maxfileage",
    "pathglobfilter", "recursivefilelookup", "cleansource", "sourcearchivedir", "maxcachedfiles",
}  # fmt: skip
MODERN = datetime(1900, 1, 1, tzinfo=UTC)  # calendars and Spark's reading of them differ before


def is_taken(segment: Segment) -> bool:
    return f"/{TICK}=" in segment.path


def can_be_taken(definition: StreamDefinition) -> bool:
    """Whether a stream's files may be: Parquet on a local disk, read without further ado."""
    path, kind = definition.options.get("path", ""), definition.options.get("format", "parquet")
    return (
        definition.source == "files"
        and kind.lower() == "parquet"
        and path.startswith("/")
        and definition.time_column in {c.name for c in definition.columns}
        and {name.lower() for name in definition.options} <= HARMLESS
    )


def fits(paths: Sequence[Path], record: StreamRecord, fewest: int) -> bool:
    """Whether files hold nothing but rows that count, and are of a good size, by their footers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 0
    for path in paths:
        try:
            if path.stat().st_size > LARGEST:
                return False
            footer = pq.read_metadata(path)
            is_good = _has_columns(footer, record.definition) and _counts(footer, record)
        except (OSError, pa.ArrowException):
            return False  # Spark says what is wrong with it
        if not is_good:
            return False
        rows += footer.num_rows
    return bool(paths) and rows >= fewest * len(paths)


def _has_columns(footer, definition: StreamDefinition) -> bool:
    schema = footer.schema.to_arrow_schema()
    names = [name.lower() for name in schema.names]
    if len(set(names)) < len(names) or any(n.startswith(("_weft_", "file_row")) for n in names):
        return False
    given = {field.name: field.type for field in schema}
    return all(_is_as_declared(given.get(c.name), c) for c in definition.columns)


def _is_as_declared(given, column: Column) -> bool:
    import pyarrow as pa

    if given is None or pa.types.is_nested(given):
        return False
    if pa.types.is_dictionary(given):
        given = given.value_type
    if pa.types.is_large_string(given):
        given = pa.string()
    if pa.types.is_timestamp(given) and given.tz is not None:
        given = pa.timestamp(given.unit, "UTC")  # an instant, whatever the zone it is shown in
    return given == arrow_type(column.type)


def _counts(footer, record: StreamRecord) -> bool:
    """Whether every row has a time that is not behind the clock."""
    time = record.definition.time_column
    names = [footer.schema.column(i).path for i in range(footer.num_columns)]
    declared = {c.name for c in record.definition.columns}
    for group in range(footer.num_row_groups):
        for index, name in enumerate(names):
            found = footer.row_group(group).column(index).statistics
            if name == time:
                if found is None or not found.has_min_max or found.null_count != 0:
                    return False
                if record.clock is not None and micros_of(found.min) < record.clock:
                    return False
            is_dated = name in declared and found is not None and found.has_min_max
            if is_dated and isinstance(found.min, date) and not _is_modern(found.min):
                return False
    return True


def _is_modern(value: date) -> bool:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) >= MODERN
    return value >= MODERN.date()


def take(
    paths: Sequence[Path], record: StreamRecord, tick: int, root: Path
) -> list[Segment] | None:
    """Copy files that fit into a stream's folder, verified and durable; None: one cannot be read."""
    import pyarrow as pa

    home = root / "streams" / str(record.id) / f"{TICK}={tick}"
    found = []
    try:
        for number, path in enumerate(paths):
            copy = home / f"{FILE}={number}" / f"{uuid.uuid4().hex[:8]}.parquet"
            write_durably(copy, partial(shutil.copyfile, path))
            _read_through(copy, record.definition)
            time = record.definition.time_column
            found.append(footer_segment(copy, root, record.owner, "rows", tick, time))
    except pa.ArrowException:
        shutil.rmtree(home)
        return None
    sync_folder(home)
    return [segment for segment in found if segment.rows]


def _read_through(path: Path, definition: StreamDefinition) -> None:
    """See that every value can be decoded: a damaged file must not become part of the history."""
    import pyarrow.parquet as pq

    names = [column.name for column in definition.columns]
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for _ in file.iter_batches(columns=names):
            pass
