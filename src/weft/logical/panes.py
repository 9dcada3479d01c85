"""Panes and the pyramid above them: how a window is covered by few partials.

Why: a row is folded once per pane, not once per overlapping window, and a window of r panes is
merged from O(log r) partials instead of r.
Source: Weave Share §3.2 (paired windows share panes); the pyramid is PSoup §6's ranked tree.
Differs: Weave Share cuts panes only at the edges of its windows; here they are even, their width the
greatest common divisor of all slides, lengths and offsets, so that a pane's number is arithmetic
and the levels above it need no list of edges.
Sound because every window starts and ends on a pane edge, and every statistic's merge is
associative and commutative: any exact cover by nodes gives the window's statistic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from math import gcd

import numpy as np

from weft.logical.windows import Cumulating, Hopping, Sliding, Window, microseconds

Paned = Hopping | Cumulating | Sliding
FEWEST_PANES = 32  # in a window that slides
MS, S, H = 1_000, 1_000_000, 3_600_000_000
ROUND = (  # each divides the next: 1 µs … 1 s … 1 h … 28 days
    1, 5, 20, 100, 500, MS, 5 * MS, 20 * MS, 100 * MS, 500 * MS,
    S, 5 * S, 15 * S, 60 * S, 300 * S, 900 * S, H, 4 * H, 12 * H, 24 * H, 168 * H, 672 * H,
)  # fmt: skip
RADIX = 4  # children per node: half the levels of a binary pyramid for half as many reads again


@dataclass(frozen=True, slots=True)
class Panes:
    """Pane p holds event times in [p·width + offset, (p + 1)·width + offset), in microseconds."""

    width: int
    offset: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.offset < self.width:
            raise ValueError(f"offset {self.offset} is not within a pane of {self.width} µs")

    def number(self, micros: int) -> int:
        return (micros - self.offset) // self.width

    def start(self, number: int) -> int:
        return number * self.width + self.offset

    def fits(self, window: Paned) -> bool:
        """Whether every edge of the window is an edge of a pane."""
        return joined(self, panes_of(window)) == self


@lru_cache(maxsize=1 << 14)
def panes_of(window: Paned) -> Panes:
    """The widest panes that fit one window; of one that slides, those that its middle is made of."""
    window = hopping_of(window)
    if isinstance(window, Cumulating):
        return Panes(microseconds(window.step))
    width = gcd(microseconds(window.slide), microseconds(window.length))
    return Panes(width, microseconds(window.offset) % width)


def joined(one: Panes, *others: Panes) -> Panes:
    """The widest panes that fit whatever any of them fits."""
    apart = (other.offset - one.offset for other in others)
    width = gcd(one.width, *(other.width for other in others), *apart)
    return Panes(width, one.offset % width)


def has_panes(window: Window) -> bool:
    return isinstance(window, Paned)


def hopping_of(window: Paned) -> Hopping | Cumulating:
    """A window that slides, as the hopping one that is folded and covered alike.

    It may start anywhere, so its panes are free: of a round width, so that queries that ask for
    other lengths share them, and some 32 to 160 in a window, so that few rows lie beside them.
    """
    if not isinstance(window, Sliding):
        return window
    length = microseconds(window.length)
    width = max((w for w in ROUND if w * FEWEST_PANES <= length), default=1)
    pane = timedelta(microseconds=width)
    return Hopping(length // width * pane, pane)


@lru_cache(maxsize=1 << 14)
def longest(window: Paned) -> int:
    """The length of the longest window, in microseconds."""
    return microseconds(window.size if isinstance(window, Cumulating) else window.length)


def pyramid(panes: Panes, length: int, radix: int = RADIX) -> tuple[int, ...]:
    """Widths of the levels, in panes, for windows up to `length` microseconds."""
    widths, panes_in_window = [1], length // panes.width
    while widths[-1] * radix <= panes_in_window:
        widths.append(widths[-1] * radix)
    return tuple(widths)


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Windows by their edges, as arrays of microseconds."""

    starts: np.ndarray
    ends: np.ndarray

    def __len__(self) -> int:
        return len(self.ends)

    def whole_since(self, horizons: Iterable[int]) -> Windows:
        """Without those that began before the latest horizon: only whole windows count."""
        horizon = max(horizons, default=None)
        if horizon is None:
            return self
        kept = self.starts >= horizon
        return Windows(self.starts[kept], self.ends[kept])


