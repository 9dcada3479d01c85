"""The retained rows of a stream, for DuckDB."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weft.catalog.records import Segment, StreamRecord
from weft.results import duck
from weft.storage import taken

HELPERS = "_weft_time, _weft_tick, _weft_ord"
OPTIONS = (
    "hive_partitioning = true, file_row_number = true, union_by_name = false,"
    f" hive_types = {{'{taken.TICK}': BIGINT, '{taken.FILE}': BIGINT}}"
)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation of the stream: its clock, and the largest tick of a row it had seen."""

    number: int
    clock: int | None
    seen: int | None


def scan_rows(record: StreamRecord, segments: list[Segment], root: Path) -> str:
    """A relation of the stream's columns and HELPERS, whoever wrote the files."""
    written = [str(root / s.path) for s in segments if not taken.is_taken(s)]
    as_they_lie = [str(root / s.path) for s in segments if taken.is_taken(s)]
    if not as_they_lie:
        return duck.scan(written)
    found = _taken(record, as_they_lie)
    if written:
        columns = ", ".join(duck.name(c.name) for c in record.definition.columns)
        found += f" UNION ALL SELECT {columns}, {HELPERS} FROM {duck.scan(written)}"
    return f"({found})"


def overlapping(segments: list[Segment], low: int | None, high: int | None) -> list[Segment]:
    return [
        s
        for s in segments
        if (high is None or s.min_time <= high) and (low is None or s.max_time >= low)
    ]


def _taken(record: StreamRecord, paths: list[str]) -> str:
    """Files that lie as their source wrote them; what they lack is in their paths (storage/taken.py)."""
    columns = ", ".join(duck.name(c.name) for c in record.definition.columns)
    time = duck.name(record.definition.time_column)
    order = f"{taken.FILE} * {taken.FILE_SPAN} + file_row_number"
    files = ", ".join(duck.text(path) for path in paths)
    return (
        f"SELECT {columns}, {time} AS _weft_time, {taken.TICK}, {order} AS _weft_ord"
        f" FROM read_parquet([{files}], {OPTIONS})"
    )
