"""Batches of a file source: a file that cannot be read is set aside, a missing one is an error.

Spark's file source says which files a batch has. The batch runs as Spark gives it; only if it
fails are its files tried one by one. Unreadable ones are noted and shown in <stream>.rejected, the
others are ingested; when a file that was set aside changes and can be read, it is taken back.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame, SparkSession

from weft.catalog.records import StreamRecord
from weft.errors import SourceError, WeftError
from weft.spark.batch import Batches, BatchReport
from weft.spark.problems import headline
from weft.spark.rows import struct_of
from weft.spark.sources import HELPERS, file_reader, with_helpers
from weft.storage.coerce import RAW, REASON
from weft.storage.files import spark_path


class FileBatches:
    def __init__(self, spark: SparkSession, record: StreamRecord, checkpoint: Path) -> None:
        self._spark, self._record, self._checkpoint = spark, record, checkpoint

    def apply(
        self, batches: Batches, frame: DataFrame, batch_id: int, tick: int
    ) -> BatchReport | None:
        files = self._files_of(batch_id)
        try:
            return batches.apply(self._record.id, frame, batch_id, tick, files=files)
        except WeftError:
            raise
        except Exception:
            good, bad = self._sort_out(files)
            if not bad:
                raise
        frame = self._without(good, bad)
        aside = [{"path": str(path), "problem": why, **_stamp(path)} for path, why in bad]
        return batches.apply(
            self._record.id, frame, batch_id, tick,
            lambda change: [change.set_file_aside(self._record.id, **row) for row in aside],
        )  # fmt: skip

    def take_back(self, batches: Batches, ticks) -> BatchReport | None:
        """Ingest files that were set aside and can be read now."""
        mended = []
        for row in batches.files_set_aside(self._record.id):
            path = Path(row.path)
            if not path.exists() or _stamp(path) == {"size": row.size, "modified": row.modified}:
                continue
            if self._why_unreadable(path) is None:
                mended.append((row.id, path))
        if not mended:
            return None
        frame = self._read([path for _, path in mended])
        return batches.apply(
            self._record.id, frame, None, ticks.next(),
            lambda change: [change.take_file_back(row_id) for row_id, _ in mended],
        )  # fmt: skip

    def _files_of(self, batch_id: int) -> list[Path]:
        """The files that Spark planned for a batch, from the source's own log."""
        log = self._checkpoint / "sources" / "0"
        last = self._offset(batch_id, 0)
        found = []
        for number in range(self._offset(batch_id - 1, last - 1) + 1, last + 1):
            path = log / str(number)
            path = path if path.exists() else log / f"{number}.compact"
            mark = f'"batchId":{number}'
            lines = path.read_text().splitlines()[1:] if path.exists() else ()
            for entry in (json.loads(line) for line in lines if mark in line):
                if entry["batchId"] == number:
                    found.append(Path(unquote(urlparse(entry["path"]).path)))
        return list(dict.fromkeys(found))

    def _offset(self, batch_id: int, otherwise: int) -> int:
        """How far into the source's log a batch reaches."""
        path = self._checkpoint / "offsets" / str(batch_id)
        if not path.exists():
            return otherwise
        return json.loads(path.read_text().splitlines()[-1])["logOffset"]

    def _sort_out(self, files: list[Path]) -> tuple[list[Path], list[tuple[Path, str]]]:
        good, bad = [], []
        for path in files:
            if not path.exists():
                raise SourceError(
                    f"a source file has vanished: {path}",
                    detail=f'stream "{self._record.name}" was about to read it',
                    hint="put the file back and run again; nothing was changed",
                    code="WEFT_SOURCE_FILE_MISSING",
                )
            why = self._why_unreadable(path)
            if why is None:
                good.append(path)
            else:
                bad.append((path, why))
        return good, bad

    def _why_unreadable(self, path: Path) -> str | None:
        try:
            self._read([path]).write.format("noop").mode("overwrite").save()
        except Exception as error:
            return headline(str(error))[:500]
        return None

    def _read(self, paths: list[Path]) -> DataFrame:
        reader = file_reader(self._spark.read, self._record.definition)
        return with_helpers(reader.load([spark_path(path) for path in paths]))

    def _without(self, good: list[Path], bad: list[tuple[Path, str]]) -> DataFrame:
        """The readable files' rows, and one rejected row for every other file."""
        columns = self._record.definition.columns + HELPERS
        schema = struct_of(columns)
        names = [column.name for column in columns]
        rows = []
        for path, why in bad:
            values = dict.fromkeys(names)
            values[RAW], values[REASON] = str(path), f"the file cannot be read: {why}"
            rows.append(tuple(values.values()))
        frame = self._spark.createDataFrame(rows, schema)
        return frame.unionByName(self._read(good)) if good else frame


def _stamp(path: Path) -> dict[str, int]:
    found = path.stat()
    return {"size": found.st_size, "modified": found.st_mtime_ns // 1000}
