"""The WATERMARK clause of CREATE STREAM, and the columns it is about."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from weft.errors import SyntaxProblem, TypeProblem, did_you_mean
from weft.logical.relations import Column
from weft.logical.windows import ZERO
from weft.sql.intervals import interval_from_tokens
from weft.sql.tokens import NAMES, Cursor, Place


@dataclass(slots=True)
class Shape:
    """The columns in parentheses, and the watermark among them."""

    columns: list[Column] = field(default_factory=list)
    time_column: str | None = None
    delay: timedelta = ZERO


def parse_watermark(item: Cursor, shape: Shape, is_stream: bool) -> None:
    """WATERMARK FOR ts AS ts [- INTERVAL …]: the stream's event time, and how late rows may be."""
    place = item.place
    if not is_stream:
        raise SyntaxProblem(
            "a table has no watermark",
            hint="did you mean CREATE STREAM?",
            line=place.line,
            column=place.column,
        )
    if shape.time_column is not None:
        raise SyntaxProblem(
            "a stream has one watermark",
            hint="keep one of them",
            line=place.line,
            column=place.column,
        )
    item.takes("WATERMARK", "FOR")
    column = _time_column(item, shape)
    item.expect("AS", after=f"WATERMARK FOR {column}", hint=_watermark_form(column))
    repeated = item.place
    if (
        item.now is None
        or item.now.token_type not in NAMES
        or item.next().text.lower() != column.lower()
    ):
        raise SyntaxProblem(
            f"the watermark of {column} must be {column} itself, less an interval",
            hint=_watermark_form(column),
            line=repeated.line,
            column=repeated.column,
        )
    shape.time_column, shape.delay = column, _delay(item, column)


def _watermark_form(column: str) -> str:
    return f"write WATERMARK FOR {column} AS {column} - INTERVAL 5 SECONDS"


def _time_column(item: Cursor, shape: Shape) -> str:
    place = item.place
    if item.now is None or item.now.token_type not in NAMES:
        raise item.problem("expected a column after WATERMARK FOR", hint=_watermark_form("ts"))
    name = item.next().text
    known = {column.name.lower(): column for column in shape.columns}
    column = known.get(name.lower())
    if column is None:
        raise _no_such_time_column(name, shape, place)
    if column.type != "TIMESTAMP":
        raise TypeProblem(
            f'the watermark column "{column.name}" is {column.type}, not TIMESTAMP',
            detail="event time is an instant; only TIMESTAMP is one",
            hint=f"declare it as {column.name} TIMESTAMP",
            line=place.line,
            column=place.column,
        )
    return column.name


def _no_such_time_column(name: str, shape: Shape, place: Place) -> SyntaxProblem:
    names = [column.name for column in shape.columns]
    return SyntaxProblem(
        f'the watermark column "{name}" is not a column of the stream',
        detail=f"its columns are {', '.join(names)}" if names else None,
        hint=did_you_mean(name, names) or f"add {name} TIMESTAMP to the columns",
        code="WEFT_UNKNOWN_COLUMN",
        line=place.line,
        column=place.column,
    )


def _delay(item: Cursor, column: str) -> timedelta:
    if item.is_done:
        return ZERO
    item.expect("-", after=column, hint=_watermark_form(column))
    place = item.place
    delay = interval_from_tokens(item.text, item.rest, place)
    if delay < ZERO:
        raise SyntaxProblem(
            "the watermark would run ahead of the stream",
            detail="its delay is negative",
            hint=_watermark_form(column),
            line=place.line,
            column=place.column,
        )
    return delay
