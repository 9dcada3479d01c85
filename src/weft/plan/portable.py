"""Expressions of a finish in DuckDB's SQL, with the meaning they have in Spark.

A short list of nodes, each with the types for which both engines agree, or can be made to: operands
are cast to Spark's result type, a zero divisor is an error, ROUND goes by the decimal digits of a
double. Anything else raises NotPortable, and Spark finishes instead. Types are Spark's own: it is
asked for each expression, with NULLs of their types in place of merged values.

Left out on purpose: UPPER and LOWER (ß), decimal division, casts between texts and numbers, LIKE
with a backslash, floor and ceil of doubles (Spark saturates), powers and logarithms (last digit).
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from weft.logical.aggregates.kinds import FLOATS, INTEGERS, decimal, duck_type
from weft.plan.resolve import END, START
from weft.plan.terms import Terms

EXACT_DIGITS = 15  # decimals of so many digits are the same doubles in both engines
MOST_PLACES = 6
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
COMPARISONS = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
}  # fmt: skip
ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}


class NotPortable(Exception):
    """DuckDB cannot say this with Spark's meaning; `node` is the innermost such expression."""

    node: exp.Expression | None = None


class Renderer:
    """Writes expressions of a block, as they were before the finish, over merged columns."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms

    def render(self, node: exp.Expression) -> str:
        try:
            return self._rendered(node)
        except NotPortable as obstacle:
            obstacle.node = obstacle.node or node
            raise

    def _rendered(self, node: exp.Expression) -> str:
        if isinstance(node, exp.Column) and node.name in (START, END):
            return f'"{node.name}"'
        if found := self._terms.lowered(node):
            return _required(found.duck)
        if dimension := self._terms.dimension(node):
            return f'"{dimension.column}"'
        return _required(RULES.get(type(node)))(self, node)

    def type(self, node: exp.Expression) -> str:
        if (found := self._terms.lowered(node)) is not None:
            return found.type
        if (dimension := self._terms.dimension(node)) is not None:
            return dimension.type
        return self._terms.types.of(node.copy().transform(self._typed))

    def _typed(self, node: exp.Expression) -> exp.Expression:
        """A NULL of the type of a merged value: Spark types the rest without GROUP BY."""
        found = self._terms.lowered(node) or self._terms.dimension(node)
        return node if found is None else exp.Var(this=f"CAST(NULL AS {found.type})")

    def cast(self, node: exp.Expression, to: str) -> str:
        """The expression, as a value of a type that both engines convert it to alike."""
        text, type_ = self.render(node), self.type(node)
        if type_ == to:
            return text
        if not _converts_alike(type_, to):
            raise NotPortable
        return "NULL" if type_ == "void" else f"CAST({text} AS {_required(duck_type(to))})"

    def alike(self, *nodes: exp.Expression) -> list[str]:
        """Operands of a comparison, in a type in which both engines compare alike."""
        types = {self.type(node) for node in nodes} - {"void"}
        if len(types) <= 1 and all(duck_type(t) for t in types):
            return [self.render(node) for node in nodes]
        if types & set(FLOATS):
            return [self.cast(node, "double") for node in nodes]
        if all(t in INTEGERS or decimal(t) for t in types):
            return [self.render(node) for node in nodes]
        raise NotPortable


def _required(value):
    if value is None:
        raise NotPortable
    return value


def _converts_alike(source: str, target: str) -> bool:
    if source == "void":
        return True
    if source in INTEGERS:
        return target in (*INTEGERS, *FLOATS) or bool(decimal(target))
    if source == "float":
        return target == "double"
    if found := decimal(source):
        return bool(decimal(target)) or (target == "double" and found[0] <= EXACT_DIGITS)
    return (source, target) == ("timestamp", "date")


def _literal(r: Renderer, node: exp.Literal) -> str:
    return "'" + node.this.replace("'", "''") + "'" if node.is_string else node.this


def _comparison(r: Renderer, node: exp.Binary) -> str:
    left, right = r.alike(node.this, node.expression)
    return f"({left} {COMPARISONS[type(node)]} {right})"


def _between(r: Renderer, node: exp.Between) -> str:
    value, low, high = r.alike(node.this, node.args["low"], node.args["high"])
    return f"({value} BETWEEN {low} AND {high})"


def _in(r: Renderer, node: exp.In) -> str:
    if not node.expressions:
        raise NotPortable
    value, *choices = r.alike(node.this, *node.expressions)
    return f"({value} IN ({', '.join(choices)}))"


def _is(r: Renderer, node: exp.Is) -> str:
    if not isinstance(node.expression, exp.Null | exp.Boolean):
        raise NotPortable
    return f"({r.render(node.this)} IS {r.render(node.expression)})"


def _like(r: Renderer, node: exp.Like) -> str:
    pattern = node.expression
    if not (isinstance(pattern, exp.Literal) and r.type(node.this) == "string"):
        raise NotPortable
    if "\\" in pattern.this:
        raise NotPortable
    like = "NOT LIKE" if node.args.get("negate") else "LIKE"  # sqlglot has one node for both
    return f"({r.render(node.this)} {like} {r.render(pattern)})"


def _arithmetic(r: Renderer, node: exp.Binary) -> str:
    """Both operands in the type of the result: literals would else be narrowed to their fellows."""
    type_, symbol = r.type(node), ARITHMETIC[type(node)]
    if type_ in (*INTEGERS, "double"):
        return f"({r.cast(node.this, type_)} {symbol} {r.cast(node.expression, type_)})"
    found = decimal(type_)
    sides = [_decimal_of(r.type(side)) for side in (node.this, node.expression)]
    if found is None or found[0] >= 38 or None in sides:
        raise NotPortable
    (p1, s1), (p2, s2) = sides
    wide = max(19, p1)  # beyond 64 bits, where DuckDB keeps every digit of the result
    if (wide + p2 if symbol == "*" else max(wide - s1, p2 - s2) + max(s1, s2) + 1) > 38:
        raise NotPortable
    left = f"CAST({r.render(node.this)} AS DECIMAL({wide},{s1}))"
    right = f"CAST({r.render(node.expression)} AS DECIMAL({p2},{s2}))"
    return f"CAST({left} {symbol} {right} AS {type_.upper()})"


def _decimal_of(type_: str) -> tuple[int, int] | None:
    whole = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
    return decimal(type_) or ((whole[type_], 0) if type_ in whole else None)


def _division(r: Renderer, node: exp.Div) -> str:
    if r.type(node) != "double":
        raise NotPortable
    top, bottom = r.cast(node.this, "double"), r.cast(node.expression, "double")
    return _unless_zero(r, node, f"{top} / {bottom}")


def _remainder(r: Renderer, node: exp.Binary) -> str:
    type_ = r.type(node)
    if type_ not in INTEGERS:
        raise NotPortable
    symbol = "%" if isinstance(node, exp.Mod) else "//"
    top, bottom = r.cast(node.this, type_), r.cast(node.expression, type_)
    return _unless_zero(r, node, f"{top} {symbol} {bottom}")


def _unless_zero(r: Renderer, node: exp.Binary, value: str) -> str:
    top, bottom = r.render(node.this), r.render(node.expression)
    problem = "error('division by zero')"
    return f"(CASE WHEN {bottom} = 0 AND {top} IS NOT NULL THEN {problem} ELSE {value} END)"


def _negation(r: Renderer, node: exp.Neg) -> str:
    if not _is_number(r.type(node.this)):
        raise NotPortable
    return f"(-{r.render(node.this)})"


def _is_number(type_: str) -> bool:
    return type_ in (*INTEGERS, *FLOATS) or decimal(type_) is not None


def _case(r: Renderer, node: exp.Case) -> str:
    type_ = r.type(node)
    parts = []
    for branch in node.args["ifs"]:
        if node.this is None:
            test = r.render(branch.this)
        else:
            test = " = ".join(r.alike(node.this, branch.this))
        parts.append(f"WHEN {test} THEN {r.cast(branch.args['true'], type_)}")
    if node.args.get("default") is not None:
        parts.append(f"ELSE {r.cast(node.args['default'], type_)}")
    return f"(CASE {' '.join(parts)} END)"


def _if(r: Renderer, node: exp.If) -> str:
    type_, otherwise = r.type(node), node.args.get("false")
    rest = f" ELSE {r.cast(otherwise, type_)}" if otherwise is not None else ""
    return f"(CASE WHEN {r.render(node.this)} THEN {r.cast(node.args['true'], type_)}{rest} END)"


def _of_one_type(name: str) -> Callable[[Renderer, exp.Expression], str]:
    """COALESCE, GREATEST, LEAST: all operands in the type of the result."""

    def rule(r: Renderer, node: exp.Expression) -> str:
        type_ = r.type(node)
        _required(duck_type(type_))
        values = [r.cast(value, type_) for value in (node.this, *node.expressions)]
        return f"{name}({', '.join(values)})"

    return rule


def _nullif(r: Renderer, node: exp.Nullif) -> str:
    left, right = r.alike(node.this, node.expression)
    return f"(CASE WHEN {left} = {right} THEN NULL ELSE {r.render(node.this)} END)"


def _abs(r: Renderer, node: exp.Abs) -> str:
    if not _is_number(r.type(node.this)):
        raise NotPortable
    return f"abs({r.render(node.this)})"


def _sqrt(r: Renderer, node: exp.Sqrt) -> str:
    return f"sqrt({r.cast(node.this, 'double')})"


def _round(r: Renderer, node: exp.Round) -> str:
    """Half up, by the shortest decimal digits of a double, as Java writes them."""
    digits, type_ = node.args.get("decimals"), r.type(node.this)
    if digits is not None and not (isinstance(digits, exp.Literal) and digits.is_int):
        raise NotPortable
    places = int(digits.this) if digits is not None else 0
    if type_ in INTEGERS:
        return r.render(node.this)
    value = r.render(node.this)
    if decimal(type_):
        return f"CAST(round({value}, {places}) AS {r.type(node).upper()})"
    if type_ != "double" or places > MOST_PLACES:
        raise NotPortable
    # beyond the bound a double has no digits left to round away
    kept, bound = (20, "1e17") if places <= 2 else (23, "1e15")
    exact = f"CAST(CAST({value} AS VARCHAR) AS DECIMAL(38,{kept}))"
    return (
        f"(CASE WHEN abs({value}) < {bound} THEN CAST(round({exact}, {places}) AS DOUBLE)"
        f" ELSE {value} END)"
    )


def _cast(r: Renderer, node: exp.Cast) -> str:
    if not node.sql(dialect="spark").startswith("CAST"):  # sqlglot has one node for TRY_CAST too
        raise NotPortable
    return r.cast(node.this, r.type(node))


def _trunc(r: Renderer, node: exp.Expression) -> str:
    unit = node.args["unit"].name.lower()
    if unit not in UNITS or r.type(node.this) != "timestamp":
        raise NotPortable
    return f"date_trunc('{unit}', {r.render(node.this)})"


def _concat(r: Renderer, node: exp.Expression) -> str:
    parts = node.expressions or [node.this, node.expression]
    if any(r.type(part) != "string" for part in parts):
        raise NotPortable
    return f"({' || '.join(r.render(part) for part in parts)})"


RULES: dict[type[exp.Expression], Callable[[Renderer, exp.Expression], str]] = {
    exp.Paren: lambda r, n: f"({r.render(n.this)})",
    exp.Literal: _literal,
    exp.Boolean: lambda r, n: "TRUE" if n.this else "FALSE",
    exp.Null: lambda r, n: "NULL",
    exp.And: lambda r, n: f"({r.render(n.this)} AND {r.render(n.expression)})",
    exp.Or: lambda r, n: f"({r.render(n.this)} OR {r.render(n.expression)})",
    exp.Not: lambda r, n: f"(NOT {r.render(n.this)})",
    **dict.fromkeys(COMPARISONS, _comparison),
    exp.Between: _between, exp.In: _in, exp.Is: _is, exp.Like: _like,
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    exp.Div: _division, exp.Mod: _remainder, exp.IntDiv: _remainder, exp.Neg: _negation,
    exp.Case: _case, exp.If: _if, exp.Coalesce: _of_one_type("coalesce"),
    exp.Greatest: _of_one_type("greatest"), exp.Least: _of_one_type("least"),
    exp.Nullif: _nullif, exp.Abs: _abs, exp.Sqrt: _sqrt, exp.Round: _round,
    exp.Cast: _cast, exp.TryCast: _cast,
    exp.TimestampTrunc: _trunc, exp.DateTrunc: _trunc, exp.Concat: _concat, exp.DPipe: _concat,
}  # fmt: skip
