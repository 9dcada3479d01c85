"""Windows in brackets after a stream's name: trades [RANGE 1 HOUR SLIDE 10 MINUTES]."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

from weft.errors import InvalidWindow, SqlError, SyntaxProblem, did_you_mean
from weft.logical.windows import Hopping, Landmark, LastRows, Sliding, Snapshot, Window
from weft.sql.intervals import instant_from_tokens, interval_from_tokens
from weft.sql.tokens import Cursor, located, raw, word

FORMS = "[RANGE 1 HOUR], [RANGE 1 HOUR SLIDE 10 MINUTES], [ROWS 100], [SINCE '2026-01-01'] or [FROM '2026-01-01' TO '2026-01-02']"
KEYWORDS = ("RANGE", "ROWS", "SINCE", "FROM")


def bracket_window(text: str, bracket: Token, inside: Sequence[Token]) -> Window:
    """The window that these tokens between [ and ] describe."""
    cursor = Cursor(text, inside)
    place = cursor.place_of(inside[0] if inside else bracket)
    readers = {"RANGE": _range, "ROWS": _rows, "SINCE": _since, "FROM": _from_to}
    reader = readers.get(word(cursor.now))
    if reader is None:
        error = _unknown(cursor)
        error.line, error.column = place.line, place.column
        raise error
    cursor.next()
    try:
        return reader(cursor)
    except SqlError as error:
        raise located(error, place) from None


def _unknown(cursor: Cursor) -> SqlError:
    written, first = raw(cursor.text, cursor.tokens), word(cursor.now)
    if first in {"UNBOUNDED", "NOW"}:
        hint = "leave the brackets out to see the whole stream, or write a length: [RANGE 1 HOUR]"
        return InvalidWindow(f"[{written}] is not a window in Weft", hint=hint)
    if first == "PARTITION BY":
        return InvalidWindow(
            "a window in brackets cannot be partitioned",
            hint="use row_number() OVER (PARTITION BY … ORDER BY …), or a session: SESSION(TABLE t PARTITION BY k, …)",
        )
    if not first:
        return InvalidWindow(
            f"[{written}] does not say which kind of window", hint=f"write {FORMS}"
        )
    return InvalidWindow(
        f'"{first}" is not a kind of window',
        detail=f"the forms are {FORMS}",
        hint=did_you_mean(first, KEYWORDS),
    )


def _cut_at(cursor: Cursor, keyword: str) -> tuple[Sequence[Token], Cursor | None]:
    """What comes before a keyword, and a cursor after it if it is there."""
    for i, token in enumerate(cursor.rest):
        if word(token) == keyword:
            return cursor.rest[:i], Cursor(cursor.text, cursor.tokens, cursor.at + i + 1)
    return cursor.rest, None


def _range(cursor: Cursor) -> Window:
    length_tokens, slide = _cut_at(cursor, "SLIDE")
    if word(cursor.now) == "UNBOUNDED":
        raise InvalidWindow("RANGE UNBOUNDED is the whole stream", hint="leave the brackets out")
    length = interval_from_tokens(cursor.text, length_tokens, cursor.place)
    if slide is None:
        return Sliding(length)
    if slide.is_done:
        raise slide.problem(
            "expected an interval after SLIDE",
            hint="say how often the window moves, for example SLIDE 10 MINUTES, or leave SLIDE out",
        )
    return Hopping(length, interval_from_tokens(cursor.text, slide.rest, slide.place))


def _rows(cursor: Cursor) -> Window:
    count_tokens, slide = _cut_at(cursor, "SLIDE")
    count = _whole_number(
        Cursor(cursor.text, cursor.tokens[: cursor.at + len(count_tokens)], cursor.at), "ROWS"
    )
    return LastRows(count, None if slide is None else _whole_number(slide, "SLIDE"))


def _whole_number(cursor: Cursor, after: str) -> int:
    hint = "for example [ROWS 100] or [ROWS 100 SLIDE 10]"
    sign = -1 if cursor.takes("-") else 1
    token = cursor.now
    if token is None or token.token_type is not TokenType.NUMBER or not token.text.isdigit():
        raise cursor.problem(f"expected a whole number of rows after {after}", hint=hint)
    cursor.next()
    if not cursor.is_done:
        raise cursor.problem("expected ] or SLIDE after the number of rows", hint=hint)
    return sign * int(token.text)


def _since(cursor: Cursor) -> Window:
    return Landmark(instant_from_tokens(cursor.text, cursor.rest, cursor.place))


def _from_to(cursor: Cursor) -> Window:
    start, end = _cut_at(cursor, "TO")
    if end is None:
        place = Cursor(cursor.text, cursor.tokens, len(cursor.tokens)).place
        raise SyntaxProblem(
            "[FROM … ] has a start but no end",
            hint="write [FROM '<start>' TO '<end>'], or [SINCE '<start>'] for a window without an end",
            line=place.line,
            column=place.column,
        )
    first = instant_from_tokens(cursor.text, start, cursor.place)
    return Snapshot(first, instant_from_tokens(cursor.text, end.rest, end.place))
