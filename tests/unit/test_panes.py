"""Panes, pyramids and covers: every window's panes exactly once, by few nodes."""

from datetime import timedelta
from math import log

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weft.logical.panes import (
    RADIX,
    Panes,
    Windows,
    cover,
    joined,
    longest,
    panes_of,
    pyramid,
    windows_between,
)
from weft.logical.windows import Cumulating, Hopping, microseconds

SECONDS = st.integers(1, 200).map(lambda s: timedelta(seconds=s))


@st.composite
def hopping(draw):
    slide = draw(SECONDS)
    length = slide + draw(st.integers(0, 300)) * timedelta(seconds=1)
    return Hopping(length, slide, draw(st.integers(-500, 500)) * timedelta(seconds=1))


@st.composite
def cumulating(draw):
    step = draw(SECONDS)
    return Cumulating(step * draw(st.integers(1, 20)), step)


WINDOWS = hopping() | cumulating()


def brute(window, earliest, latest):
    """Every window that holds an instant of [earliest, latest], by definition."""
    found = set()
    for second in range(earliest // 10**6, latest // 10**6 + 1):
        ts = second * 10**6
        if isinstance(window, Cumulating):
            size, step = microseconds(window.size), microseconds(window.step)
            base = ts // size * size
            found |= {(base, e) for e in range(base + step, base + size + 1, step) if ts < e}
        else:
            length, slide = microseconds(window.length), microseconds(window.slide)
            k = (ts - microseconds(window.offset)) // slide
            while k * slide + microseconds(window.offset) + length > ts:
                start = k * slide + microseconds(window.offset)
                found.add((start, start + length))
                k -= 1
    return found


@given(WINDOWS, st.integers(-300, 300), st.integers(0, 300))
def test_windows_between_lists_every_window_that_can_hold_a_row(window, first, span):
    earliest, latest = first * 10**6, (first + span) * 10**6
    found = windows_between(window, None, None, earliest, latest)
    listed = list(zip(found.starts.tolist(), found.ends.tolist(), strict=True))
    assert len(set(listed)) == len(listed)
    assert brute(window, earliest, latest) <= set(listed)


@given(WINDOWS, st.integers(-300, 300), st.integers(0, 300), st.integers(0, 300))
def test_after_and_upto_split_the_windows(window, first, span, cut):
    earliest, latest = first * 10**6, (first + span) * 10**6
    at = earliest + cut * 10**6
    whole = windows_between(window, None, None, earliest, latest).ends.tolist()
    before = windows_between(window, None, at, earliest, latest).ends.tolist()
    after = windows_between(window, at, None, earliest, latest).ends.tolist()
    assert before + after == whole
    assert all(end <= at for end in before)
    assert all(end > at for end in after)


@given(st.lists(WINDOWS, min_size=1, max_size=4), st.integers(0, 1000))
def test_a_cover_holds_each_pane_once(windows, first):
    panes = panes_of(windows[0])
    for window in windows[1:]:
        panes = joined(panes, panes_of(window))
    assert all(panes.fits(window) for window in windows)
    widths = pyramid(panes, max(longest(w) for w in windows))
    for window in windows:
        listed = windows_between(window, None, None, first * 10**6, (first + 100) * 10**6)
        found = cover(listed, panes, widths)
        for i in range(0, len(listed), max(1, len(listed) // 5)):
            mine = found.window == i
            numbers = []
            for level, pane in zip(found.level[mine], found.pane[mine], strict=True):
                width = widths[level]
                assert pane % width == 0
                numbers += range(pane, pane + width)
            low, high = panes.number(listed.starts[i]), panes.number(listed.ends[i])
            assert sorted(numbers) == list(range(low, high))
            count = high - low
            assert mine.sum() <= 2 * (RADIX - 1) * (log(count, RADIX) + 1) + RADIX


def test_a_tumbling_window_on_its_own_panes_is_one_node():
    window = Hopping(timedelta(minutes=1), timedelta(minutes=1))
    panes = panes_of(window)
    assert panes == Panes(60_000_000)
    assert pyramid(panes, longest(window)) == (1,)


def test_nothing_to_cover():
    empty = Windows(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert len(cover(empty, Panes(5), (1, 4)).pane) == 0
