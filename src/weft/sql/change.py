"""INSERT, UPDATE and DELETE on tables."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokens import Token

from weft.errors import Unsupported
from weft.sql.names import parse_name
from weft.sql.select import QUERY_WORDS, parse_select, parse_tokens
from weft.sql.statements import Delete, Insert, Update, Word
from weft.sql.tokens import NAMES, Cursor, word


def parse_insert(cursor: Cursor) -> Insert:
    """Everything after the word INSERT."""
    if cursor.sees("OVERWRITE"):
        place = cursor.place
        raise Unsupported(
            "INSERT OVERWRITE is not supported",
            hint="DELETE FROM the table first, or CREATE OR REPLACE TABLE … AS SELECT …",
            line=place.line,
            column=place.column,
        )
    cursor.expect("INTO", after="INSERT", hint="write INSERT INTO <table> VALUES (…)")
    cursor.takes("TABLE")
    name = parse_name(cursor, "table")
    columns = _columns(cursor)
    if word(cursor.now) not in QUERY_WORDS:
        raise cursor.problem(
            "expected VALUES or SELECT", hint=f"write INSERT INTO {name.text} VALUES (…)"
        )
    select = parse_select(cursor, "INSERT")
    return Insert(name.text, columns, select, name.line, name.column)


def _columns(cursor: Cursor) -> tuple[str, ...]:
    """A list of columns; a parenthesis before SELECT is a query instead."""
    if not cursor.sees("(") or word(cursor.ahead()) in QUERY_WORDS:
        return ()
    inside = cursor.parenthesized("the columns")
    names: list[str] = []
    while True:
        if inside.now is None or inside.now.token_type not in NAMES:
            raise inside.problem("expected the name of a column", hint="for example (sym, company)")
        names.append(inside.next().text)
        if inside.is_done:
            return tuple(names)
        inside.expect(",", after=f'"{names[-1]}"')


def parse_update(cursor: Cursor) -> Update:
    """Everything after the word UPDATE."""
    run = cursor.tokens[cursor.at - 1 :]
    name = parse_name(cursor, "table")
    if not any(word(token) == "SET" for token in cursor.rest):
        raise cursor.problem(
            f'expected SET after "{name.text}"', hint=f"write UPDATE {name.text} SET column = value"
        )
    tree = _parse(cursor, run)
    if not tree.expressions:
        raise cursor.problem(
            "expected column = value after SET", hint="for example SET company = 'Acme'"
        )
    assignments = tuple(_assignment(cursor, part, name) for part in tree.expressions)
    return Update(name.text, assignments, _where(tree), name.line, name.column)


def _assignment(cursor: Cursor, part: exp.Expression, table: Word) -> tuple[str, exp.Expression]:
    if not isinstance(part, exp.EQ) or not isinstance(part.this, exp.Column):
        raise Unsupported(
            f"cannot set {part.sql(dialect='spark')}",
            hint="write UPDATE … SET column = value; replace a whole struct instead of one field",
            line=table.line,
            column=table.column,
        )
    return part.this.name, part.expression


def parse_delete(cursor: Cursor) -> Delete:
    """Everything after the word DELETE."""
    run = cursor.tokens[cursor.at - 1 :]
    cursor.expect("FROM", after="DELETE", hint="write DELETE FROM <table> WHERE …")
    name = parse_name(cursor, "table")
    return Delete(name.text, _where(_parse(cursor, run)), name.line, name.column)


def _parse(cursor: Cursor, run: Sequence[Token]) -> exp.Expression:
    tree = parse_tokens(cursor.text, run)
    cursor.at = len(cursor.tokens)
    return _without_alias(tree)


def _without_alias(tree: exp.Expression) -> exp.Expression:
    """Drop the qualifier of the table's own columns: the statement is about one table alone."""
    own = {tree.this.name.lower(), tree.this.alias.lower()} - {""}
    for column in list(tree.find_all(exp.Column)):
        if column.table.lower() in own and column.find_ancestor(exp.Query) is None:
            column.set("table", None)
    return tree


def _where(tree: exp.Expression) -> exp.Expression | None:
    where = tree.args.get("where")
    return where.this if where is not None else None
