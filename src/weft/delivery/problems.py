"""Draw an error for a person: the problem, the line of SQL with a caret under it, detail, hint.

error: column "prise" does not exist in stream "trades"
  2 | SELECT prise
    |        ^^^^^
  detail: its columns are sym, price, qty, ts
  hint:   did you mean "price"?
  [WEFT_UNKNOWN_COLUMN, line 2, column 8]
"""

from __future__ import annotations

import re

from rich.console import Console, Group
from rich.text import Text

from weft.delivery.formats import printable
from weft.errors import WeftError

TOKEN = re.compile(r"\w+|'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`|\S")
LONGEST_LINE = 160


def draw_problem(console: Console, error: WeftError, source: str | None = None) -> None:
    console.print(problem(error, source), soft_wrap=True)


def problem(error: WeftError, source: str | None = None) -> Group:
    """The error as Rich draws it; `source` is the whole text that its line and column point into."""
    lines = [Text.assemble(("error: ", "bold red"), (printable(error.problem), "bold"))]
    lines += _excerpt(source, error.line, error.column)
    if error.detail:
        lines.append(Text.assemble(("  detail: ", "dim"), _indented(error.detail)))
    if error.hint:
        lines.append(Text.assemble(("  hint:   ", "yellow"), (_indented(error.hint), "yellow")))
    place = f", line {error.line}, column {error.column}" if error.line is not None else ""
    lines.append(Text(f"  [{error.code}{place}]", style="dim"))
    return Group(*lines)


def _excerpt(source: str | None, line: int | None, column: int | None) -> list[Text]:
    rows = source.split("\n") if source else []
    if line is None or not 1 <= line <= len(rows):
        return []
    row = rows[line - 1].replace("\t", " ").rstrip()
    at = min(max((column or 1) - 1, 0), len(row))
    token = TOKEN.match(row, at)
    width = len(token.group()) if token else 1
    row, at = _shorten(row, at)
    number = str(line)
    return [
        Text.assemble(f"  {number} ", ("| ", "dim"), printable(row)),
        Text.assemble(
            f"  {' ' * len(number)} ", ("| ", "dim"), " " * at, ("^" * width, "bold red")
        ),
    ]


def _shorten(row: str, at: int) -> tuple[str, int]:
    """Keep the part of a very long line around the position."""
    if len(row) <= LONGEST_LINE:
        return row, at
    start = max(0, at - LONGEST_LINE // 2)
    head = "… " if start else ""
    tail = " …" if start + LONGEST_LINE < len(row) else ""
    return head + row[start : start + LONGEST_LINE] + tail, at - start + len(head)


def _indented(text: str) -> str:
    return "\n          ".join(printable(line) for line in text.split("\n"))


def draw_fault(console: Console, error: BaseException) -> None:
    """An error that is not one of ours: a fault in Weft or below it."""
    first = (str(error).strip().splitlines() or [""])[0]
    line = Text.assemble(
        ("error: ", "bold red"), (printable(f"{type(error).__name__}: {first}"), "bold")
    )
    console.print(line, soft_wrap=True)
    console.print(Text("  set WEFT_DEBUG=1 to see where it comes from", style="dim"))
