"""Expressions that may fail on a row, as one that does not and one that says where it would.

    v / qty    value  try_divide(v, qty)
               fails  v IS NOT NULL AND qty IS NOT NULL AND try_divide(v, qty) IS NULL

Why: when queries share a pass, one row that fails must not stop the others. So the value is folded,
the failing rows are counted beside it, and who reads an answer that holds one is told (PSoup §3: a
query sees the rows that it would have seen alone, and no others).
Law: on every row, either Spark in ANSI mode raises an error for the expression and `fails` is TRUE,
or it does not, `fails` is FALSE and `value` is its value.
Sound because operands are taken in Spark's own order, the left one first, of / and % the right one,
and one that is NULL keeps the other from being evaluated; and because only operations are taken that
give NULL for values that are not NULL exactly where they fail. What is evaluated on some rows only,
behind AND, OR or COALESCE, is left alone; CASE and IF say by themselves which branch is taken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from weft.logical.canonical import canonical, text_of
from weft.logical.spelling import name_of
from weft.logical.total import (
    CALENDAR,
    COMPARISONS,
    FAMILIES,
    TEXT,
    TypeOf,
    are_comparable,
    family_of,
    is_total,
    is_total_cast,
)

SAFE = {
    exp.Add: exp.SafeAdd,
    exp.Sub: exp.SafeSubtract,
    exp.Mul: exp.SafeMultiply,
    exp.Div: exp.SafeDivide,
}
RIGHT_FIRST = (exp.Div, exp.Mod)
OVERFLOW, ZERO = "overflow", "division by zero"
INTEGERS = ("tinyint", "smallint", "int", "bigint")
MOST = 8  # operations that may fail in one expression: what says so grows with each


class NotTried(Exception):
    """An expression that cannot be split so."""


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """An expression that raises on no row, where the first one would have, and how."""

    value: exp.Expression
    fails: exp.Expression | None = None  # TRUE or FALSE on every row; None: it never does
    kinds: tuple[str, ...] = ()


def tried(expression: exp.Expression, type_of: TypeOf) -> Tried:
    """Split an expression over bare columns; raises NotTried."""
    found = _tried(expression, type_of)
    if len(found.kinds) > MOST:
        raise NotTried
    fails = None if found.fails is None else canonical(found.fails)
    # the value in canonical form: operands of + and * may change places, which changes no value
    value = _tried(canonical(expression), type_of).value if found.fails is not None else expression
    return Tried(canonical(value), fails, tuple(dict.fromkeys(found.kinds)))


def _tried(node: exp.Expression, type_of: TypeOf) -> Tried:
    node = node.unnest()
    if is_total(canonical(node), type_of):
        return Tried(node)
    if isinstance(node, (*SAFE, exp.Mod)):
        return _arithmetic(node, type_of)
    if isinstance(node, exp.Cast) and not node.args.get("safe"):
        return _cast(node, type_of)
    if isinstance(node, exp.Neg):
        return _negation(node, type_of)
    if isinstance(node, COMPARISONS) and not isinstance(node, exp.In | exp.NullSafeEQ):
        return _comparison(node, type_of)
    if isinstance(node, exp.Case | exp.If):
        return _choice(node, type_of)
    if isinstance(node, exp.Not | exp.Is) or _is_strict_call(node):
        inner = _tried(node.this, type_of)
        return Tried(_with(node, this=inner.value), inner.fails, inner.kinds)
    raise NotTried


def _family(node: exp.Expression, type_of: TypeOf) -> tuple[str, str]:
    return family_of(canonical(node), type_of)


def _is_strict_call(node: exp.Expression) -> bool:
    """A function of one value that is total over it."""
    operands = [c for c in node.iter_expressions() if not isinstance(c, exp.Var | exp.Literal)]
    is_known = isinstance(node, exp.Func) and name_of(node) in TEXT | CALENDAR
    return is_known and operands == [node.this]


def _arithmetic(node: exp.Binary, type_of: TypeOf) -> Tried:
    families = [_family(side, type_of)[0] for side in (node.this, node.expression)]
    if set(families) != {"number"}:
        raise NotTried  # dates and intervals, and strings that Spark would cast
    left, right = _tried(node.this, type_of), _tried(node.expression, type_of)
    sides = (right, left) if isinstance(node, RIGHT_FIRST) else (left, right)
    is_float = _family(node, type_of)[1] in ("float", "double")
    if is_float and not isinstance(node, RIGHT_FIRST):
        value = _with(node, this=_operand(left.value), expression=_operand(right.value))
        return _strict(value, sides)
    if isinstance(node, exp.Mod):
        value = exp.Anonymous(this="TRY_MOD", expressions=[left.value, right.value])
        kinds = (ZERO,)
    else:
        value = SAFE[type(node)](this=left.value.copy(), expression=right.value.copy())
        kinds = (OVERFLOW,) if not isinstance(node, exp.Div) else (ZERO,)
        if isinstance(node, exp.Div) and not is_float:
            kinds = (ZERO, OVERFLOW)
    return _failing(node, value, sides, kinds, type_of)


def _cast(node: exp.Cast, type_of: TypeOf) -> Tried:
    target = node.args["to"].sql(dialect="spark").lower()
    node = exp.Cast(
        this=node.this.copy(), to=node.args["to"].copy()
    )  # CAST is parsed to TryCast too
    if is_total_cast(canonical(node), type_of):
        inner = _tried(node.this, type_of)
        return Tried(_with(node, this=inner.value), inner.fails, inner.kinds)
    if not _raises_if_null(_family(node.this, type_of), target):
        raise NotTried
    inner = _tried(node.this, type_of)
    value = exp.TryCast(this=inner.value.copy(), to=node.args["to"].copy(), safe=True)
    kind = f"a value that does not fit {target.upper()}"
    return _failing(node, value, (inner,), (kind,), type_of)


def _raises_if_null(source: tuple[str, str], target: str) -> bool:
    """Whether a cast of a value that is not NULL gives NULL only where it would raise."""
    family, kind = source
    to = FAMILIES.get(re.split(r"[(<]", target)[0])
    if family == "string":
        return to is not None
    is_float = kind in ("float", "double")  # NaN becomes a NULL decimal without an error
    return family == "number" and to == "number" and not (is_float and target not in INTEGERS)


def _negation(node: exp.Neg, type_of: TypeOf) -> Tried:
    family, kind = _family(node.this, type_of)
    if family != "number":
        raise NotTried
    inner = _tried(node.this, type_of)
    if kind not in INTEGERS:  # floats and decimals have as many numbers below 0 as above
        return Tried(exp.Neg(this=_operand(inner.value)), inner.fails, inner.kinds)
    zero = exp.cast(exp.Literal.number(0), kind, dialect="spark")
    value = exp.SafeSubtract(this=zero, expression=inner.value.copy())
    return _failing(node, value, (inner,), (OVERFLOW,), type_of)


def _comparison(node: exp.Binary, type_of: TypeOf) -> Tried:
    if not are_comparable([canonical(node.this), canonical(node.expression)], type_of):
        raise NotTried
    left, right = _tried(node.this, type_of), _tried(node.expression, type_of)
    value = _with(node, this=_operand(left.value), expression=_operand(right.value))
    return _strict(value, (left, right))


def _choice(node: exp.Case | exp.If, type_of: TypeOf) -> Tried:
    """The branch that is taken fails; conditions must not."""
    if isinstance(node, exp.Case) and node.this is not None:
        raise NotTried
    ifs = node.args["ifs"] if isinstance(node, exp.Case) else [node]
    default = node.args.get("default" if isinstance(node, exp.Case) else "false")
    if not all(is_total(canonical(branch.this), type_of) for branch in ifs):
        raise NotTried
    taken = [(b.this, _tried(b.args["true"], type_of)) for b in ifs]
    rest = _tried(default, type_of) if default is not None else Tried(exp.null())
    value, fails = exp.Case(), exp.Case()
    for test, branch in taken:
        value = value.when(test.copy(), branch.value.copy())
        fails = fails.when(test.copy(), branch.fails or exp.false())
    kinds = (*(k for _, branch in taken for k in branch.kinds), *rest.kinds)
    return Tried(value.else_(rest.value.copy()), fails.else_(rest.fails or exp.false()), kinds)


def _failing(
    node: exp.Expression,
    value: exp.Expression,
    sides: tuple[Tried, ...],
    kinds: tuple[str, ...],
    type_of: TypeOf,
) -> Tried:
    """An operation that fails by itself where its operands are there and it gives nothing."""
    if type_of(text_of(canonical(value))) != type_of(text_of(canonical(node))):
        raise NotTried
    within = _strict(value, sides)
    tests = [_is_there(side.value) for side in sides] + [_is_null(value)]
    own = exp.and_(*[test for test in tests if test is not None])
    fails = own if within.fails is None else exp.or_(within.fails, own)
    return Tried(value, fails, (*within.kinds, *kinds))


def _strict(value: exp.Expression, sides: tuple[Tried, ...]) -> Tried:
    """An operation over operands, each evaluated only if those before it are not NULL."""
    found, before = [], []
    for side in sides:
        if side.fails is not None:
            found.append(exp.and_(*before, side.fails) if before else side.fails)
        there = _is_there(side.value)
        before += [there] if there is not None else []
    fails = exp.or_(*found) if found else None
    return Tried(value, fails, tuple(kind for side in sides for kind in side.kinds))


def _is_there(node: exp.Expression) -> exp.Expression | None:
    """A test that a value is not NULL; None for a literal."""
    if isinstance(node.unnest(), exp.Literal):
        return None
    return exp.Not(this=_is_null(node))


def _is_null(node: exp.Expression) -> exp.Expression:
    return exp.Is(this=_operand(node), expression=exp.Null())


def _operand(node: exp.Expression) -> exp.Expression:
    return exp.Paren(this=node.copy())


def _with(node: exp.Expression, **parts: exp.Expression) -> exp.Expression:
    made = node.copy()
    for name, part in parts.items():
        made.set(name, part.copy())
    return made
