"""Variance, covariance, correlation and regression: central moments in one struct column.

The state of one variable is (n, avg, m2) with m2 = Σ(x − avg)²; of a pair (n, x, y, xx, yy, xy) with
xy = Σ(x − avg x)(y − avg y). Parts a and b merge by Chan et al.:

    δ = avg_b − avg_a;  n = n_a + n_b;  avg = avg_a + δ·n_b/n;  m2 = m2_a + m2_b + δ²·n_a·n_b/n

which never subtracts two large sums, so it is as stable as a pass over all the rows. Source: Chan,
Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979);
Spark's CentralMomentAgg and PearsonCorrelation use the same, and fold here is made of them. The
result equals Spark's up to the rounding of doubles, in which Spark's own depends on its partitions.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.logical.aggregates.algebra import (
    Aggregate,
    Argument,
    Call,
    CannotShare,
    Condition,
    Kind,
    Lowered,
)
from weft.logical.aggregates.kinds import FLOATS, INTEGERS, decimal
from weft.logical.aggregates.simple import avg, count
from weft.logical.statistics import Statistic

ONE = "struct<n:bigint,avg:double,m2:double>"
PAIR = "struct<n:bigint,x:double,y:double,xx:double,yy:double,xy:double>"
BOTH = "a.n + b.n"
ONE_MERGED = {
    "n": BOTH,
    "avg": "a.avg + (b.avg - a.avg) * (b.n / {n})",
    "m2": "a.m2 + b.m2 + (b.avg - a.avg) * (b.avg - a.avg) * (a.n / {n}) * b.n",
}
PAIR_MERGED = {
    "n": BOTH,
    "x": "a.x + (b.x - a.x) * (b.n / {n})",
    "y": "a.y + (b.y - a.y) * (b.n / {n})",
    "xx": "a.xx + b.xx + (b.x - a.x) * (b.x - a.x) * (a.n / {n}) * b.n",
    "yy": "a.yy + b.yy + (b.y - a.y) * (b.y - a.y) * (a.n / {n}) * b.n",
    "xy": "a.xy + b.xy + (b.x - a.x) * (b.y - a.y) * (a.n / {n}) * b.n",
}
APART = "({0} - {0})"  # how far one value is from its average: 0, and NaN of what is not finite
PAIR_LIFTED = {
    "x": "{0}", "y": "{1}", "xx": APART, "yy": "({1} - {1})", "xy": f"{APART} * ({{1}} - {{1}})",
}  # fmt: skip


def merge_in_spark(type_: str, merged: dict[str, str]) -> str:
    """Parts one after the other; collect_list leaves out the parts without rows, which are NULL."""
    fields = ", ".join(
        f"'{name}', {part.format(n='CAST(a.n + b.n AS DOUBLE)')}" for name, part in merged.items()
    )
    step = f"CASE WHEN a IS NULL THEN b ELSE named_struct({fields}) END"
    return f"aggregate(collect_list({{}}), CAST(NULL AS {type_}), (a, b) -> {step})"


def merge_in_duck(merged: dict[str, str]) -> str:
    fields = ", ".join(
        f"{name} := {part.format(n='CAST(a.n + b.n AS DOUBLE)')}" for name, part in merged.items()
    )
    values = "list({}) FILTER (WHERE {} IS NOT NULL)"
    return f"list_reduce({values}, lambda a, b: struct_pack({fields}))"


def state_of_one(call: Call, what: Argument) -> Statistic:
    require_number(call, what)
    x = f"CAST({what.sql} AS DOUBLE)"
    n, m2 = call.fold(f"count({x})"), call.fold(f"regr_sxx({x}, {x})")
    # the average of equal values is exactly that, also where their sum rounds or overflows
    mean = f"CASE WHEN {m2} = 0 THEN {call.fold(f'max({x})')} ELSE {call.fold(f'avg({x})')} END"
    fold = f"CASE WHEN {n} > 0 THEN named_struct('n', {n}, 'avg', {mean}, 'm2', {m2}) END"
    return Statistic(
        call.key("moments", what.key), ONE, fold,
        merge_in_spark(ONE, ONE_MERGED), merge_in_duck(ONE_MERGED),
        lift=call.lift(lifted({"avg": "{0}", "m2": APART}, "{0}"), x),
    )  # fmt: skip


def state_of_pair(call: Call, y: Argument, x: Argument) -> Statistic:
    """Only rows count in which both are not NULL."""
    for each in (y, x):
        require_number(call, each)
    a, b = f"CAST({x.sql} AS DOUBLE)", f"CAST({y.sql} AS DOUBLE)"
    both = f"{x.sql} IS NOT NULL AND {y.sql} IS NOT NULL"
    parts = {
        "n": call.fold("count(*)", both), "x": call.fold(f"avg({a})", both),
        "y": call.fold(f"avg({b})", both), "xx": call.fold(f"regr_sxx({b}, {a})"),
        "yy": call.fold(f"regr_syy({b}, {a})"), "xy": call.fold(f"regr_sxy({b}, {a})"),
    }  # fmt: skip
    fields = ", ".join(f"'{name}', {part}" for name, part in parts.items())
    fold = f"CASE WHEN {parts['n']} > 0 THEN named_struct({fields}) END"
    return Statistic(
        call.key("comoments", y.key, x.key), PAIR, fold,
        merge_in_spark(PAIR, PAIR_MERGED), merge_in_duck(PAIR_MERGED),
        lift=call.lift(lifted(PAIR_LIFTED, "{0}", "{1}"), a, b),
    )  # fmt: skip


def lifted(fields: dict[str, str], *values: str) -> str:
    """The state of one row that has all values, in DuckDB's SQL."""
    parts = ", ".join(f"{name} := {value}" for name, value in fields.items())
    tests = " AND ".join(f"{value} IS NOT NULL" for value in values)
    return f"(CASE WHEN {tests} THEN struct_pack(n := 1::BIGINT, {parts}) END)"


