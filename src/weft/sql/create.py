"""CREATE STREAM, TABLE and CONTINUOUS QUERY; AGGREGATE has a file of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlglot.tokens import Token, TokenType

from weft.errors import SyntaxProblem, Unsupported, did_you_mean
from weft.logical.relations import Column, StreamDefinition, TableDefinition
from weft.logical.windows import ZERO
from weft.sql.create_aggregate import parse_create_aggregate
from weft.sql.intervals import interval_from_tokens
from weft.sql.names import check_column_name, parse_new_name, parse_options
from weft.sql.select import QUERY_WORDS, parse_select, parse_select_and_emit
from weft.sql.statements import CreateQuery, CreateStream, CreateTable, Statement, Word
from weft.sql.tokens import NAMES, Cursor, raw, split, word
from weft.sql.types import parse_type
from weft.sql.watermark import Shape, parse_watermark

CREATABLE = ("STREAM", "TABLE", "CONTINUOUS QUERY", "MATERIALIZED VIEW", "AGGREGATE")
NOT_YET = {
    "TRIGGER": "until then, follow an answer with q.subscribe() in Python",
}
QUERY_FORM = "CREATE CONTINUOUS QUERY <name> AS SELECT …"


@dataclass(frozen=True, slots=True)
class Preamble:
    or_replace: bool
    if_not_exists: bool
    name: str
    line: int
    column: int


def parse_create(cursor: Cursor) -> Statement:
    """Everything after the word CREATE."""
    or_replace = cursor.takes("OR", "REPLACE")
    if cursor.takes("STREAM"):
        return _stream(cursor, _preamble(cursor, "stream", or_replace))
    if cursor.takes("TABLE"):
        return _table(cursor, _preamble(cursor, "table", or_replace))
    if cursor.takes("CONTINUOUS", "QUERY") or cursor.takes("MATERIALIZED", "VIEW"):
        return _query(cursor, _preamble(cursor, "query", or_replace))
    if cursor.takes("AGGREGATE"):
        return parse_create_aggregate(cursor, or_replace)
    raise _not_creatable(cursor)


def _not_creatable(cursor: Cursor) -> SyntaxProblem | Unsupported:
    what, place = word(cursor.now), cursor.place
    if what in NOT_YET:
        return Unsupported(
            f"CREATE {what} is not available yet",
            hint=NOT_YET[what],
            line=place.line,
            column=place.column,
        )
    if what in {"QUERY", "VIEW", "CONTINUOUS", "MATERIALIZED"}:
        return cursor.problem("expected CONTINUOUS QUERY after CREATE", hint=f"write {QUERY_FORM}")
    return cursor.problem(
        "expected the kind of thing to create",
        detail=f"these can be created: {', '.join(CREATABLE)}",
        hint=did_you_mean(what, CREATABLE),
    )


def _preamble(cursor: Cursor, what: str, or_replace: bool) -> Preamble:
    place = cursor.place
    if_not_exists = cursor.takes("IF", "NOT", "EXISTS")
    if or_replace and if_not_exists:
        raise SyntaxProblem(
            "OR REPLACE and IF NOT EXISTS contradict each other",
            hint="keep one of them",
            line=place.line,
            column=place.column,
        )
    name = parse_new_name(cursor, what)
    return Preamble(or_replace, if_not_exists, name.text, name.line, name.column)


def _stream(cursor: Cursor, preamble: Preamble) -> CreateStream:
    if not cursor.sees("("):
        example = (
            f"CREATE STREAM {preamble.name} (sym STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
        )
        raise cursor.problem("a stream needs columns: expected (", hint=f"for example {example}")
    shape = _shape(cursor, is_stream=True)
    retain = _retain(cursor)
    options = parse_options(cursor)
    _finish(cursor, "a stream", "RETAIN 7 DAYS and then WITH (…) may follow the columns")
    definition = StreamDefinition(
        preamble.name, tuple(shape.columns), shape.time_column, shape.delay, retain, options
    )
    return CreateStream(
        definition, preamble.or_replace, preamble.if_not_exists, preamble.line, preamble.column
    )


def _retain(cursor: Cursor) -> timedelta | None:
    if not cursor.takes("RETAIN"):
        return None
    place, start = cursor.place, cursor.at
    while not cursor.is_done and not cursor.sees("WITH"):
        cursor.next()
    retain = interval_from_tokens(cursor.text, cursor.tokens[start : cursor.at], place)
    if retain <= ZERO:
        raise SyntaxProblem(
            "RETAIN needs an interval longer than zero",
            hint="leave RETAIN out to keep everything",
            line=place.line,
            column=place.column,
        )
    return retain


def _table(cursor: Cursor, preamble: Preamble) -> CreateTable:
    has_columns = cursor.sees("(")
    shape = _shape(cursor, is_stream=False) if has_columns else Shape()
    is_retroactive = cursor.takes("RETROACTIVE")
    options = parse_options(cursor)
    select = None
    if cursor.sees("AS"):
        if has_columns:
            place = cursor.place
            raise SyntaxProblem(
                "a table has columns or a SELECT, not both",
                hint="remove the columns: the SELECT has them",
                line=place.line,
                column=place.column,
            )
        cursor.next()
        select = parse_select(cursor, "CREATE TABLE … AS")
    elif not has_columns:
        raise cursor.problem(
            "a table needs columns: expected ( or AS",
            hint=f"for example CREATE TABLE {preamble.name} (sym STRING, company STRING)",
        )
    _finish(cursor, "a table", "RETROACTIVE and then WITH (…) may follow the columns")
    definition = TableDefinition(preamble.name, tuple(shape.columns), is_retroactive, options)
    return CreateTable(
        definition, select, preamble.or_replace, preamble.if_not_exists, preamble.line,
        preamble.column,
    )  # fmt: skip


def _query(cursor: Cursor, preamble: Preamble) -> CreateQuery:
    options = parse_options(cursor)
    if word(cursor.now) in QUERY_WORDS:
        raise cursor.problem(f'expected AS after "{preamble.name}"', hint=f"write {QUERY_FORM}")
    cursor.expect("AS", after=f'"{preamble.name}"', hint=f"write {QUERY_FORM}")
    select, emit = parse_select_and_emit(cursor, "CREATE CONTINUOUS QUERY … AS")
    text = raw(cursor.text, cursor.tokens)
    return CreateQuery(
        preamble.name, select, text, emit, options, preamble.or_replace, preamble.if_not_exists,
        preamble.line, preamble.column,
    )  # fmt: skip


def _finish(cursor: Cursor, what: str, hint: str) -> None:
    if not cursor.is_done:
        raise cursor.problem(f"expected the end of {what}", hint=hint)


def _shape(cursor: Cursor, is_stream: bool) -> Shape:
    inside = cursor.parenthesized("the columns")
    parts = split(inside.rest, TokenType.COMMA)
    if not all(parts):
        raise _missing_column(inside, cursor)
    items = [Cursor(cursor.text, part) for part in parts]
    watermarks = [item for item in items if item.sees("WATERMARK", "FOR")]
    shape = Shape()
    for item in items:
        if item not in watermarks:
            _column(item, shape, is_stream)
    for item in watermarks:  # last, so that it may stand anywhere in the list
        parse_watermark(item, shape, is_stream)
    return shape


def _missing_column(inside: Cursor, cursor: Cursor) -> SyntaxProblem:
    close = cursor.tokens[cursor.at - 1]
    place = cursor.place_of(close)
    problem = (
        "expected a column after the comma" if inside.rest else "expected columns between ( and )"
    )
    return SyntaxProblem(
        problem, hint="for example sym STRING, price DOUBLE", line=place.line, column=place.column
    )


def _column(item: Cursor, shape: Shape, is_stream: bool) -> None:
    place = item.place
    if item.now.token_type not in NAMES:
        raise item.problem(
            "expected the name of a column", hint="quote unusual names with `backticks`"
        )
    token = item.next()
    check_column_name(Word(token.text, place.line, place.column), is_stream)
    if token.text.lower() in (column.name.lower() for column in shape.columns):
        raise SyntaxProblem(
            f'column "{token.text}" is declared twice',
            detail="names of columns do not differ by case",
            hint="rename one of them",
            code="WEFT_DUPLICATE_COLUMN",
            line=place.line,
            column=place.column,
        )
    type_tokens = _without_constraints(item)
    shape.columns.append(
        Column(token.text, parse_type(item.text, type_tokens, token.text, item.place))
    )


def _without_constraints(item: Cursor) -> Sequence[Token]:
    """The tokens of the type alone; COMMENT is dropped, other constraints are refused."""
    level = 0
    for i, token in enumerate(item.rest):
        level += (token.text == "<") - (token.text == ">")
        if level == 0 and word(token) == "COMMENT":
            return item.rest[:i]
        if (
            level == 0
            and i
            and word(token) in {"NOT", "DEFAULT", "PRIMARY KEY", "GENERATED", "CHECK", "UNIQUE"}
        ):
            place = item.place_of(token)
            raise Unsupported(
                f"{raw(item.text, item.rest[i : i + 2])} is not supported on a column",
                detail="every column may hold NULL",
                hint="leave it out; a query can say WHERE column IS NOT NULL",
                line=place.line,
                column=place.column,
            )
    return item.rest
