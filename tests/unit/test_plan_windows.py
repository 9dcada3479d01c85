"""Windows are values that cannot be built wrong, and read as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from weft.errors import InvalidWindow
from weft.logical.windows import (
    Cumulating,
    Hopping,
    Landmark,
    LastRows,
    Session,
    Sliding,
    Snapshot,
    WholeStream,
    bounds,
    duration,
    instant,
)

HOUR, MINUTE, ZERO = timedelta(hours=1), timedelta(minutes=1), timedelta(0)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Hopping(MINUTE, HOUR),
        lambda: Hopping(ZERO, ZERO),
        lambda: Hopping(HOUR, ZERO),
        lambda: Hopping(-HOUR, -HOUR),
        lambda: Cumulating(HOUR, timedelta(minutes=7)),
        lambda: Cumulating(MINUTE, HOUR),
        lambda: Cumulating(HOUR, ZERO),
        lambda: Session(ZERO),
        lambda: LastRows(0),
        lambda: LastRows(-1),
        lambda: LastRows(2, 3),
        lambda: LastRows(2, 0),
        lambda: Sliding(ZERO),
        lambda: Sliding(HOUR, -MINUTE),
        lambda: Snapshot(NOON, NOON),
        lambda: Snapshot(NOON, NOON - HOUR),
    ],
)
def test_a_window_that_holds_nothing_is_refused(build) -> None:
    with pytest.raises(InvalidWindow) as refused:
        build()
    assert refused.value.hint


@pytest.mark.parametrize(
    ("window", "text", "is_per_window"),
    [
        (WholeStream(), "whole stream", False),
        (Hopping(HOUR, HOUR), "tumbling 1 h", True),
        (Hopping(HOUR, 10 * MINUTE), "hopping 1 h every 10 min", True),
        (Hopping(HOUR, HOUR, MINUTE), "tumbling 1 h offset 1 min", True),
        (Cumulating(HOUR, 10 * MINUTE), "cumulating up to 1 h in steps of 10 min", True),
        (Session(5 * MINUTE), "session with a gap of 5 min", True),
        (LastRows(10), "last 10 rows", False),
        (LastRows(10, 2), "last 10 rows every 2 rows", True),
        (Sliding(HOUR), "sliding 1 h", False),
        (Sliding(HOUR, MINUTE), "sliding 1 h, 1 min ago", False),
        (Landmark(NOON), "since 2026-01-01T12:00:00Z", False),
        (Snapshot(NOON, NOON + HOUR), "from 2026-01-01T12:00:00Z to 2026-01-01T13:00:00Z", False),
    ],
)
def test_windows_say_what_they_are(window, text, is_per_window) -> None:
    assert str(window) == text
    assert window.is_per_window is is_per_window


def test_bounds_are_closed_ranges_of_microseconds() -> None:
    now = 10_000_000
    assert bounds(WholeStream(), now) == (None, now)
    assert bounds(Sliding(timedelta(seconds=2)), now) == (8_000_001, now)
    assert bounds(Sliding(timedelta(seconds=2), timedelta(seconds=1)), now) == (
        7_000_001,
        9_000_000,
    )
    since = datetime(1970, 1, 1, 0, 0, 4, tzinfo=UTC)
    assert bounds(Landmark(since), now) == (4_000_000, now)
    assert bounds(Snapshot(since, since + timedelta(seconds=1)), now) == (4_000_000, 4_999_999)
    assert bounds(Snapshot(since, since + HOUR), now) == (4_000_000, now)


def test_durations_and_instants_are_exact() -> None:
    assert duration(timedelta(hours=1, minutes=30)) == "1 h 30 min"
    assert duration(timedelta(microseconds=1)) == "1 µs"
    assert duration(ZERO) == "0 s"
    assert duration(-MINUTE) == "-1 min"
    assert instant(NOON + timedelta(microseconds=1500)) == "2026-01-01T12:00:00.0015Z"
