"""How many distinct values m rows have, from a sample of n: the curve behind every count of cells.

    m ≤ n   rarefaction: E[D_m] = D − Σ C(n − f, m)/C(n, m) over the frequencies f in the sample;
            unbiased (Hurlbert 1971)
    m > n   D + f₀·(1 − (1 − f₁/(n·f₀ + f₁))^(m−n)), f₀ by Chao's estimate of what was not seen
            (Chao 1984; Colwell et al. 2012): a lower bound where the tail is long

Source: beyond Weave Share, which assumes one cell per fragment; §5.3 asks for the counts. A curve
rather than one number, because a pane of few rows cannot have many cells, and skewed values fill
slowly. Kept at powers of two with D(0) = 0, linear in between, so it stays concave: finer panes
never have fewer cells in all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

GRID = np.array([0.0, *(2.0**i for i in range(32))])


@dataclass(frozen=True, eq=False)
class Curve:
    """Distinct values among GRID rows."""

    values: np.ndarray

    def at(self, rows: float) -> float:
        return float(np.interp(rows, GRID, self.values))

    def times(self, factor: float) -> Curve:
        """With a further column of so many values that says nothing of the others."""
        if factor <= 1:
            return self
        return filling(np.maximum(self.values, 1) * factor)


ONE = Curve(np.minimum(GRID, 1.0))  # no columns: one cell


def filling(most: np.ndarray | float) -> Curve:
    """m rows that fall into so many cells evenly."""
    most = np.maximum(np.asarray(most, dtype=float), 1.0)
    return Curve(_concave(np.minimum(GRID, -most * np.expm1(-GRID / most))))


def measured(counts: Sequence[int] | np.ndarray) -> Curve:
    """From how often each value was seen in a sample."""
    counts = np.asarray(counts)
    seen, times = np.unique(counts[counts > 0], return_counts=True)
    total = int((seen * times).sum())
    if total == 0:
        return ONE
    found = [0.0]
    for rows in GRID[1:]:
        if rows <= total:
            found.append(_rarefied(seen, times, total, int(rows)))
        else:
            found.append(_extrapolated(seen, times, total, rows))
    return Curve(_concave(np.minimum(GRID, np.array(found))))


def _rarefied(seen: np.ndarray, times: np.ndarray, total: int, rows: int) -> float:
    logs = _log_factorials(total)
    fits = seen <= total - rows
    kept = seen[fits]
    chance = logs[total - kept] - logs[total - kept - rows] - logs[total] + logs[total - rows]
    return float(times.sum() - times[fits] @ np.exp(chance))


@lru_cache(maxsize=64)
def _log_factorials(most: int) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])


def _extrapolated(seen: np.ndarray, times: np.ndarray, total: int, rows: float) -> float:
    once = int(times[seen == 1].sum())
    twice = int(times[seen == 2].sum())
    if once == 0:
        return float(times.sum())
    share = (total - 1) / total
    unseen = share * (once**2 / (2 * twice) if twice else once * (once - 1) / 2)
    if unseen <= 0:
        return float(times.sum())
    rest = (rows - total) * math.log1p(-once / (total * unseen + once))
    return float(times.sum() - unseen * math.expm1(rest))


def _concave(values: np.ndarray) -> np.ndarray:
    """Never falling, and no slope above the one before: what rounding may have broken."""
    values = np.maximum.accumulate(values)
    slopes = np.minimum.accumulate(np.diff(values) / np.diff(GRID))
    return np.concatenate([[0.0], np.cumsum(slopes * np.diff(GRID))])
