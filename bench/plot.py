"""A chart in characters: each series is a set of points with a marker of its own.

A chart library would be a heavy dependency for a few curves, and a terminal is where benchmarks run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

MARKERS = "●▲■◆○△□◇"
COLOURS = ("cyan", "yellow", "green", "magenta", "red", "blue", "white", "bright_black")

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Axis:
    """Values between low and high, laid out over `cells` characters, on a log scale or not."""

    low: float
    high: float
    cells: int
    is_log: bool

    def place(self, value: float) -> int:
        low, high, at = (self._scale(v) for v in (self.low, self.high, value))
        share = (at - low) / (high - low) if high > low else 0.5
        return min(self.cells - 1, max(0, round(share * (self.cells - 1))))

    def value(self, cell: int) -> float:
        low, high = self._scale(self.low), self._scale(self.high)
        at = low + (high - low) * cell / max(1, self.cells - 1)
        return 10**at if self.is_log else at

    def _scale(self, value: float) -> float:
        return math.log10(value) if self.is_log else value


def axis_of(values: Sequence[float], cells: int, is_log: bool) -> Axis:
    """The axis that holds the values; a linear one begins at zero."""
    low = min(values) if is_log else min(0.0, *values, 0.0)
    return Axis(low, max(values), cells, is_log)


def chart(
    title: str,
    series: dict[str, list[Point]],
    *,
    x: str,
    y: str,
    log_x: bool = True,
    log_y: bool = True,
    width: int = 64,
    height: int = 14,
) -> Text:
    """Draw the series. Points that a log scale cannot hold are left out."""
    drawn = {name: _fitting(points, log_x, log_y) for name, points in series.items()}
    every = [point for points in drawn.values() for point in points]
    if not every:
        return Text(f"{title}: nothing to draw\n")
    across = axis_of([p[0] for p in every], width, log_x)
    up = axis_of([p[1] for p in every], height, log_y)
    grid = [[(" ", "")] * width for _ in range(height)]
    for i, points in enumerate(drawn.values()):
        mark = (MARKERS[i % len(MARKERS)], COLOURS[i % len(COLOURS)])
        for px, py in points:
            grid[height - 1 - up.place(py)][across.place(px)] = mark
    return _assemble(title, grid, across, up, list(drawn), x, y)


def _fitting(points: list[Point], log_x: bool, log_y: bool) -> list[Point]:
    return [(x, y) for x, y in points if (x > 0 or not log_x) and (y > 0 or not log_y)]


def _assemble(
    title: str, grid: list, across: Axis, up: Axis, names: list[str], x: str, y: str
) -> Text:
    text = Text(f"{title}\n", style="bold")
    text.append(f"{y}\n", style="dim")
    height = len(grid)
    for i, line in enumerate(grid):
        label = short(up.value(height - 1 - i)) if i % 4 == 0 or i == height - 1 else ""
        text.append(f"{label:>8} ┤" if label else f"{'':>8} │", style="dim")
        for character, colour in line:
            text.append(character, style=colour)
        text.append("\n")
    ends = f"{short(across.low)}{short(across.high):>{across.cells - len(short(across.low))}}"
    text.append(f"{'':>8} └{'─' * across.cells}\n{'':>10}{ends}  {x}\n", style="dim")
    for i, name in enumerate(names):
        text.append(f"{'':>10}{MARKERS[i % len(MARKERS)]} ", style=COLOURS[i % len(COLOURS)])
        text.append(f"{name}\n", style="default")
    return text


def short(value: float) -> str:
    """Three digits that matter: 0.0123, 4.56, 78.9, 12k, 3.4M."""
    size = abs(value)
    for bound, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= bound:
            scaled = value / (1e3 if unit == "k" else bound)
            return f"{scaled:.3g}{unit}"
    return f"{value:.3g}" if size < 1000 else f"{value:.0f}"
