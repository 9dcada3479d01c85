"""What a name stands for: streams, tables and answers, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

ARRIVAL = "arrival_time"  # the time column of a stream that declares no watermark
WINDOW_START, WINDOW_END = "window_start", "window_end"
WINDOW_TIME = (
    "window_time"  # event time of a window answer's rows: window_end less 1 µs, as in Flink
)


class Kind(StrEnum):
    STREAM = "stream"
    TABLE = "table"
    QUERY = "query"


class Emit(StrEnum):
    ON_CLOSE = "EMIT ON WINDOW CLOSE"
    CHANGES = "EMIT CHANGES"


@dataclass(frozen=True, slots=True)
class Column:
    """A column and its Spark SQL type, as Spark writes it in DDL: DOUBLE, ARRAY<STRING>, ..."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Relation:
    """What the binder needs to know of a registered name."""

    kind: Kind
    name: str
    columns: tuple[Column, ...]
    time_column: str | None = None  # event time of a stream; ARRIVAL without a watermark
    is_retroactive: bool = False  # tables only
    is_per_window: bool = False  # queries only: its answer is a stream of closed windows

    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True)
class StreamDefinition:
    """A stream as declared. `delay` is how far the watermark stays behind the largest event time."""

    name: str
    columns: tuple[Column, ...]
    time_column: str | None  # None: arrival time
    delay: timedelta = timedelta(0)
    retain: timedelta | None = None  # None: keep everything
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def source(self) -> str:
        return self.options.get("source", "push").lower()

    def relation(self) -> Relation:
        return Relation(Kind.STREAM, self.name, self.columns, self.time_column or ARRIVAL)


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table as declared; non-retroactive unless said (UPA §4.1)."""

    name: str
    columns: tuple[Column, ...]
    is_retroactive: bool = False
    options: Mapping[str, str] = field(default_factory=dict)

    def relation(self) -> Relation:
        return Relation(Kind.TABLE, self.name, self.columns, is_retroactive=self.is_retroactive)
