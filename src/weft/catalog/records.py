"""Rows of the catalog as values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

from weft.logical.relations import Column, Kind, Relation, StreamDefinition, TableDefinition
from weft.logical.windows import EPOCH, MICROSECOND


def to_instant(micros: int | None) -> datetime | None:
    return None if micros is None else EPOCH + timedelta(microseconds=micros)


def to_micros(value: datetime | None) -> int | None:
    return None if value is None else (value - EPOCH) // MICROSECOND


FINISHED_ON_SPARK = "shared, finished on Spark"  # a strategy
RESULTS = (
    "results"  # the part of a stream's segments with the windows that eager classes have ready
)


@dataclass(frozen=True, slots=True)
class Segment:
    """One immutable Parquet file and what is known of it."""

    owner: str
    part: str
    path: str
    rows: int
    bytes: int
    tick: int
    min_time: int | None = None
    max_time: int | None = None
    evaluation: int = 0
    id: int = 0


def stream_owner(stream_id: int) -> str:
    return f"stream:{stream_id}"


@dataclass(frozen=True, slots=True)
class StreamRecord:
    id: int
    definition: StreamDefinition
    clock: int | None
    max_time: int | None
    batch_id: int
    rows: int
    late: int
    rejected: int
    pruned_rows: int
    pruned_before: int | None
    created_tick: int
    evaluation: int = 1  # of its shared queries: one for each batch and heartbeat

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def owner(self) -> str:
        return stream_owner(self.id)

    def relation(self) -> Relation:
        return self.definition.relation()


@dataclass(frozen=True, slots=True)
class TableRecord:
    id: int
    definition: TableDefinition
    changed_tick: int
    next_row: int

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def owner(self) -> str:
        return f"table:{self.id}"

    def relation(self) -> Relation:
        return self.definition.relation()


@dataclass(frozen=True, slots=True)
class Keep:
    """How long closed windows stay readable behind the clock, in microseconds; None: for ever.

    `floor`: what was forgotten when that was altered stays forgotten, so that what is seen never
    depends on when files were cleaned.
    """

    span: int | None = None
    floor: int | None = None

    def forgotten(self, clock: int | None) -> int | None:
        moving = None if self.span is None or clock is None else clock - self.span
        return max((cut for cut in (self.floor, moving) if cut is not None), default=None)


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """A registered query and how far it is evaluated.

    `order` says how its answer is sorted: pairs of stored column and descending, nulls first.
    """

    id: int
    name: str
    statement: str
    columns: tuple[Column, ...]
    order: tuple[tuple[str, bool, bool], ...]
    is_per_window: bool
    is_append_only: bool
    window: str  # how its windows are described
    shows_window: bool  # window_start and window_end stand first in the answer
    strategy: str
    reads: tuple[str, ...]
    horizons: dict[str, int] = field(hash=False)
    created_tick: int
    clock: int | None
    evaluated_tick: int
    frontier: int | None
    evaluation: int
    rows_out: int
    last_ms: int
    newest_end: int | None
    error: str | None
    class_id: int | None = None  # a shared query: what it shares, and how it is finished
    shared: str | None = None
    keep: Keep = Keep()

    @property
    def owner(self) -> str:
        return f"query:{self.id}"

    @property
    def forgotten(self) -> int | None:
        """Windows that end at or before this instant are forgotten; None: none are."""
        return self.keep.forgotten(self.clock)

    @property
    def is_stored(self) -> bool:
        """Whether its answer is kept as segments; else it is assembled from partials when read."""
        return self.class_id is None or self.strategy == FINISHED_ON_SPARK

    def output_columns(self) -> tuple[Column, ...]:
        """The columns of the answer, as the user sees them."""
        if not self.shows_window:
            return self.columns
        return (
            Column("window_start", "TIMESTAMP"),
            Column("window_end", "TIMESTAMP"),
            *self.columns,
        )

    def relation(self) -> Relation:
        time = "window_time" if self.is_per_window else None
        return Relation(
            Kind.QUERY, self.name, self.output_columns(), time, is_per_window=self.is_per_window
        )


def dump_stream(definition: StreamDefinition) -> str:
    return json.dumps(
        {
            "name": definition.name,
            "columns": [[c.name, c.type] for c in definition.columns],
            "time_column": definition.time_column,
            "delay": definition.delay // MICROSECOND,
            "retain": None if definition.retain is None else definition.retain // MICROSECOND,
            "options": dict(definition.options),
        }
    )


@lru_cache(maxsize=256)
def load_stream(text: str) -> StreamDefinition:
    raw = json.loads(text)
    return StreamDefinition(
        raw["name"],
        tuple(Column(*pair) for pair in raw["columns"]),
        raw["time_column"],
        timedelta(microseconds=raw["delay"]),
        None if raw["retain"] is None else timedelta(microseconds=raw["retain"]),
        raw["options"],
    )


def dump_table(definition: TableDefinition) -> str:
    return json.dumps(
        {
            "name": definition.name,
            "columns": [[c.name, c.type] for c in definition.columns],
            "retroactive": definition.is_retroactive,
            "options": dict(definition.options),
        }
    )


@lru_cache(maxsize=256)
def load_table(text: str) -> TableDefinition:
    raw = json.loads(text)
    columns = tuple(Column(*pair) for pair in raw["columns"])
    return TableDefinition(raw["name"], columns, raw["retroactive"], raw["options"])


def dump_answer(record: QueryRecord) -> str:
    return json.dumps(
        {
            "columns": [[c.name, c.type] for c in record.columns],
            "order": record.order,
            "per_window": record.is_per_window,
            "append_only": record.is_append_only,
            "shows_window": record.shows_window,
            "window": record.window,
            **({} if record.keep == Keep() else {"keep": [record.keep.span, record.keep.floor]}),
        }
    )


def load_keep(answer: str) -> Keep:
    """How long windows are kept, out of what `dump_answer` wrote."""
    return Keep(*json.loads(answer).get("keep", ())) if '"keep": [' in answer else Keep()
