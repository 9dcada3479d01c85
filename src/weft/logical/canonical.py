"""Canonical form: one spelling for expressions that mean the same, so that queries meet.

Law: canonical(e) has the value of e on every row, NULL and NaN included, and
canonical(canonical(e)) = canonical(e). Two expressions are one exactly if their texts are equal.
Why: `a < 5 AND b = 1` and `1 = b AND NOT a >= 5` must be one predicate, `CAT(x)` and `cat( x )` one
dimension. Source: ARGUS §3.3 (canonical group expressions), PSoup §4.2.2 (boolean factors).
Sound because each rule holds in Kleene's three-valued logic, over Spark's total order of values
(NaN is the largest and equals itself, 0.0 = -0.0), and none looks at types: + and * commute, but
are not re-associated (floats); literals of different types stay apart. AND and OR may come out
in another order, as in Spark itself, guards first: see weft.logical.total for what may raise.
What cannot be repeated (rand()) and what holds a nested query only has its names normalised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from sqlglot import exp

from weft.logical.spelling import holds_query, is_deterministic, respell
from weft.logical.total import hazards

Rule = Callable[[exp.Expression], exp.Expression]

NEGATED = {exp.LT: exp.GTE, exp.GTE: exp.LT, exp.GT: exp.LTE, exp.LTE: exp.GT,
           exp.EQ: exp.NEQ, exp.NEQ: exp.EQ}  # fmt: skip
FLIPPED = {exp.LT: exp.GT, exp.GT: exp.LT, exp.LTE: exp.GTE, exp.GTE: exp.LTE,
           exp.EQ: exp.EQ, exp.NEQ: exp.NEQ, exp.NullSafeEQ: exp.NullSafeEQ}  # fmt: skip
OPERATORS = (exp.Binary, exp.Unary, exp.Predicate)  # written with operands, not as a call
BARE = (exp.Paren, exp.Dot, exp.Any, exp.All)
VERBATIM = (exp.Any, exp.All, exp.Interval, exp.DataType)  # their parentheses are syntax


def canonical(expression: exp.Expression) -> exp.Expression:
    """The one spelling of an expression over bare columns. Its argument stays as it is."""
    tree = respell(expression)
    if holds_query(tree) or not is_deterministic(tree):
        return tree
    return _form(tree)


def canonical_text(expression: exp.Expression) -> str:
    """Spark SQL text of the canonical form: its identity."""
    return text_of(canonical(expression))


def text_of(expression: exp.Expression) -> str:
    return expression.sql(dialect="spark")


def conjuncts(expression: exp.Expression) -> tuple[exp.Expression, ...]:
    """The factors of a condition: what AND joins at its top."""
    return tuple(_parts(expression, exp.And))


def is_constant(node: exp.Expression) -> bool:
    return node.find(exp.Column, exp.Star, exp.Identifier) is None


def conjoin(factors: Iterable[exp.Expression]) -> exp.Expression:
    """The canonical AND of canonical factors."""
    return _connect(exp.And, factors)


def _form(node: exp.Expression) -> exp.Expression:
    if isinstance(node, VERBATIM):
        return node.copy()
    if isinstance(node, exp.Paren):
        return _form(node.this)
    if isinstance(node, exp.Connector) and type(node) in CONNECTED:
        parts = [_form(part) for part in _parts(node, type(node))]
        return _connect(type(node), parts)
    return RULES.get(type(node), lambda same: same)(_with_formed_children(node))


def _with_formed_children(node: exp.Expression) -> exp.Expression:
    """A copy of one node over canonical children, in parentheses where they are operands."""
    operands = isinstance(node, OPERATORS) and not isinstance(node, exp.Escape)
    operands = operands or isinstance(node, exp.Bracket)

    def child(value: object) -> object:
        if isinstance(value, list):
            return [child(item) for item in value]
        if not isinstance(value, exp.Expression):
            return value
        return _operand(_form(value)) if operands else _form(value)

    return type(node)(**{name: child(value) for name, value in node.args.items()})


def _operand(node: exp.Expression) -> exp.Expression:
    """Parentheses around whatever is itself written with operators: no precedence to know."""
    is_number = isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)
    if isinstance(node, OPERATORS) and not is_number and not isinstance(node, BARE):
        return exp.Paren(this=node)
    return node


def _parts(node: exp.Expression, kind: type[exp.Expression]) -> list[exp.Expression]:
    """The operands of nested ANDs (or ORs), from left to right, without recursion."""
    found, waiting = [], [node]
    while waiting:
        top = waiting.pop().unnest()
        if type(top) is kind:
            waiting += [top.expression, top.this]
        else:
            found.append(top)
    return found


# --- AND, OR, NOT -------------------------------------------------------------------------------


def _connect(kind: type[exp.Connector], formed: Iterable[exp.Expression]) -> exp.Expression:
    """Flatten, drop duplicates and units, sort: AND and OR are a lattice in Kleene's logic too."""
    unit = exp.Boolean(this=kind is exp.And)
    zero = exp.Boolean(this=kind is not exp.And)
    flat = [part for each in formed for part in _parts(each, kind)]
    named = {text_of(part): part for part in flat if part != unit}
    if text_of(zero) in named:
        return zero
    merged = _merge_points(kind, named)
    if len(merged) < 2:
        return next(iter(merged.values()), unit)
    ordered = [_member(part) for _, part in sorted(merged.items(), key=_by_hazard)]
    return reduce(lambda left, right: kind(this=left, expression=right), ordered)


