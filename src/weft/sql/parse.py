"""Text to statements: one reader for each first keyword."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot.tokens import TokenType

from weft.errors import SyntaxProblem, did_you_mean
from weft.sql.change import parse_delete, parse_insert, parse_update
from weft.sql.create import parse_create
from weft.sql.names import parse_name, parse_options
from weft.sql.select import QUERY_WORDS, parse_select, parse_select_and_emit
from weft.sql.statements import (
    AlterQuery,
    CreateQuery,
    Describe,
    Drop,
    Explain,
    Show,
    Statement,
)
from weft.sql.tokens import Cursor, tokenize, word

STATEMENTS = (
    "CREATE", "INSERT", "UPDATE", "DELETE", "DROP", "ALTER", "SHOW", "DESCRIBE", "EXPLAIN", "SELECT", "WITH", "VALUES",
)  # fmt: skip
SHOWN = ("QUERIES", "STREAMS", "TABLES", "TRIGGERS", "AGGREGATES")
FORMATS = ("text", "json", "mermaid")


def parse(text: str) -> list[Statement]:
    """Every statement of a script, in order; empty ones are skipped."""
    pieces, shapes = _statements(text), set()
    return [_statement(Cursor(text, piece, shapes=shapes)) for piece in pieces if piece]


def _statements(text: str) -> list[list]:
    """Split at semicolons at any depth: none can stand inside a statement."""
    pieces: list[list] = [[]]
    for token in tokenize(text):
        if token.token_type is TokenType.SEMICOLON:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return pieces


def _statement(cursor: Cursor) -> Statement:
    if word(cursor.now) in QUERY_WORDS:
        return parse_select(cursor, "a SELECT")
    reader = READERS.get(word(cursor.now))
    if reader is None:
        raise _unknown_statement(cursor)
    cursor.next()
    statement = reader(cursor)
    if not cursor.is_done:
        raise cursor.problem("expected the end of the statement", hint="separate statements with ;")
    return statement


def _unknown_statement(cursor: Cursor) -> SyntaxProblem:
    first, place = cursor.found, cursor.place
    return SyntaxProblem(
        f"{first} does not start a statement",
        detail=f"statements start with {', '.join(STATEMENTS)}",
        hint=did_you_mean(word(cursor.now), STATEMENTS),
        line=place.line,
        column=place.column,
    )


def _drop(cursor: Cursor) -> Drop:
    kinds = {
        ("QUERY",): "query",
        ("CONTINUOUS", "QUERY"): "query",
        ("MATERIALIZED", "VIEW"): "query",
        ("STREAM",): "stream",
        ("TABLE",): "table",
        ("AGGREGATE",): "aggregate",
    }
    for words, kind in kinds.items():
        if cursor.takes(*words):
            if_exists = cursor.takes("IF", "EXISTS")
            name = parse_name(cursor, "user-defined aggregate" if kind == "aggregate" else kind)
            return Drop(kind, name.text, if_exists, name.line, name.column)
    raise cursor.problem(
        "expected the kind of thing to drop",
        hint="write DROP QUERY, DROP STREAM, DROP TABLE or DROP AGGREGATE, and then the name",
    )


def _alter(cursor: Cursor) -> AlterQuery:
    form = "write ALTER QUERY <name> SET (answers = 'eager')"
    if not (cursor.takes("QUERY") or cursor.takes("CONTINUOUS", "QUERY")):
        raise cursor.problem("only queries can be altered", hint=form)
    name = parse_name(cursor, "query")
    if not cursor.sees("SET"):
        raise cursor.problem("expected SET", hint=form)
    options = parse_options(cursor, "SET")
    return AlterQuery(name.text, options, name.line, name.column)


def _show(cursor: Cursor) -> Show:
    what = word(cursor.now)
    if what not in SHOWN:
        raise cursor.problem(
            "expected what to show",
            detail=f"these can be shown: {', '.join(SHOWN)}",
            hint=did_you_mean(what, SHOWN),
        )
    cursor.next()
    return Show(what.lower())


def _describe(cursor: Cursor) -> Describe:
    for kind in ("STREAM", "TABLE", "QUERY"):
        if cursor.sees(kind) and cursor.ahead() is not None and word(cursor.ahead()) != ".":
            cursor.next()
    name = parse_name(cursor, "stream, table or query")
    return Describe(name.text, name.line, name.column)


def _explain(cursor: Cursor) -> Explain:
    form = _format(cursor)
    place = cursor.place
    if cursor.takes("CREATE"):
        return _explain_create(cursor, form)
    if word(cursor.now) in QUERY_WORDS:
        select, emit = parse_select_and_emit(cursor, "EXPLAIN")
        return Explain(None, select, form, emit, place.line, place.column)
    if cursor.is_done:
        raise cursor.problem(
            "expected a query after EXPLAIN", hint="write EXPLAIN <name> or EXPLAIN SELECT …"
        )
    name = parse_name(cursor, "query")
    return Explain(name.text, None, form, None, name.line, name.column)


def _explain_create(cursor: Cursor, form: str) -> Explain:
    place = cursor.place
    statement = parse_create(cursor)
    if not isinstance(statement, CreateQuery):
        raise SyntaxProblem(
            "only queries can be explained",
            hint="write EXPLAIN <name> or EXPLAIN SELECT …",
            line=place.line,
            column=place.column,
        )
    return Explain(None, statement.select, form, statement.emit, place.line, place.column)


def _format(cursor: Cursor) -> str:
    """FORMAT text | json | mermaid. A query may also be called format."""
    if not cursor.sees("FORMAT") or cursor.ahead() is None:
        return "text"
    cursor.next()
    cursor.takes("=")
    form = cursor.now.text.lower() if cursor.now else ""
    if form not in FORMATS:
        raise cursor.problem(
            "expected a format",
            detail=f"the formats are {', '.join(FORMATS)}",
            hint=did_you_mean(form, FORMATS),
        )
    cursor.next()
    return form


READERS: dict[str, Callable[[Cursor], Statement]] = {
    "CREATE": parse_create,
    "INSERT": parse_insert,
    "UPDATE": parse_update,
    "DELETE": parse_delete,
    "DROP": _drop,
    "ALTER": _alter,
    "SHOW": _show,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "EXPLAIN": _explain,
}
