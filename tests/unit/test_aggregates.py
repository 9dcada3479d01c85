"""The algebra of aggregates as values: statistics are shared, rules are shown, misuse is refused."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from weft.logical.aggregates import (
    BUILT_IN,
    Argument,
    BasicStatistic,
    Call,
    CannotShare,
    Condition,
    Kind,
    Parameter,
    SqlAggregate,
    basics,
    expand,
    mark,
    rules,
)
from weft.logical.aggregates.averages import average_type
from weft.logical.statistics import Dimension, Statistic, digest


def argument(text: str, type_: str) -> Argument:
    return Argument(text, text, type_, parse_one(text, dialect="spark"))


def call(name: str, *arguments: tuple[str, str], **more) -> Call:
    made = tuple(argument(*a) for a in arguments)
    return Call(name, made, lambda text: "double", **more)


def keys(made: Call) -> list[str]:
    return [s.key for s in BUILT_IN.lower(made).statistics]


def test_columns_are_digests_of_canonical_text() -> None:
    assert len(digest("sum(price)")) == 12
    one = Statistic("sum(price)", "double", "sum(price)", "sum({})", "sum({})")
    assert one.column == "s_" + digest("sum(price)")
    assert one.merged() == f"sum(`{one.column}`)"
    assert one.duck_merged() == f'sum("{one.column}")'
    assert Dimension("sym", "string", "sym").column == "g_" + digest("sym")


def test_avg_and_sum_share_the_sum() -> None:
    for type_ in ("int", "smallint", "double", "float", "decimal(10,2)"):
        (total,) = keys(call("sum", ("x", type_)))
        assert total in keys(call("avg", ("x", type_)))


def test_avg_of_bigint_sums_doubles_as_spark_does() -> None:
    (total,) = keys(call("sum", ("x", "bigint")))
    assert total not in keys(call("avg", ("x", "bigint")))


def test_deviation_and_variance_share_their_moments() -> None:
    names = ("var_pop", "variance", "stddev", "stddev_pop", "std")
    assert {tuple(keys(call(n, ("x", "double")))) for n in names} == {("moments(x)",)}
    pairs = ("corr", "covar_pop", "regr_slope", "regr_r2", "regr_sxx")
    found = {tuple(keys(call(n, ("y", "double"), ("x", "int")))) for n in pairs}
    assert found == {("comoments(y, x)",)}


def test_booleans_are_minima_and_maxima() -> None:
    assert keys(call("bool_and", ("b", "boolean"))) == keys(call("min", ("b", "boolean")))
    assert keys(call("some", ("b", "boolean"))) == keys(call("max", ("b", "boolean")))


def test_count_of_a_constant_is_count_of_rows() -> None:
    star = Call("count", (Argument("*", "*", "bigint", exp.Star()),), str)
    assert keys(star) == keys(call("count", ("1", "int"))) == ["count(*)"]


def test_count_if_is_a_filtered_count() -> None:
    filtered = call("count", ("1", "int"), condition=Condition("b", "b"))
    assert keys(call("count_if", ("b", "boolean"))) == keys(filtered)


def test_filters_keep_statistics_apart() -> None:
    plain = keys(call("sum", ("x", "int")))
    assert keys(call("sum", ("x", "int"), condition=Condition("y > 1", "y > 1"))) != plain


def test_distinct_functions_share_one_set() -> None:
    made = [call(n, ("x", "int"), is_distinct=True) for n in ("count", "sum", "avg")]
    made.append(call("collect_set", ("x", "int")))
    assert {tuple(keys(m)) for m in made} == {("set(x)",)}


def test_what_makes_spark_sort_the_fold_is_known() -> None:
    light = [call("sum", ("x", "bigint")), call("min", ("x", "int")), call("stddev", ("x", "int"))]
    heavy = [
        call("min", ("x", "string")),
        call("first", ("x", "int")),
        call("collect_set", ("x", "int")),
    ]
    heavy.append(call("approx_count_distinct", ("x", "int")))
    assert all(s.is_light for made in light for s in BUILT_IN.lower(made).statistics)
    assert not any(s.is_light for made in heavy for s in BUILT_IN.lower(made).statistics)


def test_averages_have_sparks_decimal_type() -> None:
    assert average_type(10, 2) == "decimal(14,6)"
    assert average_type(38, 10) == "decimal(38,14)"
    assert average_type(38, 38) == "decimal(38,38)"


@pytest.mark.parametrize(
    "made, reason",
    [
        (call("median", ("x", "int")), "median is holistic"),
        (call("frobnicate", ("x", "int")), "frobnicate is not known to be mergeable"),
        (call("sum", ("x", "int"), ("y", "int")), "sum with 2 arguments"),
        (call("sum", ("x", "interval day to second")), "a sum of interval"),
        (call("min", ("x", "variant")), "values of type variant"),
        (call("stddev", ("x", "double"), is_distinct=True), "stddev with DISTINCT"),
        (call("count", ("x", "map<string,int>"), is_distinct=True), "a set of map<string,int>"),
        (call("avg", ("x", "decimal(38,18)")), "cannot be rounded as Spark does"),
        (call("approx_percentile", ("x", "timestamp"), ("0.5", "double")), "of timestamp"),
    ],
)
def test_what_cannot_be_shared_says_why(made: Call, reason: str) -> None:
    with pytest.raises(CannotShare, match=reason.replace("(", r"\(").replace(")", r"\)")):
        BUILT_IN.lower(made)


def test_rules_are_those_of_the_paper() -> None:
    by_name = {r.function: r for r in rules()}
    assert (by_name["sum"].category, by_name["sum"].incremental) == ("D", "SUM X(H) + SUM X(N)")
    assert by_name["sum"].expansion == "SUM(SUM X)"
    assert (by_name["avg"].category, by_name["avg"].incremental) == ("A", "SUM X / COUNT X")
    assert by_name["count"].expansion == "SUM(COUNT W)"
    assert (by_name["median"].category, by_name["median"].incremental) == ("H", None)
    assert ("avg", "SUM(X)", "SUM X") in basics()


def test_every_sketch_states_its_error() -> None:
    for rule in rules():
        assert (rule.kind == Kind.SKETCH) == (rule.error is not None), rule.function


def sql(text: str) -> exp.Expression:
    return parse_one(text, dialect="spark")


VWAP = SqlAggregate(
    "vwap",
    (Parameter("price", "DOUBLE"), Parameter("qty", "INT")),
    (
        BasicStatistic("pv", "DOUBLE", sql("sum(price * qty)"), sql("sum(pv)")),
        BasicStatistic("q", "BIGINT", sql("sum(qty)")),
    ),
    sql("pv / q"),
)
LONGEST = SqlAggregate(
    "longest",
    (Parameter("s", "STRING"),),
    (BasicStatistic("n", "INT", sql("max(length(s)) + 0"), sql("max(n)")),),
    sql("n"),
)
REGISTRY = BUILT_IN.having(VWAP.aggregate(), LONGEST.aggregate())


def test_a_defined_aggregate_is_marked_for_the_planner_and_written_out_for_spark() -> None:
    tree = sql("SELECT vwap(p, q) FILTER (WHERE q > 1) AS v FROM t")
    marked = mark(tree, REGISTRY)
    assert marked.find(exp.AnonymousAggFunc) is not None and tree.find(exp.AnonymousAggFunc) is None
    for each in (tree, marked):
        assert expand(each, REGISTRY).sql("spark") == (
            "SELECT ((CAST(SUM((CAST(p AS DOUBLE)) * (CAST(q AS INT))) FILTER(WHERE q > 1) AS DOUBLE))"
            " / (CAST(SUM((CAST(q AS INT))) FILTER(WHERE q > 1) AS BIGINT))) AS v FROM t"
        )


def test_parts_that_merge_by_themselves_are_shared_with_built_ins() -> None:
    assert VWAP.is_plain and not LONGEST.is_plain
    lowered = REGISTRY.lower(call("vwap", ("p", "double"), ("q", "int")))
    assert [s.key for s in lowered.statistics] == ["sum(p * q)", "sum(q)"]


def test_a_merge_as_said() -> None:
    (one,) = REGISTRY.lower(call("longest", ("s", "string"))).statistics
    assert one.type == "int" and one.duck_merge == "max({})"
    assert one.fold == "CAST(MAX(LENGTH(s)) + 0 AS INT)"
    assert one.merge == "CAST(MAX(({})) AS INT)"


def test_a_defined_aggregate_has_rules_as_well() -> None:
    rule = next(r for r in rules(REGISTRY) if r.function == "vwap")
    assert rule.basics == ("SUM(price * qty)", "SUM(qty)") and rule.incremental == "pv / q"
