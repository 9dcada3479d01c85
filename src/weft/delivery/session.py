"""Carry out statements and meta-commands and show what comes back.

The same session serves `weft sql -c`, `weft sql -f`, a pipe and the interactive shell, so a script
may use meta-commands, and positions in errors are those of the whole text.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from weft.delivery.formats import to_csv, to_json
from weft.delivery.problems import draw_problem
from weft.delivery.split import Piece, split
from weft.delivery.tables import draw
from weft.delivery.words import KEYWORDS
from weft.errors import WeftError

if TYPE_CHECKING:
    from weft.delivery.api import Database

ROWS_ON_SCREEN = 100


class Format(StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"


@dataclass
class Session:
    """Where results go and how they look. `limit` None shows every row."""

    db: Database
    out: Console = field(default_factory=Console)
    err: Console = field(default_factory=lambda: Console(stderr=True))
    format: Format = Format.TABLE
    limit: int | None = None
    is_expanded: bool = False
    is_timed: bool = False
    is_over: bool = False  # after \q
    last_statement: str = ""

    def attempt(self, text: str) -> bool:
        """Execute a text; draw the error and give False if part of it is refused."""
        try:
            self.execute(text)
        except WeftError as error:
            if is_debugging():
                raise
            draw_problem(self.err, error, text)
            return False
        return True

    def execute(self, text: str) -> None:
        for piece in split(text):
            if self.is_over:
                return
            try:
                self._execute_piece(piece)
            except WeftError as error:
                raise piece.place(error)  # noqa: B904 (the same error, moved)

    def _execute_piece(self, piece: Piece) -> None:
        if piece.is_meta:
            from weft.delivery.meta import execute_meta

            execute_meta(self, piece.text)
            return
        self.last_statement = piece.text
        self.execute_sql(piece.text)

    def execute_sql(self, statement: str) -> None:
        """Carry out one statement and show its result."""
        with self.timed():
            with patience(self.err):
                result = self.db.sql(statement)
            self.show(statement, result)

    def show(self, statement: str, result: Any) -> None:
        """Show one result: a table, a plan, or a line that says what was done."""
        if result is None or not hasattr(result, "column_names"):
            self.note(tag(statement, getattr(result, "name", None)))
        elif self.format is Format.CSV:
            self.out.out(to_csv(result), highlight=False)
        elif self.format is Format.JSON:
            self.out.out(to_json(result), highlight=False)
        elif result.column_names == ["plan"]:
            for line in result.column(0).to_pylist():
                self.out.print(Text(line), soft_wrap=True)
        else:
            draw(self.out, result, limit=self.limit, expanded=self.is_expanded)

    def note(self, text: str) -> None:
        """Say something that is not data: away from stdout when a program reads it."""
        console = self.out if self.format is Format.TABLE else self.err
        console.print(f"[dim]{escape(text)}[/dim]", highlight=False, soft_wrap=True)

    @contextmanager
    def timed(self) -> Iterator[None]:
        started = time.perf_counter()
        yield
        if self.is_timed:
            self.note(f"Time: {(time.perf_counter() - started) * 1000:,.1f} ms")


@contextmanager
def patience(console: Console, after: float = 0.6) -> Iterator[None]:
    """Show on a terminal that work goes on, once it has gone on for a while (Spark may start)."""
    if not console.is_terminal:
        yield
        return
    status = console.status("working …")
    timer = threading.Timer(after, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def tag(statement: str, name: str | None = None) -> str:
    """What was done, as psql says it: the keywords that the statement starts with."""
    words = []
    for word in statement.split()[:6]:
        if word.upper() not in KEYWORDS:
            break
        words.append(word.upper())
    return " ".join(words[:5] + ([name] if name else [])) or "OK"


def is_debugging() -> bool:
    return os.environ.get("WEFT_DEBUG", "") not in ("", "0")
