"""Draw an Arrow table for a person to read.

Numbers are right-aligned, NULL is dim, timestamps are as short as their column allows. Long
answers are cut to a number of rows and wide ones to the columns that fit, and both say so.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from weft.delivery.formats import NULL, printable, show_time, show_value

if TYPE_CHECKING:
    import pyarrow as pa

WIDEST, NARROWEST = 60, 16  # how far a long text is cut: always, and where space is short
GAP = Text("  ")  # between two columns
NULL_CELL = Text(NULL, style="dim italic")


def draw(
    console: Console, table: pa.Table, *, limit: int | None = None, expanded: bool = False
) -> None:
    """Print a table with at most `limit` rows, and a line that says how many there are."""
    shown = table if limit is None else table.slice(0, limit)
    columns = [Column(name, shown.column(i)) for i, name in enumerate(table.column_names)]
    if expanded and shown.num_rows:
        _draw_expanded(console, columns, shown.num_rows)
        hidden: list[Column] = []
    else:
        columns, hidden = _fit(columns, console.width if console.is_terminal else None)
        _draw_grid(console, columns, shown.num_rows, has_hidden=bool(hidden))
    footer = Text(_footer(table.num_rows, shown.num_rows, hidden), style="dim")
    console.print(footer, soft_wrap=True)


def python_values(values: pa.ChunkedArray) -> list[Any]:
    """A column as Python values. Instants by arithmetic: pyarrow would import pandas for them."""
    import pyarrow as pa

    if not pa.types.is_timestamp(values.type):
        return values.to_pylist()
    zone = UTC if values.type.tz else None
    start = datetime(1970, 1, 1, tzinfo=zone)
    micros = values.cast(pa.timestamp("us", tz=values.type.tz), safe=False).cast(pa.int64())
    return [None if m is None else start + timedelta(microseconds=m) for m in micros.to_pylist()]


class Column:
    """A column's cells as text, and how wide they are."""

    def __init__(self, name: str, values: pa.ChunkedArray) -> None:
        self.name = printable(name)
        cells = python_values(values)
        show = _formatter(cells)
        self.cells = [NULL_CELL if cell is None else Text(show(cell)) for cell in cells]
        self.width = max([cell_len(self.name), *(cell.cell_len for cell in self.cells)])
        self.is_right = _is_number(values.type)
        self.narrowest = (
            max(NARROWEST, cell_len(self.name)) if _is_text(values.type) else self.width
        )

    def shrink(self, by: int) -> int:
        """Give up to so many characters away, where cutting does no harm. → how many."""
        given = max(0, min(by, self.width - self.narrowest))
        self.width -= given
        return given

    def pad(self, cell: Text) -> Text:
        if cell.cell_len > self.width:
            cell = cell.copy()
            cell.truncate(self.width, overflow="ellipsis")
        space = Text(" " * (self.width - cell.cell_len))
        return space + cell if self.is_right else cell + space


def _draw_grid(console: Console, columns: list[Column], rows: int, *, has_hidden: bool) -> None:
    """Header, rule and rows. Not a rich Table: this one never wraps, and is quick on long answers."""
    middle = (len(columns) + 1) // 2 if has_hidden else len(columns)
    ellipsis = [Text("…", style="dim")] if has_hidden else []

    def line(cells: list[Text]) -> Text:
        padded = [column.pad(cell) for column, cell in zip(columns, cells, strict=True)]
        joined = GAP.join(padded[:middle] + ellipsis + padded[middle:])
        joined.rstrip()
        return joined

    header = line([Text(column.name, style="bold cyan") for column in columns])
    width = sum(c.width for c in columns) + len(GAP) * (len(columns) - 1)
    _put(console, header)
    _put(console, Text("─" * (width + (1 + len(GAP)) * has_hidden), style="dim"))
    for row in range(rows):
        _put(console, line([column.cells[row] for column in columns]))


def _put(console: Console, line: Text) -> None:
    console.print(line, no_wrap=True, overflow="ignore", crop=False)


def _draw_expanded(console: Console, columns: list[Column], rows: int) -> None:
    """One line per value, as psql's \\x does."""
    width = max(cell_len(column.name) for column in columns)
    for row in range(rows):
        console.print(Text(f"─[ row {row + 1} ]".ljust(width + 12, "─"), style="dim"))
        for column in columns:
            name = column.name + " " * (width - cell_len(column.name))
            console.print(Text.assemble((name, "bold cyan"), "  ", column.cells[row]))


def _fit(columns: list[Column], width: int | None) -> tuple[list[Column], list[Column]]:
    """Narrow the longest texts; then the columns that fit, from both ends inwards, and the rest."""
    gap = len(GAP)
    if width is None:
        return columns, []
    excess = sum(c.width + gap for c in columns) - gap - width
    for column in sorted(columns, key=lambda c: c.width, reverse=True):
        excess -= column.shrink(max(excess, column.width - WIDEST))
    if excess <= 0:
        return columns, []
    room = width - 1  # the "…" between the two ends
    first, last = 0, len(columns)
    while first < last:
        is_front = first <= len(columns) - last
        candidate = columns[first] if is_front else columns[last - 1]
        room -= candidate.width + gap
        if room < 0 and first:
            break
        first, last = (first + 1, last) if is_front else (first, last - 1)
    return columns[:first] + columns[last:], columns[first:last]


def _footer(total: int, shown: int, hidden: list[Column]) -> str:
    rows = f"{total:,} row" + ("" if total == 1 else "s")
    parts = [rows if shown == total else f"{rows}, the first {shown:,} shown"]
    if hidden:
        names = ", ".join(column.name for column in hidden)
        parts.append(f"{len(hidden)} columns do not fit ({names}): use \\x or --format csv")
    return f"({'; '.join(parts)})"


def _is_number(kind: pa.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_nested(kind))


def _formatter(cells: list[Any]) -> Callable[[Any], str]:
    """How to show the cells of one column: timestamps agree on their precision."""
    times = [cell for cell in cells if isinstance(cell, datetime)]
    if not times:
        return show_value
    if any(moment.microsecond % 1000 for moment in times):
        return lambda value: show_time(value, "microseconds")
    if any(moment.microsecond for moment in times):
        return lambda value: show_time(value, "milliseconds")
    return lambda value: show_time(value, "seconds")