def require_number(call: Call, what: Argument) -> None:
    if what.type not in (*INTEGERS, *FLOATS) and not decimal(what.type):
        raise CannotShare(f"{call.name} of {what.type} is not shared")
    if call.is_distinct:
        raise CannotShare(f"{call.name} with DISTINCT is not shared")


def one(finish: str) -> Callable[[Call], Lowered]:
    """A function of one variable's moments; {0} is the state. The same text in both engines."""

    def lower(call: Call) -> Lowered:
        state = state_of_one(call, call.arguments[0])
        return finished(state, finish)

    return lower


def pair(finish: str) -> Callable[[Call], Lowered]:
    """A function of two variables' moments; the first argument is y, as in REGR_*."""

    def lower(call: Call) -> Lowered:
        return finished(state_of_pair(call, *call.arguments), finish)

    return lower


def finished(state: Statistic, finish: str) -> Lowered:
    spark, duck = finish.format(f"`{state.column}`"), finish.format(f'"{state.column}"')
    return Lowered((state,), f"({spark})", f"({duck})", "double")


def of_both(lower: Callable[[Call], Lowered], which: int) -> Callable[[Call], Lowered]:
    """REGR_COUNT, REGR_AVGX, REGR_AVGY: COUNT and AVG over the rows in which both have values."""

    def lowered(call: Call) -> Lowered:
        y, x = call.arguments
        if call.is_distinct:
            raise CannotShare(f"{call.name} with DISTINCT is not shared")
        tests = [f"{a.sql} IS NOT NULL" for a in sorted((y, x), key=lambda a: a.key)]
        keys = [*([call.condition.key] if call.condition else []), *tests]
        sql = [*([f"({call.condition.sql})"] if call.condition else []), *tests]
        both = Condition(" and ".join(keys), " AND ".join(sql))
        return lower(Call(call.name, (call.arguments[which],), call.type_of, condition=both))

    return lowered


SAMPLE = "CASE WHEN {0}.n > 1 THEN {0}.m2 / ({0}.n - 1) END"
WHOLE = "{0}.m2 / {0}.n"
# Spark's own: no line through points of one x, and a perfect one through points of one y
R2 = "CASE WHEN {0}.xx = 0 THEN NULL WHEN {0}.yy = 0 THEN 1 ELSE {0}.xy * {0}.xy / {0}.xx / {0}.yy END"


def _of_one(name: str, finish: str, rule: str) -> Aggregate:
    return Aggregate(
        name, Kind.ALGEBRAIC, one(finish), ("MOMENTS(X)",), rule, ("CHAN(MOMENTS X)",)
    )  # fmt: skip


def _of_pair(name: str, finish: str, rule: str) -> Aggregate:
    return Aggregate(
        name, Kind.ALGEBRAIC, pair(finish), ("COMOMENTS(Y, X)",), rule, ("CHAN(COMOMENTS Y X)",),
        arity=(2, 2),
    )  # fmt: skip


def _of_both(name: str, lower: Callable, which: int, basics: tuple, rule: str) -> Aggregate:
    merges = tuple(f"SUM({b.replace('(', ' ').replace(')', '')})" for b in basics)
    kind = Kind.DISTRIBUTIVE if len(basics) == 1 else Kind.ALGEBRAIC
    return Aggregate(name, kind, of_both(lower, which), basics, rule, merges, arity=(2, 2))


MOMENTS = [
    *(_of_one(n, SAMPLE, "M2 / (N - 1)") for n in ("var_samp", "variance")),
    _of_one("var_pop", WHOLE, "M2 / N"),
    *(
        _of_one(n, f"sqrt({SAMPLE})", "SQRT(M2 / (N - 1))")
        for n in ("stddev", "std", "stddev_samp")
    ),
    _of_one("stddev_pop", f"sqrt({WHOLE})", "SQRT(M2 / N)"),
    _of_pair("covar_pop", "{0}.xy / {0}.n", "XY / N"),
    _of_pair("covar_samp", "CASE WHEN {0}.n > 1 THEN {0}.xy / ({0}.n - 1) END", "XY / (N - 1)"),
    _of_pair("corr", "{0}.xy / nullif(sqrt({0}.xx * {0}.yy), 0)", "XY / SQRT(XX * YY)"),
    _of_pair("regr_slope", "{0}.xy / nullif({0}.xx, 0)", "XY / XX"),
    _of_pair("regr_intercept", "{0}.y - {0}.xy / nullif({0}.xx, 0) * {0}.x", "Y - XY / XX * X"),
    _of_pair("regr_r2", R2, "XY * XY / (XX * YY)"),
    _of_pair("regr_sxx", "{0}.xx", "XX"),
    _of_pair("regr_syy", "{0}.yy", "YY"),
    _of_pair("regr_sxy", "{0}.xy", "XY"),
    _of_both("regr_count", count, 0, ("COUNT(W)",), "COUNT W"),
    _of_both("regr_avgx", avg, 1, ("SUM(X)", "COUNT(X)"), "SUM X / COUNT X"),
    _of_both("regr_avgy", avg, 0, ("SUM(Y)", "COUNT(Y)"), "SUM Y / COUNT Y"),
]
