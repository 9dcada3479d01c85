"""Column types: from tokens to the text that Spark writes in DDL."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token

from weft.errors import SqlError, TypeProblem, did_you_mean
from weft.sql.tokens import DIALECT, Cursor, Place, raw, word

# What a user may write, and Spark's own name for it in DDL.
SIMPLE = {
    "TINYINT": "TINYINT", "BYTE": "TINYINT", "SMALLINT": "SMALLINT", "SHORT": "SMALLINT",
    "INT": "INT", "INTEGER": "INT", "BIGINT": "BIGINT", "LONG": "BIGINT",
    "FLOAT": "FLOAT", "REAL": "FLOAT", "DOUBLE": "DOUBLE",
    "DECIMAL": "DECIMAL", "DEC": "DECIMAL", "NUMERIC": "DECIMAL",
    "STRING": "STRING", "BINARY": "BINARY", "BOOLEAN": "BOOLEAN", "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP", "TIMESTAMP_LTZ": "TIMESTAMP", "TIMESTAMP_NTZ": "TIMESTAMP_NTZ",
}  # fmt: skip
NESTED = ("ARRAY", "MAP", "STRUCT")
INSTEAD = {
    "VARCHAR": "STRING", "CHAR": "STRING", "CHARACTER": "STRING", "TEXT": "STRING", "UUID": "STRING",
    "JSON": "STRING", "VARIANT": "STRING", "DATETIME": "TIMESTAMP", "TIME": "TIMESTAMP or STRING",
    "TIMESTAMPTZ": "TIMESTAMP", "BOOL": "BOOLEAN", "NUMBER": "DECIMAL or DOUBLE", "BLOB": "BINARY",
    "BYTEA": "BINARY", "INTERVAL": "BIGINT, with the unit in the column's name", "STR": "STRING",
}  # fmt: skip
MOST_DIGITS = 38


def parse_type(text: str, run: Sequence[Token], column: str, place: Place) -> str:
    """The type as Spark writes it: INT, DECIMAL(10,2), STRUCT<aB: INT>. Field names keep their case."""
    if not run:
        raise _problem(f'column "{column}" has no type', place, hint=f"for example {column} STRING")
    _refuse_unknown_words(text, run)
    try:
        tree = exp.DataType.build(raw(text, run), dialect=DIALECT)
        return _ddl(tree)
    except (ParseError, _NotAType):
        where = Cursor(text, run).place
        raise _problem(f'"{raw(text, run)}" is not a type', where, hint=_example(run)) from None


class _NotAType(Exception):
    """Parsed, but not to a type that Spark has."""


def _refuse_unknown_words(text: str, run: Sequence[Token]) -> None:
    """Check each word that stands where a type does: sqlglot also knows other systems' types."""
    is_struct = False
    for i, token in enumerate(run):
        if not (token.text.isidentifier() and _stands_for_type(run, i, is_struct)):
            continue
        name = word(token)
        is_struct = is_struct or name == "STRUCT"
        if name not in SIMPLE and name not in NESTED and name != "DOUBLE PRECISION":
            raise _unknown(text, token)


def _stands_for_type(run: Sequence[Token], i: int, is_struct: bool) -> bool:
    """The first word, one after a colon, and one after < or a comma outside of a struct."""
    before = run[i - 1].text if i else ""
    return i == 0 or before == ":" or (before in {"<", ","} and not is_struct)


def _unknown(text: str, token: Token) -> SqlError:
    name, place = token.text.upper(), Cursor(text, [token]).place
    if name in INSTEAD:
        return _problem(f"type {name} is not available", place, hint=f"use {INSTEAD[name]}")
    return _problem(
        f'"{token.text}" is not a type',
        place,
        detail=f"the types are {', '.join(dict.fromkeys(SIMPLE.values()))}, {', '.join(NESTED)}",
        hint=did_you_mean(token.text, [*SIMPLE, *NESTED]),
    )


def _ddl(tree: exp.Expression) -> str:
    if not isinstance(tree, exp.DataType):
        raise _NotAType
    kind, inner = tree.this.value if isinstance(tree.this, exp.DType) else "", tree.expressions
    if kind == "ARRAY" and len(inner) == 1:
        return f"ARRAY<{_ddl(inner[0])}>"
    if kind == "MAP" and len(inner) == 2:
        return f"MAP<{_ddl(inner[0])}, {_ddl(inner[1])}>"
    if kind == "STRUCT" and inner:
        return f"STRUCT<{', '.join(_field(field) for field in inner)}>"
    if kind == "DECIMAL":
        return _decimal([int(size.name) for size in inner])
    name = tree.sql(dialect=DIALECT).upper()
    if inner or name not in SIMPLE:
        raise _NotAType
    return SIMPLE[name]


def _field(field: exp.Expression) -> str:
    if not isinstance(field, exp.ColumnDef) or not isinstance(field.kind, exp.DataType):
        raise _NotAType
    return f"{field.this.sql(dialect=DIALECT)}: {_ddl(field.kind)}"


def _decimal(sizes: Sequence[int]) -> str:
    precision, scale = (*sizes, 0)[:2] if sizes else (10, 0)
    if not 0 < precision <= MOST_DIGITS or not 0 <= scale <= precision:
        raise _NotAType
    return f"DECIMAL({precision},{scale})"


def _example(run: Sequence[Token]) -> str | None:
    return {
        "DECIMAL": "DECIMAL(precision, scale) has at most 38 digits, for example DECIMAL(10, 2)",
        "ARRAY": "say what it holds, for example ARRAY<STRING>",
        "MAP": "say what it holds, for example MAP<STRING, INT>",
        "STRUCT": "name its fields, for example STRUCT<x: INT, y: STRING>",
    }.get(word(run[0]), "write the type alone, for example DOUBLE")


def _problem(
    problem: str, place: Place, *, detail: str | None = None, hint: str | None = None
) -> TypeProblem:
    return TypeProblem(
        problem,
        detail=detail,
        hint=hint,
        code="WEFT_UNKNOWN_TYPE",
        line=place.line,
        column=place.column,
    )
