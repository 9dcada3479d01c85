"""Cut typed text into statements and meta-commands, and keep where each one started.

Only quotes, comments and semicolons matter here; what a statement means is the parser's business.
A meta-command starts with a backslash and ends with its line, as in psql.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from weft.errors import WeftError

# Each alternative with an end also matches without it, at the end of the text: that is "open".
LEXEME = re.compile(
    r"""
      (?P<comment> --[^\n]* | /\*.*?(?:\*/|(?P<open_comment>\Z)) )
    | (?P<quoted> '(?:[^'\\]|\\.)*(?:'|(?P<open_single>\Z))
                | "(?:[^"\\]|\\.)*(?:"|(?P<open_double>\Z))
                | `[^`]*(?:`|(?P<open_tick>\Z)) )
    | (?P<semicolon> ; )
    | (?P<space> \s+ )
    | (?P<word> [^\s;'"`/-]+ | . )
    """,
    re.VERBOSE | re.DOTALL,
)
OPEN = ("open_comment", "open_single", "open_double", "open_tick")


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement or meta-command, and the place of its first character in the whole text."""

    text: str
    line: int = 1
    column: int = 1
    is_ended: bool = True  # by a semicolon, or by the end of a meta-command's line

    @property
    def is_meta(self) -> bool:
        return self.text.startswith("\\")

    def place(self, error: WeftError) -> WeftError:
        """Move an error's position from this piece to the whole text."""
        if error.line is not None:
            if error.line == 1 and error.column is not None:
                error.column += self.column - 1
            error.line += self.line - 1
        return error


def split(text: str) -> list[Piece]:
    """The pieces of a text, in order; what is blank or only a comment is none."""
    pieces, start, position = [], None, 0
    while position < len(text):
        if start is None and text[position] == "\\":
            end = text.find("\n", position)
            end = len(text) if end < 0 else end
            pieces.append(_piece(text, position, end, is_ended=True))
            position = end
            continue
        lexeme = LEXEME.match(text, position)
        assert lexeme is not None  # the last alternative takes any character
        if lexeme["semicolon"]:
            if start is not None:
                pieces.append(_piece(text, start, lexeme.start(), is_ended=True))
            start = None
        elif start is None and (lexeme["word"] or lexeme["quoted"]):
            start = position
        position = lexeme.end()
    if start is not None:
        pieces.append(_piece(text, start, len(text), is_ended=False))
    return pieces


def is_complete(text: str) -> bool:
    """Whether Enter should carry the text out: nothing is left open after its last semicolon."""
    if any(lexeme[name] is not None for lexeme in LEXEME.finditer(text) for name in OPEN):
        return False
    pieces = split(text)
    return not pieces or pieces[-1].is_ended


def _piece(text: str, start: int, end: int, *, is_ended: bool) -> Piece:
    line = text.count("\n", 0, start) + 1
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    return Piece(text[start:end].rstrip(), line, column, is_ended)
