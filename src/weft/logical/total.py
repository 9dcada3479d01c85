"""Total expressions: those that give a value, or NULL, on every row and never raise an error.

Why: in one query `b <> 0 AND a / b > 2` divides only where b is not 0; when queries share a pass,
each expression is evaluated on the rows of all of them. What may raise (ANSI overflow, division by
zero, malformed casts) has to stay behind its query's other conditions.
Sound because only what is known to be total is said to be; anything else may raise.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from weft.logical.spelling import name_of

TypeOf = Callable[[str], str]  # Spark SQL over a stream's columns → its Spark DDL type

LEAVES = (exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Var, exp.DataType,
          exp.DataTypeParam, exp.Interval)  # fmt: skip
LOGIC = (exp.And, exp.Or, exp.Not, exp.Paren, exp.Is, exp.Case, exp.If, exp.Tuple, exp.Lambda)
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.In)
ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Neg)
# Total on strings, and what Spark casts to strings without failing.
TEXT = frozenset(
    ["UPPER", "LOWER", "LENGTH", "CHAR_LENGTH", "TRIM", "LTRIM", "RTRIM", "CONCAT", "STARTS_WITH",
     "STARTSWITH", "ENDSWITH", "ENDS_WITH", "CONTAINS", "REVERSE", "INITCAP", "ASCII", "MD5"]
)  # fmt: skip
# Total on numbers: NULL where the operation fails.
TRY = (exp.SafeAdd, exp.SafeSubtract, exp.SafeMultiply, exp.SafeDivide)
CHOICE = frozenset(["COALESCE", "NULLIF", "IFNULL", "NVL"])
# Total on dates and timestamps.
CALENDAR = frozenset(
    ["YEAR", "QUARTER", "MONTH", "WEEK", "WEEK_OF_YEAR", "DAY", "DAY_OF_MONTH", "DAY_OF_WEEK",
     "DAYOFMONTH", "DAYOFWEEK", "DAY_OF_YEAR", "HOUR", "MINUTE", "SECOND", "EXTRACT",
     "TS_OR_DS_TO_DATE", "TIMESTAMP_TRUNC", "DATE_TRUNC", "UNIX_MICROS"]
)  # fmt: skip
FAMILIES = {
    **dict.fromkeys(
        ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"), "number"
    ),
    **dict.fromkeys(("date", "timestamp", "timestamp_ltz", "timestamp_ntz"), "time"),
    "string": "string",
    "boolean": "boolean",
}


def hazards(expression: exp.Expression) -> int:
    """How many operations in it might raise an error, whatever the types.

    Operands of AND and OR are ordered by it: a condition that guards another is simpler than it.
    """
    return sum(not _looks_total(node) for node in expression.walk())


def is_total(expression: exp.Expression, type_of: TypeOf) -> bool:
    """Whether a canonical expression raises an error on no row."""
    return all(_is_total(node, type_of) for node in expression.walk())


def _looks_total(node: exp.Expression) -> bool:
    if isinstance(
        node, (*LEAVES, *LOGIC, *COMPARISONS, exp.Like, exp.ILike, exp.RegexpLike, exp.DPipe)
    ):
        return True
    return isinstance(node, exp.Func) and name_of(node) in TEXT | CHOICE | CALENDAR | {"IS_NAN"}


def _is_total(node: exp.Expression, type_of: TypeOf) -> bool:
    """Whether one node is total over operands that are."""
    if isinstance(node, (*LEAVES, *LOGIC, exp.DPipe)):
        return True
    if isinstance(node, COMPARISONS):
        return are_comparable([node.this, *_others(node)], type_of)
    if isinstance(node, ARITHMETIC):
        return family_of(node, type_of)[1] in ("double", "float") or _is_signed_number(node)
    if isinstance(node, exp.Div | exp.Mod):
        is_float = isinstance(node, exp.Mod) or family_of(node, type_of)[1] == "double"
        return is_float and _is_nonzero(node.expression)
    if isinstance(node, exp.Like | exp.ILike | exp.RegexpLike):
        return _is_pattern(node)
    if isinstance(node, exp.Cast):
        return is_total_cast(node, type_of)
    return isinstance(node, exp.Func) and _is_total_call(node, type_of)


def _others(node: exp.Expression) -> list[exp.Expression]:
    return node.expressions if isinstance(node, exp.In) else [node.expression]


def are_comparable(sides: list[exp.Expression], type_of: TypeOf) -> bool:
    """No implicit cast from a string, which may be malformed."""
    return len({family_of(side, type_of)[0] for side in sides} - {"null"}) <= 1


def family_of(node: exp.Expression, type_of: TypeOf) -> tuple[str, str]:
    node = node.unnest()
    if isinstance(node, exp.Null):
        return "null", "null"
    if isinstance(node, exp.Literal):
        return ("string", "string") if node.is_string else ("number", "literal")
    if _is_signed_number(node):
        return "number", "literal"
    name = _type(node, type_of).strip().lower()
    return FAMILIES.get(re.split(r"[(<]", name)[0], name), name


def _type(node: exp.Expression, type_of: TypeOf) -> str:
    if isinstance(node, exp.Boolean | exp.Connector | exp.Not | exp.Predicate):
        return "boolean"
    if isinstance(node, exp.Cast):
        return node.args["to"].sql(dialect="spark")
    return type_of(node.sql(dialect="spark"))


def _is_signed_number(node: exp.Expression) -> bool:
    return isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)


def _is_nonzero(node: exp.Expression) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and float(node.this) != 0


def _is_pattern(node: exp.Expression) -> bool:
    """A constant pattern that is surely well-formed."""
    pattern = node.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        return False
    if not isinstance(node, exp.RegexpLike):
        return "\\" not in pattern.this
    try:
        re.compile(pattern.this)
    except re.error:
        return False
    return True


def is_total_cast(node: exp.Cast, type_of: TypeOf) -> bool:
    target = node.args["to"].sql(dialect="spark").lower()
    if isinstance(node, exp.TryCast) or node.args.get("safe") or target == "string":
        return True
    if isinstance(node.this, exp.Literal):
        return True  # Spark evaluates it once, before any row
    family, source = family_of(node.this, type_of)
    if family == "number":
        return target == "double" or (
            target == "bigint" and source in ("tinyint", "smallint", "int")
        )
    return family == "time" and target in ("date", "timestamp")


def _is_total_call(node: exp.Func, type_of: TypeOf) -> bool:
    name = name_of(node)
    if name in TEXT:
        return True
    arguments = [child for child in node.iter_expressions() if not isinstance(child, exp.Var)]
    if isinstance(node, TRY) or name == "TRY_MOD":
        return {family_of(a, type_of)[0] for a in arguments} == {"number"}
    if name in CHOICE:
        return are_comparable(arguments, type_of)
    if name in CALENDAR:
        inner = [a.this if isinstance(a, exp.TsOrDsToDate) else a for a in arguments]
        inner = [a for a in inner if not isinstance(a, exp.Literal)]
        return all(family_of(a, type_of)[0] == "time" for a in inner)
    return name == "IS_NAN" and family_of(arguments[0], type_of)[1] in ("double", "float")
