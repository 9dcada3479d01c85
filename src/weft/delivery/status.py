"""The state of a warehouse at a glance: what `weft top` and db.status() show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from weft.catalog.records import to_instant
from weft.catalog.view import View
from weft.engine import Engine
from weft.logical.windows import duration
from weft.results.system import query_rows


@dataclass(frozen=True, slots=True)
class StreamStatus:
    name: str
    source: str
    clock: datetime | None
    max_event_time: datetime | None
    rows: int
    late: int
    rejected: int
    retain: str


@dataclass(frozen=True, slots=True)
class QueryStatus:
    name: str
    strategy: str
    window: str
    clock: datetime | None
    evaluations: int  # of a shared query: its stream's
    rows_out: int | None  # None for shared ones: their answers are made when they are read
    last_ms: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class BatchStatus:
    stream: str
    batch_id: int
    rows: int
    late: int
    rejected: int
    queries: int
    ms: int
    clock: datetime | None
    committed_at: datetime


@dataclass(frozen=True, slots=True)
class Status:
    is_running: bool
    streams: list[StreamStatus]
    queries: list[QueryStatus]
    batches: list[BatchStatus]  # newest first


def read_status(engine: Engine) -> Status:
    with engine.catalog.read() as view:
        says_running = view.fact("pipeline") == "running"
        streams = [
            StreamStatus(
                s.name,
                s.definition.source,
                to_instant(s.clock),
                to_instant(s.max_time),
                s.rows,
                s.late,
                s.rejected,
                "all" if s.definition.retain is None else duration(s.definition.retain),
            )
            for s in view.streams()
        ]
        queries = query_statuses(view)
        batches = [
            BatchStatus(
                b.stream,
                b.batch_id,
                b.rows,
                b.late,
                b.rejected,
                b.queries,
                b.ms,
                to_instant(b.clock),
                to_instant(b.committed_at),
            )
            for b in view.batches(50)
        ]
    held = engine.writer.is_held_elsewhere()
    return Status(engine.is_running or (says_running and held), streams, queries, batches)


def query_statuses(view: View) -> list[QueryStatus]:
    return [QueryStatus(*row[:8]) for row in query_rows(view)]
