"""From a syntax tree to a call: the function's name, its arguments, its FILTER and IGNORE NULLS."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from weft.logical.aggregates.algebra import CannotShare

WRAPPERS = exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A call as it was written."""

    name: str
    arguments: tuple[exp.Expression, ...]
    is_distinct: bool
    ignores_nulls: bool
    condition: exp.Expression | None


def innermost(node: exp.Expression) -> exp.Expression:
    while isinstance(node, WRAPPERS):
        node = node.this
    return node


def name_of(node: exp.Expression) -> str:
    """The function's name as Spark's SQL has it."""
    return node.sql(dialect="spark").partition("(")[0].strip().lower()


def read(node: exp.Expression) -> Written:
    """A call with what is wrapped around it."""
    condition, ignores = None, False
    while isinstance(node, WRAPPERS):
        if isinstance(node, exp.Filter):
            condition = node.expression.this
        elif isinstance(node, exp.IgnoreNulls):
            ignores = True
        elif isinstance(node, exp.WithinGroup):
            raise CannotShare(f"{name_of(node.this)} … WITHIN GROUP needs all the values in order")
        node = node.this
    arguments = _arguments(node)
    is_distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if is_distinct:
        arguments = list(arguments[0].expressions)
    return Written(name_of(node), tuple(arguments), is_distinct, ignores, condition)


def _arguments(node: exp.Expression) -> list[exp.Expression]:
    found: list[exp.Expression] = []
    for key in node.arg_types:
        value = node.args.get(key)
        values = value if isinstance(value, list) else [value]
        found += [v for v in values if isinstance(v, exp.Expression)]
    return [a.unnest() for a in found] if isinstance(node, exp.Any) else found
