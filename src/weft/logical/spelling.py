"""Spelling: names, quotes and literals that Spark reads as the same, each written in one way."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.dialects.spark import Spark

# Functions that give something else each time they are called on the same row.
UNREPEATABLE = frozenset(
    ["RAND", "RANDN", "RANDOM", "RANDSTR", "UNIFORM", "UUID", "SHUFFLE", "SPARK_PARTITION_ID",
     "MONOTONICALLY_INCREASING_ID", "INPUT_FILE_NAME", "INPUT_FILE_BLOCK_START",
     "INPUT_FILE_BLOCK_LENGTH", "JAVA_METHOD", "REFLECT", "TRY_REFLECT"]
)  # fmt: skip
UNITS = {
    "YYYY": "YEAR", "YY": "YEAR", "MM": "MONTH", "MON": "MONTH", "DD": "DAY",
}  # fmt: skip
PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
KEPT_NAMES = (exp.PropertyEQ, exp.Alias, exp.ColumnDef, exp.DataType)  # they name what comes out


def respell(expression: exp.Expression) -> exp.Expression:
    """A copy with names in lower case, quoted only where needed, and literals written one way."""
    holder = exp.Paren(this=expression.copy())
    for node in reversed(list(holder.this.dfs())):  # leaves first: a new node keeps its children
        fresh = _respelled(node)
        if fresh is not node:
            node.replace(fresh)
    return holder.this.pop()


def is_deterministic(expression: exp.Expression) -> bool:
    """Whether the same row always gives the same value."""
    return not any(name_of(call) in UNREPEATABLE for call in expression.find_all(exp.Func))


def holds_query(expression: exp.Expression) -> bool:
    return expression.find(exp.Query) is not None


def name_of(call: exp.Func) -> str:
    return (call.name if isinstance(call, exp.Anonymous) else call.sql_name()).upper()


def _respelled(node: exp.Expression) -> exp.Expression:
    if isinstance(node, exp.Identifier) and not isinstance(node.parent, KEPT_NAMES):
        return _identifier(node.name.lower())
    if isinstance(node, exp.Anonymous):
        return _call(node)
    if isinstance(node, exp.RawString):
        return exp.Literal.string(node.this)
    if isinstance(node, exp.Literal) and not node.is_string:
        return exp.Literal.number(_number(node.this))
    if isinstance(node, exp.TryCast) and not node.args.get("safe"):  # what CAST is parsed to
        return exp.Cast(this=node.this.copy(), to=node.args["to"].copy())
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
        _respell_unit(node)
    return node


def _identifier(name: str) -> exp.Identifier:
    is_word = name.upper() in Spark.Tokenizer.KEYWORDS
    return exp.to_identifier(name, quoted=is_word or PLAIN.fullmatch(name) is None)


def _call(node: exp.Anonymous) -> exp.Expression:
    name, args = node.name.upper(), node.expressions
    if name in ("ISNULL", "ISNOTNULL") and len(args) == 1:
        test = exp.Is(this=exp.Paren(this=args[0].copy()), expression=exp.Null())
        return test if name == "ISNULL" else exp.Not(this=test)
    node.set("this", name)
    return node


def _number(text: str) -> str:
    """Digits as Python writes them where the type stays: 007 is 7, 1E3 is 1e3, 1.50 stays 1.50."""
    return str(int(text)) if text.isdigit() else text.lower()


def _respell_unit(node: exp.TimestampTrunc | exp.DateTrunc) -> None:
    unit = node.args.get("unit")
    if isinstance(unit, exp.Var | exp.Literal):
        unit.set("this", UNITS.get(unit.name.upper(), unit.name.upper()))
