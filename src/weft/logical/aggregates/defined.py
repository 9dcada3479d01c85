"""User-defined aggregates in SQL: named basic statistics, how each merges, and a finish.

    CREATE AGGREGATE vwap(price DOUBLE, qty INT)
      WITH STATISTICS (pv DOUBLE = sum(price * qty) MERGE sum, q BIGINT = sum(qty) MERGE sum)
      FINISH pv / q

Without MERGE a statistic must be one call of a mergeable built-in, and merges as that does: its
columns are then shared with every other query that keeps the same. With MERGE it is folded and
merged as said, and the user vouches for the law: merging the folds of any parts is the fold of all.

A call is a call all the way to the planner (`mark`); where Spark itself runs the query, `expand`
writes the finish over the folds in its place, which by the same law is the same value.
Source: ARGUS §3.2 (AggreBasics and AggreRules hold user-defined functions as well).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp, parse_one

from weft.logical.aggregates.algebra import (
    Aggregate,
    Aggregates,
    Argument,
    Call,
    CannotShare,
    Condition,
    Kind,
    Lowered,
)
from weft.logical.aggregates.builtin import BUILT_IN
from weft.logical.aggregates.calls import innermost, name_of, read
from weft.logical.aggregates.python import Parameter, PythonAggregate
from weft.logical.canonical import canonical, text_of
from weft.logical.statistics import Statistic

TypeOfNode = Callable[[exp.Expression], str]
# Merges that DuckDB does as Spark does, on the types that both have.
DUCK_MERGES = ("min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor")
OWN_MERGES = {"count": "sum", "count_if": "sum"}  # how a built-in merges, if not by itself


@dataclass(frozen=True, slots=True, eq=False)
class BasicStatistic:
    """`name type = fold MERGE merge`. The merge is a call over the statistic's own name."""

    name: str
    type: str
    fold: exp.Expression  # an aggregate over the parameters
    merge: exp.Expression | None = None

    @property
    def merge_name(self) -> str | None:
        """The function that merges, when that is all: MERGE sum."""
        call = self.merge
        is_plain = (
            call is not None and len(read(call).arguments) == 1 and isinstance(call, exp.Func)
        )
        if is_plain and isinstance(read(call).arguments[0], exp.Column):
            return name_of(call)
        return None


@dataclass(frozen=True, slots=True, eq=False)
class SqlAggregate:
    """A user-defined aggregate as declared."""

    name: str
    parameters: tuple[Parameter, ...]
    statistics: tuple[BasicStatistic, ...]
    finish: exp.Expression  # over the statistics' names

    def aggregate(self, built_in: Aggregates = BUILT_IN) -> Aggregate:
        """The value that a registry holds."""
        return Aggregate(
            self.name.lower(),
            Kind.ALGEBRAIC,
            lambda call: _lower(self, call, built_in),
            tuple(text_of(s.fold) for s in self.statistics),
            text_of(self.finish),
            tuple(_merge_text(s) for s in self.statistics),
            arity=(len(self.parameters), len(self.parameters)),
            definition=self,
        )

    @property
    def is_plain(self) -> bool:
        """Whether it is no more than its built-in parts: the call can be written out."""
        return all(merges_by_itself(s, BUILT_IN) for s in self.statistics)

    @property
    def meaning(self) -> tuple:
        """What two definitions that mean the same have in common, whatever their spelling."""
        statistics = [
            (s.name.lower(), s.type, s.fold.sql("spark"), s.merge and s.merge.sql("spark"))
            for s in self.statistics
        ]
        parameters = [(p.name.lower(), p.type) for p in self.parameters]
        return (parameters, statistics, self.finish.sql("spark"))

    def expand(
        self, arguments: Sequence[exp.Expression], type_of: TypeOfNode | None = None
    ) -> exp.Expression:
        """One Spark expression with the value of the call: the finish over the folds.

        With `type_of`, values that have the declared type already are not cast to it, so that their
        statistics are those of queries that do not use this aggregate.
        """
        given = {
            p.name.lower(): _cast_node(a, p.type, type_of)
            for p, a in zip(self.parameters, arguments, strict=True)
        }
        folds = {
            s.name.lower(): _cast_node(_bound(s.fold, given), s.type, type_of)
            for s in self.statistics
        }
        return exp.Paren(this=_bound(self.finish, folds))


def _cast_node(node: exp.Expression, to: str, type_of: TypeOfNode | None) -> exp.Expression:
    if type_of is not None and type_of(node) == to.lower():
        return node.copy()
    return exp.cast(node.copy(), to, dialect="spark")


def mark(tree: exp.Expression, aggregates: Aggregates) -> exp.Expression:
    """A copy in which calls of user-defined aggregates are aggregate calls to every rule."""

    def rule(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Anonymous) and _definition(node.name, aggregates):
            return exp.AnonymousAggFunc(this=node.name.lower(), expressions=node.expressions)
        return node

    return tree.copy().transform(rule)


def expand(
    tree: exp.Expression,
    aggregates: Aggregates,
    type_of: TypeOfNode | None = None,
    *,
    only_plain: bool = False,
) -> exp.Expression:
    """A copy in which they (or those that are their parts and no more) are written out."""

    def rule(node: exp.Expression) -> exp.Expression:
        inner = innermost(node)
        if not isinstance(inner, exp.Anonymous | exp.AnonymousAggFunc):
            return node
        definition = _definition(inner.name, aggregates)
        if definition is None or isinstance(node.parent, exp.Filter):
            return node
        if only_plain and not definition.is_plain:
            return node
        made = definition.expand(inner.expressions, type_of)
        return filtered(made, node.expression.this) if isinstance(node, exp.Filter) else made

    return tree.copy().transform(rule)


