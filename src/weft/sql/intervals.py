"""Intervals and instants as people write them: 10 MINUTES, INTERVAL '1' HOUR, '2026-01-01'."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from sqlglot.tokens import Token, TokenType

from weft.errors import InvalidWindow, SqlError, SyntaxProblem, did_you_mean
from weft.sql.tokens import Cursor, Place, raw, word

MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
SHORT = {
    "us": "microsecond", "µs": "microsecond", "ms": "millisecond", "msec": "millisecond",
    "s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour", "d": "day",
}  # fmt: skip
NOT_FIXED = {"month", "year", "quarter"}
PART = re.compile(r"\s*([+-]?\s*\d+(?:\.\d+)?|[+-]?\.\d+)\s*([^\W\d]+)", re.UNICODE)
COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
EXAMPLES = "write an interval as 10 MINUTES, 1 HOUR 30 MINUTES or INTERVAL '10' MINUTES"


def is_interval_unit(text: str) -> bool:
    unit = text.lower().removesuffix("s")
    return text.lower() in SHORT or unit in MICROSECONDS or unit in NOT_FIXED


def interval_from_text(text: str) -> timedelta:
    """'1 hour 30 minutes' as Spark reads it. Errors carry no position: the caller knows it."""
    body = re.sub(r"(?i)\binterval\b", " ", text).strip()
    if not body:
        raise InvalidWindow("an interval is missing here", hint=EXAMPLES)
    total, at = Fraction(0), 0
    while at < len(body):
        part = PART.match(body, at)
        if part is None:
            raise _unreadable(body, body[at:].strip())
        number, unit = Fraction(part[1].replace(" ", "")), part[2]
        total += number * _microseconds_in(unit, part[1])
        at = part.end() + len(re.match(r"[\s,]*", body[part.end() :])[0])
    try:
        return timedelta(microseconds=round(total))
    except OverflowError:
        raise InvalidWindow(
            f'"{body}" is longer than any clock', hint="use a shorter interval"
        ) from None


def _microseconds_in(unit: str, number: str) -> int:
    name = unit.lower()
    singular = SHORT.get(name) or SHORT.get(name.removesuffix("s")) or name.removesuffix("s")
    if singular in NOT_FIXED:
        raise InvalidWindow(
            f"{number} {unit} has no fixed length",
            detail="months and years differ in length, so nothing can be aligned to them",
            hint="use days, for example 30 DAYS",
        )
    if singular not in MICROSECONDS:
        raise InvalidWindow(
            f'"{unit}" is not a unit of time',
            detail="the units are weeks, days, hours, minutes, seconds, milliseconds and microseconds",
            hint=did_you_mean(unit, [*MICROSECONDS, *(f"{u}s" for u in MICROSECONDS)]),
        )
    return MICROSECONDS[singular]


def _unreadable(body: str, rest: str) -> SqlError:
    if re.fullmatch(r"[+-]?\d+(\.\d+)?", rest):
        return InvalidWindow(
            f"the interval {rest} has no unit",
            hint=f"say {rest} of what, for example {rest} {'SECOND' if rest == '1' else 'SECONDS'}",
        )
    return InvalidWindow(f'"{body}" is not an interval', hint=EXAMPLES)


def interval_from_tokens(text: str, run: Sequence[Token], place: Place) -> timedelta:
    """An interval in the script; `place` is where a missing one would have stood."""
    if run:
        cursor = Cursor(text, run)
        place = cursor.place
    try:
        return interval_from_text(_as_written(text, run))
    except InvalidWindow as error:
        error.line, error.column = place.line, place.column
        raise


def _as_written(text: str, run: Sequence[Token]) -> str:
    """The source without comments, and without the quotes around INTERVAL '10' MINUTES."""
    return COMMENT.sub(" ", raw(text, run)).replace("'", " ").replace('"', " ")


def is_instant(run: Sequence[Token]) -> bool:
    return bool(run) and (
        run[0].token_type is TokenType.STRING or word(run[0]) in {"TIMESTAMP", "DATE"}
    )


def instant_from_tokens(text: str, run: Sequence[Token], place: Place) -> datetime:
    """'2026-01-01', '2026-01-01 12:00:00+02:00' or TIMESTAMP '…', in UTC when no zone is said."""
    if run:
        place = Cursor(text, run).place
    literal = run[1:] if run and word(run[0]) in {"TIMESTAMP", "DATE"} else run
    hint = "write a quoted instant, for example '2026-01-01' or '2026-01-01T12:00:00Z'"
    if len(literal) != 1 or literal[0].token_type is not TokenType.STRING:
        found = f'"{raw(text, run)}"' if run else "nothing"
        raise SyntaxProblem(
            f"expected an instant, found {found}", hint=hint, line=place.line, column=place.column
        )
    try:
        return instant_from_text(literal[0].text)
    except ValueError:
        raise InvalidWindow(
            f"'{literal[0].text}' is not an instant",
            hint=hint,
            line=place.line,
            column=place.column,
        ) from None


def instant_from_text(text: str) -> datetime:
    moment = datetime.fromisoformat(text.strip())
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
