"""Windows: which rows of a stream a query sees, as values.

Two families. A *per-window* query emits one answer for each window when the clock reaches its
end (hopping, cumulating, session, last-n-rows with a slide). A *standing* query has one answer,
the rows valid now (sliding, last n rows, landmark, snapshot, whole stream).

Source: PSoup §1.1 (snapshot, landmark, sliding), UPA §2.1 (sliding: a row is valid in
[ts, ts + length)), Weave Share §3 (hopping).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from weft.errors import InvalidWindow

ZERO = timedelta(0)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class WholeStream:
    """Every row up to the clock: ts ≤ τ. Also what a table or an answer has."""

    is_per_window = False

    def __str__(self) -> str:
        return "whole stream"


@dataclass(frozen=True, slots=True)
class Hopping:
    """Rows with ts in [k·slide + offset, k·slide + offset + length), for every integer k."""

    length: timedelta
    slide: timedelta
    offset: timedelta = ZERO
    is_per_window = True

    def __post_init__(self) -> None:
        require_positive("RANGE", self.length)
        require_positive("SLIDE", self.slide)
        if self.slide > self.length:
            raise InvalidWindow(
                f"slide {duration(self.slide)} is longer than the window of {duration(self.length)}",
                detail="rows between two windows would belong to none",
                hint="use a slide no longer than the window",
            )

    def __str__(self) -> str:
        shift = f" offset {duration(self.offset)}" if self.offset else ""
        if self.length == self.slide:
            return f"tumbling {duration(self.length)}{shift}"
        return f"hopping {duration(self.length)} every {duration(self.slide)}{shift}"


@dataclass(frozen=True, slots=True)
class Cumulating:
    """Rows in [k·size, k·size + j·step), for j = 1 … size/step: a landmark that restarts."""

    size: timedelta
    step: timedelta
    is_per_window = True

    def __post_init__(self) -> None:
        require_positive("size", self.size)
        require_positive("step", self.step)
        if self.size % self.step:
            raise InvalidWindow(
                f"step {duration(self.step)} does not divide the size {duration(self.size)}",
                hint="CUMULATE(TABLE t, DESCRIPTOR(ts), step, size) needs a size that is a multiple of the step",
            )

    def __str__(self) -> str:
        return f"cumulating up to {duration(self.size)} in steps of {duration(self.step)}"


@dataclass(frozen=True, slots=True)
class Session:
    """Rows of one group that follow each other by less than the gap: [first ts, last ts + gap)."""

    gap: timedelta
    keys: tuple[str, ...] = field(
        default=(), compare=False
    )  # Flink's PARTITION BY, to be grouped by
    is_per_window = True

    def __post_init__(self) -> None:
        require_positive("session gap", self.gap)

    def __str__(self) -> str:
        return f"session with a gap of {duration(self.gap)}"


@dataclass(frozen=True, slots=True)
class LastRows:
    """The last `count` rows in event-time order, ties by arrival; with a slide, one window every
    `slide` rows: window k ends with row k·slide and holds at most `count` rows."""

    count: int
    slide: int | None = None

    def __post_init__(self) -> None:
        if self.count <= 0:
            raise InvalidWindow(
                f"a window of {self.count} rows holds nothing", hint="use a positive number of rows"
            )
        if self.slide is not None and not 0 < self.slide <= self.count:
            raise InvalidWindow(
                f"slide {self.slide} does not fit a window of {self.count} rows",
                hint="use a slide between 1 and the number of rows",
            )

    @property
    def is_per_window(self) -> bool:
        return self.slide is not None

    def __str__(self) -> str:
        every = f" every {self.slide} rows" if self.slide else ""
        return f"last {self.count} rows{every}"


@dataclass(frozen=True, slots=True)
class Sliding:
    """At time τ, the rows with τ − lag − length < ts ≤ τ − lag (lag is PSoup's END NOW − lag)."""

    length: timedelta
    lag: timedelta = ZERO
    is_per_window = False

    def __post_init__(self) -> None:
        require_positive("RANGE", self.length)
        if self.lag < ZERO:
            raise InvalidWindow(
                "the window ends in the future", hint="write END NOW, or END NOW - <interval>"
            )

    def __str__(self) -> str:
        lag = f", {duration(self.lag)} ago" if self.lag else ""
        return f"sliding {duration(self.length)}{lag}"


@dataclass(frozen=True, slots=True)
class Landmark:
    """At time τ, the rows with since ≤ ts ≤ τ."""

    since: datetime
    is_per_window = False

    def __str__(self) -> str:
        return f"since {instant(self.since)}"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The rows with start ≤ ts < end (and ts ≤ τ while the clock is still inside)."""

    start: datetime
    end: datetime
    is_per_window = False

    def __post_init__(self) -> None:
        if self.end <= self.start:
            raise InvalidWindow(
                f"the window ends at {instant(self.end)}, not after its start {instant(self.start)}",
                hint="write [FROM '<earlier>' TO '<later>']",
            )

    def __str__(self) -> str:
        return f"from {instant(self.start)} to {instant(self.end)}"


Window = WholeStream | Hopping | Cumulating | Session | LastRows | Sliding | Landmark | Snapshot


def bounds(window: Window, now: int) -> tuple[int | None, int]:
    """The closed range of event times, in µs since the epoch, that a standing window holds at τ = now."""
    if isinstance(window, Sliding):
        end = now - microseconds(window.lag)
        return end - microseconds(window.length) + 1, end
    if isinstance(window, Landmark):
        return (window.since - EPOCH) // MICROSECOND, now
    if isinstance(window, Snapshot):
        last = (window.end - EPOCH) // MICROSECOND - 1
        return (window.start - EPOCH) // MICROSECOND, min(now, last)
    return None, now


def require_positive(what: str, value: timedelta) -> None:
    if value <= ZERO:
        raise InvalidWindow(
            f"{what} of {duration(value)} is not positive", hint="use an interval longer than zero"
        )


UNITS = (
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("µs", 1),
)


def microseconds(value: timedelta) -> int:
    return value // timedelta(microseconds=1)


def duration(value: timedelta) -> str:
    """A duration as people write it: 1 h 30 min."""
    rest = abs(microseconds(value))
    parts = []
    for unit, size in UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
    sign = "-" if value < ZERO else ""
    return sign + (" ".join(parts) or "0 s")


def instant(value: datetime) -> str:
    """An instant in UTC, ISO 8601, as short as it can be said exactly."""
    text = value.strftime("%Y-%m-%dT%H:%M:%S")
    if value.microsecond:
        text += f".{value.microsecond:06d}".rstrip("0")
    return text + "Z"
