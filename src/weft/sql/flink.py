"""Flink's window table functions: TABLE(TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '1' HOUR))."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlglot.tokens import Token, TokenType

from weft.errors import InvalidWindow, SqlError, SyntaxProblem
from weft.logical.windows import ZERO, Cumulating, Hopping, Session, Window
from weft.sql.intervals import interval_from_tokens
from weft.sql.statements import Word
from weft.sql.tokens import NAMES, Cursor, Place, located, raw, split, take_name, word

SIGNATURES = {
    "TUMBLE": "TUMBLE(TABLE t, DESCRIPTOR(ts), size[, offset])",
    "HOP": "HOP(TABLE t, DESCRIPTOR(ts), slide, size[, offset])",
    "CUMULATE": "CUMULATE(TABLE t, DESCRIPTOR(ts), step, size)",
    "SESSION": "SESSION(TABLE t [PARTITION BY k, …], DESCRIPTOR(ts), gap)",
}
PARAMETERS = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A window table function as read: the name it is about, its window, and the columns it names."""

    name: Sequence[Token]  # the name's tokens, dots included; they stay in the select
    window: Window
    columns: tuple[Word, ...]  # the DESCRIPTOR column, then a session's keys


def is_window_function(cursor: Cursor) -> bool:
    """Whether a window table function comes next, with or without TABLE( … ) around it."""
    steps = 2 if cursor.sees("TABLE", "(") else 0
    return word(cursor.ahead(steps)) in SIGNATURES and word(cursor.ahead(steps + 1)) == "("


def window_function(cursor: Cursor) -> WindowFunction:
    """Read the function and step over it."""
    if cursor.takes("TABLE"):
        inner = cursor.parenthesized("the window function")
        result = window_function(inner)
        if not inner.is_done:
            raise inner.problem("expected ) after the window function")
        return result
    function = cursor.next()
    place = cursor.place_of(function)
    arguments = _arguments(word(function), cursor.parenthesized("the arguments"), place)
    return _read(word(function), arguments, cursor, place)


def _arguments(function: str, inside: Cursor, place: Place) -> dict[str, list[Token]]:
    """Arguments by Flink's parameter names; SESSION's own commas after PARTITION BY are its keys."""
    arguments: dict[str, list[Token]] = {}
    parts = _join_keys(split(inside.rest, TokenType.COMMA))
    for parameter, part in zip(PARAMETERS[function], parts, strict=False):
        named = len(part) > 2 and part[1].token_type is TokenType.FARROW
        arguments[word(part[0]) if named else parameter] = part[2:] if named else part
    needed = [p for p in PARAMETERS[function] if p != "OFFSET"]
    if len(parts) > len(PARAMETERS[function]) or any(not arguments.get(p) for p in needed):
        raise SyntaxProblem(
            f"{function} does not take these arguments",
            hint=f"write {SIGNATURES[function]}",
            line=place.line,
            column=place.column,
        )
    return arguments


def _join_keys(parts: list[list[Token]]) -> list[list[Token]]:
    """Undo the split inside PARTITION BY a, b: a part before DESCRIPTOR that is only a name."""
    joined: list[list[Token]] = parts[:1]
    for part in parts[1:]:
        is_key = len(part) == 1 and any(word(t) == "PARTITION BY" for t in joined[-1])
        if is_key and part[0].token_type in NAMES:
            joined[-1] = [*joined[-1], *part]
        else:
            joined.append(part)
    return joined


def _read(
    function: str, arguments: dict[str, list[Token]], at: Cursor, place: Place
) -> WindowFunction:
    name, keys = _data(at.text, arguments["DATA"])
    if keys and function != "SESSION":
        raise InvalidWindow(
            f"{function} takes no PARTITION BY",
            hint="its windows are the same for every key: GROUP BY the key instead",
            line=place.line,
            column=place.column,
        )
    time = _descriptor(at.text, arguments["TIMECOL"])

    def interval(parameter: str) -> timedelta:
        run = arguments.get(parameter)
        return interval_from_tokens(at.text, run, place) if run else ZERO

    try:
        window = _window(function, interval, keys)
    except SqlError as error:
        raise located(error, place) from None
    return WindowFunction(name, window, (time, *keys))


def _window(function: str, interval: Callable[[str], timedelta], keys: Sequence[Word]) -> Window:
    if function == "CUMULATE":
        return Cumulating(interval("SIZE"), interval("STEP"))
    if function == "SESSION":
        return Session(interval("GAP"), tuple(key.text for key in keys))
    size = interval("SIZE")
    slide = interval("SLIDE") if function == "HOP" else size
    return aligned(size, slide, interval("OFFSET"))


def aligned(length: timedelta, slide: timedelta, offset: timedelta = ZERO) -> Hopping:
    """A hopping window with its offset in [0, slide): shifting by whole slides changes nothing."""
    return Hopping(length, slide, offset % slide if slide > ZERO else ZERO)


def _data(text: str, run: Sequence[Token]) -> tuple[Sequence[Token], list[Word]]:
    cursor = Cursor(text, run)
    cursor.takes("TABLE")
    name = take_name(cursor)
    if not name:
        raise cursor.problem(
            "expected a stream after TABLE",
            hint="window functions read a stream by its name, for example TUMBLE(TABLE trades, …)",
        )
    return name, _keys(cursor)


def _keys(cursor: Cursor) -> list[Word]:
    if cursor.is_done:
        return []
    cursor.expect("PARTITION BY", after="the name of the stream")
    run = [
        t for t in cursor.rest if t.token_type is not TokenType.COMMA and word(t) not in {"(", ")"}
    ]
    return [_word(cursor.text, token) for token in run]


def _descriptor(text: str, run: Sequence[Token]) -> Word:
    cursor = Cursor(text, run)
    hint = "name the stream's time column, for example DESCRIPTOR(ts)"
    cursor.expect("DESCRIPTOR", after="the stream", hint=hint)
    inside = cursor.parenthesized("the time column")
    if len(inside.rest) != 1 or inside.now.token_type not in NAMES:
        raise SyntaxProblem(
            f"DESCRIPTOR takes one column, not ({raw(text, inside.rest)})",
            hint=hint,
            line=cursor.place_of(run[0]).line,
            column=cursor.place_of(run[0]).column,
        )
    return _word(text, inside.now)


def _word(text: str, token: Token) -> Word:
    place = Cursor(text, [token]).place
    return Word(token.text, place.line, place.column)
