"""PSoup's whole-query window: SELECT … BEGIN NOW - 10 MINUTES END NOW.

Source: PSoup §1.1. Both ends fixed: a snapshot; a fixed begin and END NOW: a landmark; both relative
to NOW: sliding, with END NOW - lag as the lag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlglot.tokens import Token, TokenType

from weft.errors import InvalidWindow, SqlError
from weft.logical.windows import ZERO, Landmark, Sliding, Snapshot, Window
from weft.sql.intervals import instant_from_tokens, interval_from_tokens, is_instant
from weft.sql.tokens import Cursor, Place, depths, located, word

HINT = "write BEGIN NOW - 10 MINUTES END NOW, or BEGIN '2026-01-01' END NOW"


@dataclass(frozen=True, slots=True)
class Ago:
    """NOW − before."""

    before: timedelta


def find_between(run: Sequence[Token]) -> int | None:
    """Where a BEGIN … END clause starts, or None.

    BEGIN may also be a column or an alias: it opens the clause only outside parentheses and CASE,
    after FROM, and before something that can be an end of a window.
    """
    cases, after_from = 0, False
    for i, (token, depth) in enumerate(zip(run, depths(run), strict=True)):
        if depth:
            continue
        if word(token) == "BEGIN" and after_from and not cases and _is_end(run[i + 1 :]):
            return i
        after_from = after_from or word(token) == "FROM"
        cases += (word(token) == "CASE") - (word(token) == "END" and cases > 0)
    return None


def _is_end(run: Sequence[Token]) -> bool:
    starts = {TokenType.STRING, TokenType.NUMBER, TokenType.L_PAREN}
    return bool(run) and (
        word(run[0]) in {"NOW", "TIMESTAMP", "DATE"} or run[0].token_type in starts
    )


def between_window(text: str, run: Sequence[Token]) -> Window:
    """The window of `BEGIN … END …`, given with its keywords."""
    cursor = Cursor(text, run)
    place = cursor.place
    end = next((i for i, token in enumerate(run) if word(token) == "END"), None)
    if end is None:
        cursor.at = len(run)
        raise cursor.problem("expected END after BEGIN", hint=HINT)
    first = _edge(text, run[1:end], cursor.place_of(run[end]))
    after = Cursor(text, run, end + 1)
    last = _edge(text, run[end + 1 :], after.place)
    try:
        return _window(first, last)
    except SqlError as error:
        raise located(error, place) from None


def _window(first: Ago | datetime, last: Ago | datetime) -> Window:
    match first, last:
        case Ago(), Ago():
            if first.before <= last.before:
                raise InvalidWindow("the window ends before it begins", hint=HINT)
            return Sliding(first.before - last.before, lag=last.before)
        case datetime(), datetime():
            return Snapshot(first, last)
        case datetime(), Ago(before) if before == ZERO:
            return Landmark(first)
        case datetime(), _:
            raise InvalidWindow(
                "a window with a fixed begin must end at NOW or at a fixed instant", hint=HINT
            )
    raise InvalidWindow(
        "a window that begins relative to NOW cannot end at a fixed instant",
        detail="it would shrink until nothing is left",
        hint=HINT,
    )


def _edge(text: str, run: Sequence[Token], place: Place) -> Ago | datetime:
    """One end of the window: NOW, NOW - interval, or an instant."""
    while run and word(run[0]) == "(" and word(run[-1]) == ")":
        run = run[1:-1]
    if is_instant(run):
        return instant_from_tokens(text, run, place)
    cursor = Cursor(text, run)
    if not cursor.takes("NOW"):
        where = cursor.place if run else place
        raise InvalidWindow(
            "BEGIN and END take NOW, NOW - <interval> or a quoted instant",
            hint=HINT,
            line=where.line,
            column=where.column,
        )
    cursor.takes("(", ")")
    return Ago(ZERO) if cursor.is_done else _before_now(cursor)


def _before_now(cursor: Cursor) -> Ago:
    if cursor.sees("+"):
        place = cursor.place
        raise InvalidWindow(
            "the window ends in the future", hint=HINT, line=place.line, column=place.column
        )
    cursor.expect("-", after="NOW", hint=HINT)
    run = cursor.rest
    if len(run) == 1 and run[0].token_type is TokenType.NUMBER:  # PSoup counts in seconds
        return Ago(timedelta(seconds=float(run[0].text)))
    return Ago(interval_from_tokens(cursor.text, run, cursor.place))
