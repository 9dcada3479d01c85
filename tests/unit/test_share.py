"""Decomposing a query: what meets in one column, what is kept apart, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlglot import exp

from weft.logical.aggregates import BUILT_IN, Aggregates, mark
from weft.logical.relations import ARRIVAL, Column, Kind, Relation
from weft.logical.windows import Hopping, Landmark, WholeStream
from weft.plan.recompute import plan_recompute
from weft.plan.share import CannotShare, SharedQuery, share
from weft.sql.bind import bind
from weft.sql.parse import parse

COLUMNS = "k STRING, v INT, x DOUBLE, m DECIMAL(10,2), b BOOLEAN, n STRUCT<a: INT>, ts TIMESTAMP"
STREAMS = {
    "s": Relation(
        Kind.STREAM, "s", tuple(Column(*c.split(" ", 1)) for c in COLUMNS.split(", ")), "ts"
    ),
    "u": Relation(Kind.STREAM, "u", (Column("k", "STRING"),), ARRIVAL),
}
HOUR = "[RANGE 1 HOUR SLIDE 1 HOUR]"


class Names:
    def find(self, name: str) -> Relation | None:
        return STREAMS.get(name.lower())

    def all(self) -> list[str]:
        return list(STREAMS)


def shared(
    text: str, types: dict[str, str] | None = None, aggregates: Aggregates = BUILT_IN, **more
) -> SharedQuery:
    functions = [a.name for a in aggregates if a.definition]
    statement = parse(f"CREATE CONTINUOUS QUERY q AS {text}")[0]
    bound = bind(statement.select, Names(), functions=functions)
    plan = plan_recompute(replace(bound, tree=mark(bound.tree, aggregates)))
    return share(plan, lambda asked: (types or {}).get(asked, "double"), aggregates, **more)


def keys(query: SharedQuery) -> list[str]:
    return [s.key for s in query.statistics]


def test_the_same_in_other_words_is_the_same() -> None:
    one = shared(f"SELECT k, sum(x * v) AS t FROM s {HOUR} WHERE v > 3 AND b GROUP BY k")
    two = shared(f"SELECT K, SUM(V*x) AS t FROM s {HOUR} AS z WHERE z.b AND 3 < z.v GROUP BY z.K")
    assert keys(one) == keys(two)
    assert one.dimensions == two.dimensions
    assert one.predicate == two.predicate


def test_positions_aliases_and_all_are_group_by_expressions() -> None:
    types = {"UPPER(k)": "string"}
    spellings = ("GROUP BY 1", "GROUP BY u", "GROUP BY ALL", "GROUP BY upper(k)")
    found = {
        shared(f"SELECT upper(k) AS u, count(*) AS n FROM s {g}", types).dimensions
        for g in spellings
    }
    assert len(found) == 1 and [d.key for d in next(iter(found))] == ["UPPER(k)"]


def test_the_windows_edges_are_no_dimensions() -> None:
    query = shared(f"SELECT window_start, k, count(*) AS n FROM s {HOUR} GROUP BY 1, 2, window_end")
    assert [d.key for d in query.dimensions] == ["k"] and not query.is_global
    assert isinstance(query.window, Hopping)
    names = [e.alias for e in query.finish.expressions]
    assert names == ["window_start", "k", "n", "_weft_start_1", "_weft_end_1"]


def test_global_aggregates_are_known_as_such() -> None:
    assert shared("SELECT count(*) AS n FROM s").is_global
    assert shared(f"SELECT count(*) AS n FROM s {HOUR}").is_global
    assert not shared("SELECT count(*) AS n FROM s GROUP BY k").is_global
    assert not shared("SELECT count(*) AS n FROM s GROUP BY 'constant'").is_global


def test_having_becomes_where() -> None:
    query = shared("SELECT k, max(x) AS top FROM s GROUP BY k HAVING top > 3 AND count(*) > 1")
    assert query.finish.args.get("having") is None
    assert query.finish.args["where"] is not None
    assert keys(query) == ["count(*)", "max(x)"]


def test_sort_keys_and_helpers_are_output_columns() -> None:
    query = shared("SELECT k FROM s GROUP BY k ORDER BY count(*) DESC LIMIT 2")
    assert [e.alias for e in query.finish.expressions] == ["k", "_weft_sort_0"]
    assert not query.is_row_local
    assert query.finish_duck.endswith('ORDER BY "_weft_sort_0" DESC NULLS LAST LIMIT 2')


def test_distinct_is_group_by() -> None:
    query = shared("SELECT DISTINCT k, v FROM s")
    assert [d.key for d in query.dimensions] == ["k", "v"] and query.statistics == ()
    assert query.is_row_local and not query.is_global


def test_what_may_raise_is_counted() -> None:
    query = shared("SELECT sum(1 / v) AS r FROM s WHERE v <> 0")
    fails = "count(*) filter(NOT v IS NULL AND TRY_DIVIDE(1, v) IS NULL)"
    assert keys(query) == [fails, "sum(TRY_DIVIDE(1, v))"] and query.is_total
    assert [text for _, text in query.failures] == ["1 / v: division by zero"]
    filtered = shared("SELECT sum(1 / v) FILTER (WHERE x > 2) AS r FROM s")
    assert keys(filtered)[0].startswith("count(*) filter((x > 2) AND (")
    assert keys(shared("SELECT sum(v) AS r FROM s WHERE v <> 0")) == ["sum(v)"]


def test_what_may_raise_on_some_rows_only_stays_behind_the_predicate() -> None:
    query = shared("SELECT sum(coalesce(1 / v, 0)) AS r FROM s WHERE v <> 0")
    assert keys(query) == ["sum(CASE WHEN v <> 0 THEN COALESCE(1 / v, 0) END)"]
    assert not query.is_total and not query.failures


def test_what_may_raise_on_some_rows_only_stays_inside_a_landmark() -> None:
    query = shared("SELECT sum(coalesce(1 / v, 0)) AS r FROM s [SINCE '2026-01-01']")
    assert isinstance(query.window, Landmark)
    assert "_weft_time >= " in query.statistics[0].key


def test_conditions_on_the_window_are_left_to_the_finish() -> None:
    query = shared(f"SELECT count(*) AS n FROM s {HOUR} WHERE hour(window_start) > 8 AND v > 1")
    assert query.predicate.sql("spark") == "v > 1"
    assert "HOUR(`_weft_start`) > 8" in query.finish_spark


def test_arrival_time_is_the_time_of_the_row() -> None:
    query = shared("SELECT max(arrival_time) AS last FROM u")
    assert keys(query) == ["max(_weft_time)"] and isinstance(query.window, WholeStream)
    assert query.statistics[0].type == "timestamp"


def test_fields_of_structs() -> None:
    types = {"n.a": "int"}
    assert keys(shared("SELECT max(n.a) AS m, max(s.n.a) AS o FROM s", types)) == ["max(n.a)"]


def test_names_without_alias_are_sparks() -> None:
    query = shared("SELECT k, count(*), sum(v) FROM s GROUP BY k")
    assert [e.alias for e in query.finish.expressions] == ["k", "count(1)", "sum(v)"]
    given = shared(f"SELECT k, max(x) + 1 FROM s {HOUR} GROUP BY k", names=("k", "(max(x) + 1)"))
    assert [e.alias for e in given.finish.expressions][:2] == ["k", "(max(x) + 1)"]


def test_simple_queries_ask_spark_for_nothing() -> None:
    statement = parse(
        "CREATE CONTINUOUS QUERY q AS SELECT k, avg(m) AS a, min(v) AS b FROM s GROUP BY k"
    )
    plan = plan_recompute(bind(statement[0].select, Names()))

    def never(text: str) -> str:
        raise AssertionError(text)

    assert share(plan, never).finish_duck


def test_a_window_function_over_the_groups() -> None:
    query = shared("SELECT k, rank() OVER (ORDER BY sum(v)) AS r FROM s GROUP BY k")
    assert keys(query) == ["sum(v)"] and not query.is_row_local
    assert query.finish.find(exp.Window) is not None and query.finish_duck is None


def test_any_of_a_condition_is_an_aggregate_and_like_any_is_not() -> None:
    assert keys(shared(f"SELECT any(b) AS a FROM s {HOUR}")) == ["max(b)"]
    query = shared("SELECT count(*) AS n FROM s WHERE k LIKE ANY ('a%', 'b%')")
    assert keys(query) == ["count(*)"]


def test_defined_aggregates_share_their_parts() -> None:
    made = parse(
        "CREATE AGGREGATE vwap(price DOUBLE, qty INT) WITH STATISTICS"
        " (pv DOUBLE = sum(price * qty) MERGE sum, q BIGINT = sum(qty)) FINISH pv / q"
    )[0].definition
    registry = BUILT_IN.having(made.aggregate())
    types = {"SUM((`v`))": "bigint", "SUM((`x`) * (`v`))": "double"}
    query = shared("SELECT k, vwap(x, v) AS w, sum(v) AS t FROM s GROUP BY k", types, registry)
    assert keys(query) == ["sum(v * x)", "sum(v)"]


@pytest.mark.parametrize(
    "text, reason",
    [
        ("SELECT k FROM s", "it does not aggregate"),
        ("SELECT sum(v) AS t FROM s [ROWS 9]", "a window of the last rows is not made of panes"),
        ("SELECT sum(v) AS t FROM s UNION ALL SELECT 1", "more than one SELECT block"),
        ("SELECT k, x, count(*) AS n FROM s GROUP BY k", "neither grouped by nor aggregated"),
        ("SELECT count(*) AS n FROM s GROUP BY CUBE (k)", "CUBE"),
        ("SELECT sum(v) AS t FROM (SELECT v FROM s)", "a subquery"),
        (f"SELECT max(window_end) AS e FROM s {HOUR}", "the window's edges"),
        (f"SELECT count(*) AS n FROM s {HOUR} WHERE ts < window_end", "edges with columns"),
        ("SELECT median(x) AS m FROM s", "median is holistic"),
        ("SELECT hll_sketch_agg(k) AS m FROM s", "an empty sketch"),
        ("SELECT sum(v) AS t FROM s HAVING (SELECT 1) = 1", "a subquery"),
        ("WITH c AS (SELECT 1) SELECT sum(v) AS t FROM s", "WITH"),
    ],
)
def test_refused(text: str, reason: str) -> None:
    with pytest.raises(CannotShare, match=reason):
        shared(text)
