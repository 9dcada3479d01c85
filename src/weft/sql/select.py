"""Selects and expressions: cut Weft's clauses, let sqlglot parse the rest, translate its errors.

A script of a thousand selects has few *shapes*: tokens but for whole numbers that something is
compared with. The first of a shape is parsed at once; since a number stands where a number stood,
another parses too, so that this is left to whoever needs its tree.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType

from weft.errors import SyntaxProblem
from weft.logical.relations import Emit
from weft.sql.cut import cut, cut_emit
from weft.sql.slips import refuse_slips, translate
from weft.sql.statements import Parsed, Select
from weft.sql.tokens import DIALECT, Cursor, place_at, raw, word

BARE_FUNCTIONS = {
    TokenType.CURRENT_TIMESTAMP: exp.CurrentTimestamp,
    TokenType.CURRENT_DATE: exp.CurrentDate,
    TokenType.CURRENT_TIME: exp.CurrentTime,
    TokenType.LOCALTIMESTAMP: exp.Localtimestamp,
}
COMPARED = {TokenType.EQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE}
QUERY_WORDS = {"SELECT", "WITH", "VALUES", "FROM", "("}


def parse_select(cursor: Cursor, what: str) -> Select:
    """The rest of the statement as a select that may not have EMIT: only standing queries emit."""
    start = cursor.at
    select, emit = parse_select_and_emit(cursor, what)
    if emit is not None:
        at = next(
            i for i in range(len(cursor.tokens) - 1, start, -1) if word(cursor.tokens[i]) == "EMIT"
        )
        place = cursor.place_of(cursor.tokens[at])
        raise SyntaxProblem(
            f"{what} has no EMIT clause",
            detail="it is answered once, from what is there now",
            hint="for an answer that follows the stream: CREATE CONTINUOUS QUERY <name> AS SELECT … EMIT …",
            line=place.line,
            column=place.column,
        )
    return select


def parse_select_and_emit(cursor: Cursor, what: str) -> tuple[Select, Emit | None]:
    if word(cursor.now) not in QUERY_WORDS:
        raise cursor.problem(
            f"expected SELECT in {what}", hint="only a SELECT, WITH or VALUES can stand here"
        )
    whole = cursor.text
    run, emit = cut_emit(whole, cursor.rest)
    cursor.at = len(cursor.tokens)
    text, shape = raw(whole, run), _shape(run)
    if shape in cursor.shapes:
        return Select(text, lambda: _parsed(whole, run)), emit
    parsed = _parsed(whole, run)
    cursor.shapes.add(shape)
    return Select(text, lambda: parsed), emit


def _parsed(text: str, run: Sequence[Token]) -> Parsed:
    pieces = cut(text, run)
    tree = _as_query(parse_tokens(text, pieces.tokens), text, run)
    return Parsed(tree, pieces.windows, pieces.between, pieces.descriptors)


def _shape(run: Sequence[Token]) -> tuple:
    """The tokens without whole numbers that stand right of a comparison, which are of one type."""
    shape, is_compared = [], False
    for token in run:
        kind, text = token.token_type, token.text
        is_number = kind is TokenType.NUMBER and text.isdigit() and len(text) < 10
        shape.append((kind, "" if is_compared and is_number else text))
        is_compared = kind in COMPARED or (is_compared and kind is TokenType.DASH)
    return tuple(shape)


def parse_tokens(text: str, run: Sequence[Token]) -> exp.Expression:
    """One statement through sqlglot. Its own positions stay valid: `text` is the whole script."""
    refuse_slips(text, run)
    try:
        tree = DIALECT.parser().parse(_with_window_calls(run), text)[0]
    except ParseError as error:
        raise translate(text, run, error) from None
    except RecursionError:
        place = place_at(text, run[0].start)
        raise SyntaxProblem(
            "the statement is nested too deeply",
            hint="split it with WITH … AS (…)",
            line=place.line,
            column=place.column,
        ) from None
    _locate_bare_functions(tree, run)
    return tree


def _with_window_calls(run: Sequence[Token]) -> list[Token]:
    """Tell window(ts, …) from the WINDOW clause: after GROUP BY, sqlglot takes both for the clause."""
    result = []
    for token, after in zip(run, [*run[1:], None], strict=True):
        if token.token_type is TokenType.WINDOW and word(after) == "(":
            token = Token(
                TokenType.VAR,
                token.text,
                token.line,
                token.col,
                token.start,
                token.end,
                token.comments,
            )
        result.append(token)
    return result


def _locate_bare_functions(tree: exp.Expression, run: Sequence[Token]) -> None:
    """sqlglot keeps no position for current_timestamp without parentheses: give it the token's."""
    for kind, node_type in BARE_FUNCTIONS.items():
        tokens = [
            t
            for t, after in zip(run, [*run[1:], None], strict=True)
            if t.token_type is kind and word(after) != "("
        ]
        nodes = [node for node in tree.find_all(node_type, bfs=False) if not node.meta]
        for token, node in zip(tokens, nodes, strict=False):
            node.meta.update(line=token.line, col=token.col, start=token.start, end=token.end)


def _as_query(tree: exp.Expression, text: str, run: Sequence[Token]) -> exp.Query:
    if isinstance(tree, exp.Values):  # a bare VALUES list is a table, not a query, to sqlglot
        return exp.select("*").from_(tree)
    if isinstance(tree, exp.Query):
        return tree
    place = place_at(text, run[0].start)
    raise SyntaxProblem(
        "this is not a SELECT", hint="write SELECT … FROM …", line=place.line, column=place.column
    )
