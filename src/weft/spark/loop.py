"""The batch loop: one Structured Streaming query per stream, each batch handed to `Batches`.

`run` lets every stream process what is available and returns; `start` keeps the queries alive.
Batches of different streams are applied one at a time, so a batch sees a settled state.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from weft.catalog.records import StreamRecord
from weft.errors import StorageError, WeftError
from weft.spark.batch import Batches, BatchReport
from weft.spark.files import FileBatches
from weft.spark.problems import missing_connector, run_problem
from weft.spark.sources import open_source
from weft.storage.files import spark_path
from weft.storage.inbox import Inbox

Progress = Callable[[BatchReport], None]
MAINTAIN_EVERY = 30.0  # seconds between rounds of maintenance while the pipeline runs
GATHER_EVERY = 0.1  # seconds between looks into the inboxes while the pipeline runs


class Loop:
    def __init__(
        self,
        spark: SparkSession,
        batches: Batches,
        root: Path,
        ticks,
        lock: threading.RLock,
        maintain: Callable[[], None],
    ) -> None:
        self._spark, self._batches, self._root, self._ticks, self._lock = (
            spark,
            batches,
            root,
            ticks,
            lock,
        )
        self._live: dict[int, StreamingQuery] = {}
        self._records: dict[int, StreamRecord] = {}
        self._stopping = threading.Event()
        self._gatherer: threading.Thread | None = None
        self._maintain = maintain
        self._trigger = "1 second"
        self._progress: Progress | None = None
        self.failure: WeftError | None = None
        self._failures: dict[int, WeftError] = {}
        self._leaving: set[int] = set()  # streams whose query is being stopped
        self._between: dict[int, list[BatchReport]] = {}  # what sockets brought between runs

    @property
    def is_running(self) -> bool:
        """Whether the background pipeline is at work; False once it failed."""
        return self._gatherer is not None and not self._stopping.is_set()

    @property
    def was_started(self) -> bool:
        return self._gatherer is not None

    def run(self, streams: list[StreamRecord], progress: Progress | None) -> list[BatchReport]:
        """Process everything that is available now, stream after stream."""
        self._stopping.clear()
        reports: list[BatchReport] = []
        for record in streams:
            if self._has_work(record):
                self._run_one(record, progress, reports)
        return reports

    def _has_work(self, record: StreamRecord) -> bool:
        if record.definition.source != "push":
            return True
        inbox = self.inbox(record)
        inbox.gather()
        return bool(inbox.ready_files())

    def _run_one(
        self, record: StreamRecord, progress: Progress | None, reports: list[BatchReport]
    ) -> None:
        self._check_checkpoint(record)
        if record.definition.source == "files":
            self._take_back(record, progress, reports)
        if record.definition.source == "socket":
            return self._run_socket(record, progress, reports)
        query = self._begin(record, {"availableNow": True}, progress, reports)
        self._finish(record, query)
        return None

    def _run_socket(self, record: StreamRecord, progress: Progress | None, reports: list) -> None:
        """A socket forgets what nobody read, so its query stays alive between runs."""
        if record.id not in self._live:
            between = self._between[record.id] = []
            self._live[record.id] = self._begin(
                record, {"processingTime": "100 milliseconds"}, progress, between
            )
        try:
            self._live[record.id].processAllAvailable()
            done = self._between[record.id]
            while done:
                reports.append(done.pop(0))
        except PySparkException as error:
            self._live.pop(record.id)
            raise self._failures.pop(record.id, None) or run_problem(
                error, f'stream "{record.name}"'
            ) from error

    def _finish(self, record: StreamRecord, query: StreamingQuery) -> None:
        try:
            query.awaitTermination()
        except PySparkException as error:
            known = self._failures.pop(record.id, None)
            raise known or self._problem(error, record) from error
        finally:
            if query.isActive:
                query.stop()

    @staticmethod
    def _problem(error: PySparkException, record: StreamRecord) -> WeftError:
        found = missing_connector(error, record.definition.source)
        return found or run_problem(error, f'stream "{record.name}"')

    def start(self, streams: list[StreamRecord], trigger: str, progress: Progress | None) -> None:
        self._trigger, self._progress = trigger, progress
        self._stopping.clear()
        self.failure = None
        try:
            for record in streams:
                self._check_checkpoint(record)
                self.remove(record)  # a socket's query may live since a run
                self.add(record)
        except Exception:
            self.stop()
            raise
        self._gatherer = threading.Thread(target=self._gather, name="weft-inbox", daemon=True)
        self._gatherer.start()

    def add(self, record: StreamRecord) -> None:
        """Let a stream take part in the running pipeline."""
        query = self._begin(record, {"processingTime": self._trigger}, self._progress, None)
        self._records[record.id] = record
        self._live[record.id] = query

    def remove(self, record: StreamRecord) -> None:
        query = self._live.pop(record.id, None)
        self._records.pop(record.id, None)
        if query is not None:
            self._leaving.add(record.id)
            query.stop()
            self._leaving.discard(record.id)

    def drain(self, record: StreamRecord) -> None:
        """Process what was pushed or dropped in as a file so far, while the pipeline runs.

        Other sources may never be done, and waiting for them would take as long.
        """
        query = self._live.get(record.id)
        if query is not None and record.definition.source in ("push", "files"):
            self.inbox(record).gather()
            try:
                query.processAllAvailable()
            except PySparkException as error:
                raise self._failures.get(record.id) or self._problem(error, record) from error

    def stop(self) -> None:
        """Stop in good order: the batch in hand is finished, nothing new begins."""
        self._stopping.set()
        if self._gatherer is not None:
            self._gatherer.join()
            self._gatherer = None
        for query in list(self._live.values()):
            self._stop_one(query)
        self._live.clear()
        self._records.clear()

    def _stop_one(self, query: StreamingQuery) -> None:
        # Spark's stop() interrupts a running batch; holding the lock means that none is running,
        # and a batch that waits for the lock gives up by itself (see _take_turn)
        with self._lock:
            query.stop()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the pipeline stops or fails; True if it did."""
        return self._stopping.wait(timeout)

    def _gather(self) -> None:
        maintained = time.monotonic()
        while not self._stopping.wait(GATHER_EVERY):
            for record in list(self._records.values()):
                if record.definition.source == "push":
                    self.inbox(record).gather()
            if time.monotonic() - maintained > MAINTAIN_EVERY:
                try:
                    self._maintain()
                except Exception as error:  # said, not swallowed by a thread that ends
                    self.failure = run_problem(error, "maintenance")
                    self._stopping.set()
                    return
                maintained = time.monotonic()
            for stream_id, query in list(self._live.items()):
                if not query.isActive and stream_id in self._records:
                    self._note_failure(stream_id, query)

    def _note_failure(self, stream_id: int, query: StreamingQuery) -> None:
        record = self._records.pop(stream_id)
        error = query.exception()
        found = self._failures.pop(stream_id, None)
        self.failure = found or self._problem(error or RuntimeError("the source ended"), record)
        self._stopping.set()

    def _begin(
        self, record: StreamRecord, trigger: dict, progress: Progress | None, reports: list | None
    ) -> StreamingQuery:
        frame = open_source(self._spark, record, self.inbox(record).ready)
        writer = frame.writeStream.foreachBatch(self._on_batch(record, progress, reports))
        writer = writer.option("checkpointLocation", spark_path(self._checkpoint(record)))
        return writer.queryName(f"weft-{record.id}").trigger(**trigger).start()

    def _on_batch(self, record: StreamRecord, progress: Progress | None, reports: list | None):
        files = (
            FileBatches(self._spark, record, self._checkpoint(record))
            if record.definition.source == "files"
            else None
        )

        def on_batch(frame: DataFrame, batch_id: int) -> None:
            try:
                self._take_turn(record)
                try:
                    report = self._apply(record, frame, batch_id, files)
                finally:
                    self._lock.release()
            except InterruptedError:
                raise
            except Exception as error:
                self._failures[record.id] = run_problem(
                    error, f'stream "{record.name}", batch {batch_id}'
                )
                raise
            self._after(record, report, progress, reports)

        return on_batch

    def _take_turn(self, record: StreamRecord) -> None:
        """Wait for the lock, but not when the one who holds it is waiting for this batch to end."""
        while True:
            has_lock = self._lock.acquire(timeout=0.05)
            if self._stopping.is_set() or record.id in self._leaving:
                if has_lock:
                    self._lock.release()
                raise InterruptedError("the pipeline is stopping")
            if has_lock:
                return

    def _apply(
        self, record: StreamRecord, frame: DataFrame, batch_id: int, files: FileBatches | None
    ) -> BatchReport | None:
        if files is None:
            return self._batches.apply(record.id, frame, batch_id, self._ticks.next())
        return files.apply(self._batches, frame, batch_id, self._ticks.next())

    def _after(
        self,
        record: StreamRecord,
        report: BatchReport | None,
        progress: Progress | None,
        reports: list | None,
    ) -> None:
        self.clean_inbox(record)
        if report is None:
            return
        if reports is not None:
            reports.append(report)
        if progress is not None:
            progress(report)

    def _take_back(self, record: StreamRecord, progress: Progress | None, reports: list) -> None:
        """Files that were set aside and have been mended since."""
        files = FileBatches(self._spark, record, self._checkpoint(record))
        with self._lock:
            report = files.take_back(self._batches, self._ticks)
        self._after(record, report, progress, reports)

    def clean_inbox(self, record: StreamRecord) -> None:
        """Delete pushed files whose rows are committed."""
        if record.definition.source == "push":
            consumed = self._batches.consumed(record.id)
            for path in self.inbox(record).ready_files():
                if int(path.stem.split("-")[1]) <= consumed:
                    path.unlink(missing_ok=True)

    def inbox(self, record: StreamRecord) -> Inbox:
        return Inbox(self._root / "inbox" / str(record.id))

    def _checkpoint(self, record: StreamRecord) -> Path:
        return self._root / "checkpoints" / str(record.id)

    def _check_checkpoint(self, record: StreamRecord) -> None:
        """See that Spark's progress and the catalog's fit, before a query starts."""
        folder = self._checkpoint(record)
        offsets = folder / "offsets"
        if offsets.exists() and any(path.name.isdigit() for path in offsets.iterdir()):
            return
        if record.batch_id < 0:
            # killed while Spark planned its very first batch: only a half-written file is there,
            # which Spark refuses; no batch was planned, so nothing is lost by starting over
            shutil.rmtree(folder, ignore_errors=True)
            return
        raise StorageError(
            f'the progress of stream "{record.name}" is missing: {folder}',
            detail=f"batch {record.batch_id} is committed, but Spark no longer knows how far it read",
            hint="restore the folder from a backup; starting without it would skip or repeat rows",
            code="WEFT_CHECKPOINT_MISSING",
        )
