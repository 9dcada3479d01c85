"""CREATE AGGREGATE: basic statistics, how each merges, and a finish, all as SQL.

    CREATE AGGREGATE vwap(price DOUBLE, qty INT)
      WITH STATISTICS (pv DOUBLE = sum(price * qty) MERGE sum, q BIGINT = sum(qty))
      FINISH pv / q

MERGE is the name of a function of one argument, or an aggregate over the statistic's own name; it
may be left out where the statistic is one call of a built-in that is known to merge. Or a class of
Python does the work, named so that it can be imported:

    CREATE AGGREGATE spread(x DOUBLE) RETURNS DOUBLE AS PYTHON 'my_module:Spread'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from weft.errors import NameTaken, SyntaxProblem, UnknownName, did_you_mean
from weft.logical.aggregates import (
    BUILT_IN,
    BasicStatistic,
    Parameter,
    PythonAggregate,
    SqlAggregate,
)
from weft.logical.aggregates.defined import is_mergeable_call
from weft.sql.functions import check_function, check_reproducible, spark_functions
from weft.sql.names import parse_new_name
from weft.sql.scope import position
from weft.sql.select import parse_tokens
from weft.sql.statements import CreateAggregate, Word
from weft.sql.tokens import NAMES, Cursor, Place, raw, split, word
from weft.sql.types import parse_type

FORM = "CREATE AGGREGATE <name>(x DOUBLE) WITH STATISTICS (s DOUBLE = sum(x)) FINISH s"
PYTHON_FORM = "CREATE AGGREGATE <name>(x DOUBLE) RETURNS DOUBLE AS PYTHON 'module:Class'"
TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def parse_create_aggregate(cursor: Cursor, or_replace: bool) -> CreateAggregate:
    """Everything after the words CREATE [OR REPLACE] AGGREGATE."""
    place = cursor.place
    if_not_exists = cursor.takes("IF", "NOT", "EXISTS")
    if or_replace and if_not_exists:
        raise SyntaxProblem(
            "OR REPLACE and IF NOT EXISTS contradict each other",
            hint="keep one of them",
            line=place.line,
            column=place.column,
        )
    name = parse_new_name(cursor, "user-defined aggregate")
    _refuse_spark_name(name)
    parameters = _parameters(cursor, name)
    make = _in_python if cursor.takes("RETURNS") else _in_sql
    definition = make(cursor, name, parameters)
    text = raw(cursor.text, cursor.tokens)
    cursor.at = len(cursor.tokens)
    return CreateAggregate(definition, text, or_replace, if_not_exists, name.line, name.column)


def _in_sql(cursor: Cursor, name: Word, parameters: tuple[Parameter, ...]) -> SqlAggregate:
    cursor.expect("WITH", "STATISTICS", after="the parameters", hint=f"write {FORM}")
    statistics = _statistics(cursor, parameters)
    cursor.expect("FINISH", after="the statistics", hint=f"write {FORM}")
    return SqlAggregate(name.text, parameters, statistics, _finish(cursor, statistics))


def _in_python(cursor: Cursor, name: Word, parameters: tuple[Parameter, ...]) -> PythonAggregate:
    """Everything after the word RETURNS."""
    place = cursor.place
    returns = parse_type(cursor.text, _until(cursor, "AS"), name.text, place)
    cursor.expect("AS", "PYTHON", after="the type", hint=f"write {PYTHON_FORM}")
    token = cursor.now
    if token is None or token.token_type is not TokenType.STRING:
        raise cursor.problem("expected the name of a class", hint=f"write {PYTHON_FORM}")
    if not TARGET.fullmatch(token.text):
        raise cursor.problem(f"'{token.text}' does not name a class", hint=f"write {PYTHON_FORM}")
    cursor.next()
    if not cursor.is_done:
        raise cursor.problem("expected the end of the statement", hint=f"write {PYTHON_FORM}")
    return PythonAggregate(name.text, parameters, returns, token.text)


def _refuse_spark_name(name: Word) -> None:
    if name.text.lower() in spark_functions():
        raise NameTaken(
            f'"{name.text}" is a function of Spark',
            hint="use another name",
            line=name.line,
            column=name.column,
        )


def _parameters(cursor: Cursor, name: Word) -> tuple[Parameter, ...]:
    if not cursor.sees("("):
        raise cursor.problem(
            f'expected the parameters of "{name.text}"', hint=f"for example {name.text}(x DOUBLE)"
        )
    inside = cursor.parenthesized("the parameters")
    if inside.is_done:
        raise inside.problem("expected a parameter", hint="for example x DOUBLE")
    found: list[Parameter] = []
    for part in split(inside.rest, TokenType.COMMA):
        item = _item(inside, part, "parameter", "x DOUBLE")
        place, text = item.place, item.next().text
        _refuse_twice(text, (p.name for p in found), "parameter", place)
        found.append(Parameter(text, parse_type(item.text, item.rest, text, item.place)))
    return tuple(found)


def _item(inside: Cursor, part: Sequence[Token], what: str, example: str) -> Cursor:
    item = Cursor(inside.text, part)
    if item.now is None or item.now.token_type not in NAMES:
        around = item if part else inside
        raise around.problem(f"expected the name of a {what}", hint=f"for example {example}")
    return item


def _refuse_twice(name: str, known: Iterable[str], what: str, place: Place) -> None:
    if name.lower() in (other.lower() for other in known):
        raise SyntaxProblem(
            f'the {what} "{name}" is declared twice',
            detail="names do not differ by case",
            hint="rename one of them",
            code="WEFT_DUPLICATE_COLUMN",
            line=place.line,
            column=place.column,
        )


def _statistics(cursor: Cursor, parameters: tuple[Parameter, ...]) -> tuple[BasicStatistic, ...]:
    inside = cursor.parenthesized("the statistics")
    if inside.is_done:
        raise inside.problem("expected a statistic", hint="for example s DOUBLE = sum(x)")
    found: list[BasicStatistic] = []
    for part in split(inside.rest, TokenType.COMMA):
        item = _item(inside, part, "statistic", "s DOUBLE = sum(x)")
        place, name = item.place, item.next().text
        _refuse_twice(name, (p.name for p in parameters), "name", place)
        _refuse_twice(name, (s.name for s in found), "statistic", place)
        found.append(_statistic(item, name, place, parameters))
    return tuple(found)


def _statistic(
    item: Cursor, name: str, place: Place, parameters: tuple[Parameter, ...]
) -> BasicStatistic:
    type_tokens = _until(item, "=")
    if item.is_done:
        raise item.problem(
            f'expected = and an aggregate after "{name}"',
            hint=f"for example {name} DOUBLE = sum(x)",
        )
    type_ = parse_type(item.text, type_tokens, name, place)
    item.next()
    start = item.place
    fold = _expression(item, _until(item, "MERGE"), f'an aggregate for "{name}"')
    _check_names(fold, [p.name for p in parameters], "parameter")
    if not _aggregates(fold):
        raise SyntaxProblem(
            f'the statistic "{name}" does not aggregate rows',
            hint=f"write an aggregate over the parameters, for example {name} DOUBLE = sum(x)",
            line=start.line,
            column=start.column,
        )
    merge = _merge(item, name) if item.takes("MERGE") else None
    if merge is None:
        _require_known_merge(fold, name, start)
    return BasicStatistic(name, type_, fold, merge)


def _until(item: Cursor, stop: str) -> Sequence[Token]:
    """The tokens up to a word outside all parentheses."""
    start, depth = item.at, 0
    while item.now is not None and not (depth == 0 and word(item.now) == stop):
        token = item.next()
        depth += (word(token) == "(") - (word(token) == ")")
    return item.tokens[start : item.at]


def _expression(item: Cursor, run: Sequence[Token], what: str) -> exp.Expression:
    if not run:
        raise item.problem(f"expected {what}", hint="for example sum(x)")
    tree = parse_tokens(item.text, run)
    for node in tree.walk():
        check_function(node)
        check_reproducible(node)
        if isinstance(node, exp.Query):
            raise SyntaxProblem(
                "an aggregate cannot read a table",
                hint="use its parameters only",
                **position(node),
            )
    return tree


def _merge(item: Cursor, name: str) -> exp.Expression:
    """A function's name, or a whole expression over the statistic."""
    if item.is_done:
        raise item.problem("expected a function after MERGE", hint="for example MERGE sum")
    if item.ahead() is None and item.now.token_type in NAMES:
        function = item.now.text.lower()
        if function not in spark_functions():
            place = item.place
            raise UnknownName(
                f'function "{item.now.text}" does not exist',
                hint=did_you_mean(function, sorted(spark_functions())),
                code="WEFT_UNKNOWN_FUNCTION",
                line=place.line,
                column=place.column,
            )
        item.next()
        return exp.func(function, exp.column(name), dialect="spark")
    start = item.place
    tree = _expression(item, item.rest, "a merge")
    item.at = len(item.tokens)
    _check_names(tree, [name], "statistic")
    if not _aggregates(tree):
        raise SyntaxProblem(
            f'the merge of "{name}" does not aggregate',
            hint=f"write MERGE sum, or an aggregate over {name}",
            line=start.line,
            column=start.column,
        )
    return tree