def windows_between(
    window: Hopping | Cumulating, after: int | None, upto: int | None, earliest: int, latest: int
) -> Windows:
    """The windows that end in (after, upto] and overlap the data in [earliest, latest].

    None means no bound; the data bounds them then.
    """
    if isinstance(window, Cumulating):
        return _cumulating(window, after, upto, earliest, latest)
    length, slide = microseconds(window.length), microseconds(window.slide)
    offset = microseconds(window.offset) % slide
    first_end = max(earliest + 1, after + 1 if after is not None else earliest + 1)
    last_end = latest + length if upto is None else min(upto, latest + length)
    first = -((offset + length - first_end) // slide)  # ⌈(first_end − length − offset) / slide⌉
    last = (last_end - length - offset) // slide
    starts = np.arange(first, last + 1, dtype=np.int64) * slide + offset
    return Windows(starts, starts + length)


def _cumulating(
    window: Cumulating, after: int | None, upto: int | None, earliest: int, latest: int
) -> Windows:
    size, step = microseconds(window.size), microseconds(window.step)
    first_end = max(earliest + 1, after + 1 if after is not None else earliest + 1)
    last_end = (latest // size + 1) * size  # later steps of the last row's cycle
    if upto is not None:
        last_end = min(upto, last_end)
    first, last = -(-first_end // step), last_end // step
    ends = np.arange(first, last + 1, dtype=np.int64) * step
    return Windows((ends - 1) // size * size, ends)


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """Rows (window's index, level, first pane): together they hold each pane of the window once."""

    window: np.ndarray
    level: np.ndarray
    pane: np.ndarray


def cover(windows: Windows, panes: Panes, widths: tuple[int, ...]) -> Cover:
    """Cover every window by the fewest nodes of the pyramid, all windows at once.

    At each level the ragged ends are taken off, up to the next level's edges; what remains in the
    middle is covered one level higher.
    """
    low = (windows.starts - panes.offset) // panes.width
    high = (windows.ends - panes.offset) // panes.width
    index = np.arange(len(windows), dtype=np.int64)
    found: list[tuple[np.ndarray, int, np.ndarray]] = []
    for level, width in enumerate(widths):
        if level + 1 == len(widths):
            found += _runs(index, low, high, level, width)
            break
        above = widths[level + 1]
        left = np.minimum(-(-low // above) * above, high)
        right = np.maximum(high // above * above, left)
        found += _runs(index, low, left, level, width)
        found += _runs(index, right, high, level, width)
        low, high = left, right
    if not found:
        nothing = np.zeros(0, np.int64)
        return Cover(nothing, nothing.astype(np.int32), nothing)
    owners, levels, numbers = zip(*found, strict=True)
    level = np.concatenate(
        [np.full(len(o), at, np.int32) for o, at in zip(owners, levels, strict=True)]
    )
    return Cover(np.concatenate(owners), level, np.concatenate(numbers))


def _runs(
    index: np.ndarray, low: np.ndarray, high: np.ndarray, level: int, width: int
) -> list[tuple[np.ndarray, int, np.ndarray]]:
    """Every node of one level between low and high (in panes, both multiples of the width)."""
    counts = (high - low) // width
    total = int(counts.sum())
    if total == 0:
        return []
    owner = np.repeat(index, counts)
    position = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    return [(owner, level, np.repeat(low, counts) + position * width)]