def _by_hazard(item: tuple[str, exp.Expression]) -> tuple[int, str]:
    """Guards first: b <> 0 stands before a / b > 2, which it keeps from raising."""
    return hazards(item[1]), item[0]


def _member(node: exp.Expression) -> exp.Expression:
    """An operand of AND or OR: comparisons stand without parentheses."""
    return exp.Paren(this=node) if isinstance(node, exp.Connector) else node


def _merge_points(
    kind: type[exp.Connector], named: dict[str, exp.Expression]
) -> dict[str, exp.Expression]:
    """x = 1 OR x = 2 is x IN (1, 2); x <> 1 AND x <> 2 is NOT x IN (1, 2), for like literals."""
    groups: dict[tuple[str, str], list[str]] = {}
    for text, part in named.items():
        if points := _points(kind, part):
            groups.setdefault((text_of(points[0]), _kind(points[1])), []).append(text)
    merged = dict(named)
    for (_, like), texts in groups.items():
        if len(texts) < 2 or like == "":
            continue
        subject = _points(kind, named[texts[0]])[0]
        values = [value for text in texts for value in _points(kind, merged.pop(text))[1]]
        whole = _in(exp.In(this=subject.copy(), expressions=values))
        whole = whole if kind is exp.Or else exp.Not(this=whole)
        merged[text_of(whole)] = whole
    return merged


def _points(
    kind: type[exp.Connector], part: exp.Expression
) -> tuple[exp.Expression, list[exp.Expression]] | None:
    """Subject and constants of x = c and x IN (c, …) under OR, of their negations under AND."""
    if kind is exp.And:
        part = _negate(part) if isinstance(part, exp.Not | exp.NEQ) else exp.Null()
    if isinstance(part, exp.EQ) and is_constant(part.expression):
        return part.this, [part.expression]
    if isinstance(part, exp.In) and not part.args.get("unnest"):
        return part.this, list(part.expressions)
    return None


def _kind(values: list[exp.Expression]) -> str:
    """Literals that Spark compares in one type whatever stands beside them; "" if not such."""
    plain = [v.this if isinstance(v, exp.Neg) else v for v in values]
    if not all(isinstance(v, exp.Literal) for v in plain):
        return ""
    if all(v.is_string for v in values):
        return "string"
    return "integer" if all(v.is_int for v in plain) else ""


def _not(node: exp.Not) -> exp.Expression:
    return _negate(node.this.unnest())


def _negate(node: exp.Expression) -> exp.Expression:
    """NOT, pushed down to where it ends: De Morgan and the opposite comparison."""
    if type(node) in NEGATED:
        return NEGATED[type(node)](this=node.this, expression=node.expression)
    if type(node) in CONNECTED:
        return _connect(CONNECTED[type(node)], map(_negate, _parts(node, type(node))))
    if isinstance(node, exp.Not):
        return node.this.unnest()
    if isinstance(node, exp.Boolean):
        return exp.Boolean(this=not node.this)
    return exp.Not(this=_operand(node) if isinstance(node, exp.Unary) else node)


CONNECTED = {exp.And: exp.Or, exp.Or: exp.And}


# --- comparisons and arithmetic -----------------------------------------------------------------


def _compare(node: exp.Binary) -> exp.Expression:
    """Constants stand right; two of a kind in the order of their texts."""
    left, right = node.this, node.expression
    if (is_constant(left), text_of(left)) > (is_constant(right), text_of(right)):
        return FLIPPED[type(node)](this=right, expression=left)
    return node


def _commute(node: exp.Binary) -> exp.Expression:
    ordered = sorted(
        (node.this, node.expression), key=lambda side: (is_constant(side), text_of(side))
    )
    return type(node)(this=ordered[0], expression=ordered[1])


def _between(node: exp.Between) -> exp.Expression:
    if node.args.get("symmetric"):
        return node
    low = _compare(exp.GTE(this=node.this, expression=node.args["low"]))
    high = _compare(exp.LTE(this=node.this.copy(), expression=node.args["high"]))
    return _connect(exp.And, (low, high))


def _in(node: exp.In) -> exp.Expression:
    """Like literals sorted and without duplicates; one value is an equality."""
    if node.args.get("query") or node.args.get("unnest") or not node.expressions:
        return node
    values = list({text_of(value): value for value in node.expressions}.values())
    if len(values) == 1 and isinstance(values[0].unnest(), exp.Literal | exp.Neg | exp.Cast):
        return _compare(exp.EQ(this=node.this, expression=values[0]))
    if _kind(values) == "string":
        values.sort(key=lambda value: value.name)
    elif _kind(values) == "integer":
        values.sort(key=lambda value: int(text_of(value)))
    return exp.In(this=node.this, expressions=values)


def _differs(node: exp.NullSafeNEQ) -> exp.Expression:
    return exp.Not(this=_compare(exp.NullSafeEQ(this=node.this, expression=node.expression)))


RULES: dict[type[exp.Expression], Rule] = {
    exp.Not: _not,
    exp.Between: _between,
    exp.In: _in,
    exp.NullSafeNEQ: _differs,
    exp.EqualNull: lambda n: _compare(
        exp.NullSafeEQ(this=_operand(n.this), expression=_operand(n.expression))
    ),
    **dict.fromkeys(FLIPPED, _compare),
    **dict.fromkeys((exp.Add, exp.Mul, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor), _commute),
}