def _definition(name: str, aggregates: Aggregates) -> SqlAggregate | PythonAggregate | None:
    found = aggregates.find(name)
    return found.definition if found else None


def filtered(tree: exp.Expression, condition: exp.Expression) -> exp.Expression:
    """FILTER on every aggregate call of an expression."""

    def rule(node: exp.Expression) -> exp.Expression:
        is_call = isinstance(node, exp.AggFunc) or (
            isinstance(node, exp.Anonymous) and BUILT_IN.find(node.name) is not None
        )
        if not is_call or isinstance(node.parent, exp.Filter):
            return node
        return exp.Filter(this=node.copy(), expression=exp.Where(this=condition.copy()))

    return tree.copy().transform(rule)


def _bound(tree: exp.Expression, values: Mapping[str, exp.Expression]) -> exp.Expression:
    def rule(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in values:
            return exp.Paren(this=values[node.name.lower()].copy())
        return node

    return tree.copy().transform(rule)


def _lower(definition: SqlAggregate, call: Call, built_in: Aggregates) -> Lowered:
    if call.is_distinct or call.ignores_nulls:
        raise CannotShare(f"{call.name} with DISTINCT or IGNORE NULLS is not shared")
    given = {
        p.name.lower(): _typed(a, p.type)
        for p, a in zip(definition.parameters, call.arguments, strict=True)
    }
    spark, duck, kept, is_total = {}, {}, {}, True
    for basic in definition.statistics:
        made = _lower_basic(basic, given, call, built_in)
        kept |= {s.key: s for s in made.statistics}
        is_total = is_total and made.is_total
        spark[basic.name.lower()] = exp.Var(this=_cast(made.spark, made.type, basic.type))
        duck[basic.name.lower()] = made.duck
    finish = _bound(definition.finish, spark).sql(dialect="spark")
    whole = definition.expand([a.node for a in call.arguments]).sql(dialect="spark")
    return Lowered(tuple(kept.values()), f"({finish})", None, call.type_of(whole), is_total)


def _cast(sql: str, type_: str, to: str) -> str:
    return sql if type_ == to.lower() else f"CAST({sql} AS {to})"


def _typed(argument: Argument, type_: str) -> exp.Expression:
    if argument.type == type_.lower():
        return argument.node
    return exp.cast(argument.node.copy(), type_, dialect="spark")


def _lower_basic(
    basic: BasicStatistic, given: Mapping[str, exp.Expression], call: Call, built_in: Aggregates
) -> Lowered:
    fold = _bound(basic.fold, given)
    if merges_by_itself(basic, built_in):
        written = read(fold)
        arguments = tuple(_argument(a, call) for a in written.arguments)
        condition = _both(written.condition, call.condition)
        return built_in.lower(
            Call(
                written.name, arguments, call.type_of, written.is_distinct, written.ignores_nulls,
                condition,
            )
        )  # fmt: skip
    if call.condition is not None:
        fold = filtered(fold, parse_one(call.condition.sql, dialect="spark"))
    return _merged_as_said(basic, canonical(fold))


def merges_by_itself(basic: BasicStatistic, built_in: Aggregates) -> bool:
    """Whether a built-in's own merge is meant: none is said, or just that one."""
    if not is_mergeable_call(basic.fold, built_in):
        return False
    name = name_of(innermost(basic.fold))
    is_simple = built_in.find(name).kind is Kind.DISTRIBUTIVE
    return basic.merge is None or (is_simple and basic.merge_name == OWN_MERGES.get(name, name))


def is_mergeable_call(node: exp.Expression, built_in: Aggregates) -> bool:
    """Whether an expression is one call of a function that is known to merge."""
    inner = innermost(node)
    found = built_in.find(name_of(inner)) if isinstance(inner, exp.Func) else None
    return found is not None and found.is_mergeable


def _argument(node: exp.Expression, call: Call) -> Argument:
    if isinstance(node, exp.Star):
        return Argument("*", "*", "bigint", node)
    form = canonical(node)
    text = text_of(form)
    return Argument(text, text, call.type_of(text), form)


def _both(first: exp.Expression | None, second: Condition | None) -> Condition | None:
    if first is None:
        return second
    text = text_of(canonical(first))
    if second is None:
        return Condition(text, text)
    return Condition(f"{second.key} and {text}", f"({second.sql}) AND ({text})")


def _merged_as_said(basic: BasicStatistic, fold: exp.Expression) -> Lowered:
    """The statistic folded and merged as the user says, in the type the user says."""
    column = {basic.name.lower(): exp.Var(this="{}")}
    merge = f"CAST({_bound(basic.merge, column).sql(dialect='spark')} AS {basic.type})"
    name, type_ = basic.merge_name, basic.type.lower()
    duck = f"{name}({{}})" if name in DUCK_MERGES else None
    if name == "sum":
        duck = "sum({})" if type_ == "double" else f"CAST(sum({{}}) AS {basic.type})"
    text = text_of(fold)
    one = Statistic(
        f"{text} merge {text_of(basic.merge)} as {type_}", type_, f"CAST({text} AS {basic.type})",
        merge, duck, is_light=False,
    )  # fmt: skip
    return Lowered((one,), f"`{one.column}`", f'"{one.column}"' if duck else None, type_, False)


def _merge_text(basic: BasicStatistic) -> str:
    if basic.merge is not None:
        return text_of(basic.merge)
    name = name_of(innermost(basic.fold))
    return f"{OWN_MERGES.get(name, name)}({basic.name})"