def _require_known_merge(fold: exp.Expression, name: str, place: Place) -> None:
    if is_mergeable_call(fold, BUILT_IN):
        return
    raise SyntaxProblem(
        f'it is not known how the statistic "{name}" merges',
        detail=f"{fold.sql(dialect='spark')} is not one call of a function that merges by itself",
        hint=f"say it: {name} … = … MERGE <function>, or use one call of sum, count, min, max, …",
        line=place.line,
        column=place.column,
    )


def _finish(cursor: Cursor, statistics: tuple[BasicStatistic, ...]) -> exp.Expression:
    start = cursor.place
    finish = _expression(cursor, cursor.rest, "an expression after FINISH")
    _check_names(finish, [s.name for s in statistics], "statistic")
    if _aggregates(finish):
        raise SyntaxProblem(
            "FINISH cannot aggregate: it is given one merged row",
            hint="make the aggregate a statistic, and use its name here",
            line=start.line,
            column=start.column,
        )
    return finish


def _aggregates(tree: exp.Expression) -> bool:
    return any(
        isinstance(n, exp.AggFunc)
        or (isinstance(n, exp.Anonymous) and BUILT_IN.find(n.name) is not None)
        for n in tree.walk()
    )


def _check_names(tree: exp.Expression, known: list[str], what: str) -> None:
    """Only the parameters (or statistics) may be named; lambdas name their own."""
    inner = {e.name.lower() for f in tree.find_all(exp.Lambda) for e in f.expressions}
    allowed = {name.lower() for name in known} | inner
    for column in tree.find_all(exp.Column):
        first = column.parts[0].name
        if isinstance(column.this, exp.Star) or first.lower() not in allowed:
            raise UnknownName(
                f'"{first or "*"}" is not a {what} of this aggregate',
                detail=f"its {what}s are {', '.join(known)}",
                hint=did_you_mean(first, known),
                code="WEFT_UNKNOWN_COLUMN",
                **position(column),
            )
