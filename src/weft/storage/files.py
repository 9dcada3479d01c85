"""Durable files and what their Parquet footers say."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from weft.catalog.records import Segment, to_micros
from weft.errors import StorageError


def sync_file(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


sync_folder = sync_file  # a folder is synced the same way; it makes its entries durable


def write_durably(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file so that it is there whole or not at all, also after a crash.

    The temporary name starts with an underscore, which Spark's file source passes over.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"_tmp-{path.name}")
    try:
        write(temporary)
        sync_file(temporary)
        temporary.rename(path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise storage_problem(path, error) from error


def storage_problem(path: Path, error: BaseException) -> StorageError:
    return StorageError(
        f"{path} could not be written",
        detail=str(error),
        hint="free some disk space or check the permissions, then try again; nothing was lost",
        code="WEFT_STORAGE_WRITE",
    )


def intact_paths(root: Path, segments: Iterable[Segment]) -> list[str]:
    """The files of segments, each of the size that was committed.

    Spark takes an empty file for one without rows, so a lost content would go unnoticed.
    """
    found = []
    for segment in segments:
        path = root / segment.path
        size = path.stat().st_size if path.exists() else None
        if size != segment.bytes:
            raise StorageError(
                f"a segment {'is missing' if size is None else 'cannot be read'}: {path}",
                detail=f"it has {size or 0} bytes, {segment.bytes} were committed",
                hint="restore the file from a backup and run again; nothing was changed",
                code="WEFT_FILE_MISSING" if size is None else "WEFT_CORRUPT_SEGMENT",
            )
        found.append(str(path))
    return found


def spark_path(path: Path) -> str:
    """A local path as Spark reads it: like a URI, but with blanks and signs as they are."""
    return f"file://{path.absolute()}"


def parquet_files(folder: Path) -> Iterator[Path]:
    """Data files under a folder that Spark wrote, in a stable order."""
    return iter(sorted(p for p in folder.rglob("*.parquet") if not p.name.startswith(("_", "."))))


def footer_segment(
    path: Path,
    root: Path,
    owner: str,
    part: str,
    tick: int,
    time_column: str | None,
    evaluation: int = 0,
) -> Segment:
    """Describe a Parquet file by its footer: rows, bytes, and the range of its time column."""
    import pyarrow.parquet as pq

    footer = pq.read_metadata(path)
    low, high = _time_range(footer, time_column) if time_column else (None, None)
    return Segment(
        owner, part, str(path.relative_to(root)), footer.num_rows, path.stat().st_size, tick,
        low, high, evaluation,
    )  # fmt: skip


def largest(path: Path, column: str) -> int:
    """The largest value of an integer column, from the footer; -1 if there is none."""
    import pyarrow.parquet as pq

    footer = pq.read_metadata(path)
    names = [footer.schema.column(i).path for i in range(footer.num_columns)]
    groups = range(footer.num_row_groups)
    found = [footer.row_group(g).column(names.index(column)).statistics for g in groups]
    return max((s.max for s in found if s is not None and s.has_min_max), default=-1)


def _time_range(footer, column: str) -> tuple[int | None, int | None]:
    names = [footer.schema.column(i).path for i in range(footer.num_columns)]
    index = names.index(column)
    lows, highs = [], []
    for group in range(footer.num_row_groups):
        found = footer.row_group(group).column(index).statistics
        if found is not None and found.has_min_max:
            lows.append(micros_of(found.min))
            highs.append(micros_of(found.max))
    return (min(lows), max(highs)) if lows else (None, None)


def micros_of(value: datetime | int) -> int:
    """An instant of a footer's statistics."""
    if isinstance(value, int):
        return value
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return to_micros(value)
