"""Helpers to walk a select block: its FROM items, its own expressions, its nested queries."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

# Aggregate functions of Spark that sqlglot does not know as such.
AGGREGATES = frozenset(
    [
        "any",
        "any_value",
        "approx_count_distinct",
        "approx_percentile",
        "approx_top_k",
        "approx_top_k_accumulate",
        "approx_top_k_combine",
        "array_agg",
        "avg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bitmap_and_agg",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "bool_and",
        "bool_or",
        "collect_list",
        "collect_set",
        "collect_union",
        "corr",
        "count",
        "count_if",
        "count_min_sketch",
        "covar_pop",
        "covar_samp",
        "every",
        "first",
        "first_value",
        "grouping",
        "grouping_id",
        "histogram_numeric",
        "hll_sketch_agg",
        "hll_union_agg",
        "kll_merge_agg_bigint",
        "kll_merge_agg_double",
        "kll_merge_agg_float",
        "kll_sketch_agg_bigint",
        "kll_sketch_agg_double",
        "kll_sketch_agg_float",
        "kurtosis",
        "last",
        "last_value",
        "listagg",
        "max",
        "max_by",
        "mean",
        "median",
        "min",
        "min_by",
        "mode",
        "percentile",
        "percentile_approx",
        "percentile_cont",
        "percentile_disc",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "schema_of_variant_agg",
        "skewness",
        "some",
        "std",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "string_agg",
        "sum",
        "theta_intersection_agg",
        "theta_sketch_agg",
        "theta_union_agg",
        "try_avg",
        "try_sum",
        "tuple_intersection_agg_double",
        "tuple_intersection_agg_integer",
        "tuple_sketch_agg_double",
        "tuple_sketch_agg_integer",
        "tuple_union_agg_double",
        "tuple_union_agg_integer",
        "var_pop",
        "var_samp",
        "variance",
        "vector_avg",
        "vector_sum",
    ]
)


def from_items(select: exp.Select) -> list[tuple[exp.Expression, exp.Join | None]]:
    """The relations of FROM in order, each with the join that brings it (None for the first)."""
    start = select.args.get("from_")
    items: list[tuple[exp.Expression, exp.Join | None]] = [(start.this, None)] if start else []
    items += [(join.this, join) for join in select.args.get("joins") or ()]
    if start is not None:
        # `FROM a JOIN b` inside a Table node, as sqlglot nests joins after a comma
        items[1:1] = [(join.this, join) for join in start.this.args.get("joins") or ()]
    return items


def own_nodes(block: exp.Expression) -> Iterator[exp.Expression]:
    """Every node of a block that does not lie in a nested query."""
    for child in block.iter_expressions():
        if isinstance(child, exp.Query):
            continue
        yield child
        yield from own_nodes(child)


WRAPPERS = exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup


def is_aggregate_call(node: exp.Expression) -> bool:
    """Whether a node aggregates rows of its block (a window function does not)."""
    named = isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES
    if not (named or isinstance(node, exp.AggFunc) or _is_any(node)):
        return False
    parent = node.parent
    while isinstance(parent, WRAPPERS) and parent.this is node:
        node, parent = parent, parent.parent
    return not (isinstance(parent, exp.Window) and parent.this is node)


def _is_any(node: exp.Expression) -> bool:
    """ANY(condition) is bool_or; the ANY of LIKE ANY ('a%', 'b%') is not."""
    is_list = isinstance(node.parent, exp.Like | exp.ILike) or node.find(exp.Query) is not None
    return isinstance(node, exp.Any) and not is_list


def is_aggregated(select: exp.Select) -> bool:
    """Whether the block makes one row of many: GROUP BY, HAVING, or an aggregate in SELECT."""
    if select.args.get("group") or select.args.get("having"):
        return True
    return any(
        is_aggregate_call(node)
        for projection in select.expressions
        for node in (projection, *own_nodes(projection))
    )


def is_global_aggregate(select: exp.Select) -> bool:
    """Whether the block makes one row of all its rows, also of none."""
    return is_aggregated(select) and not select.args.get("group")


def keep_rows_only(select: exp.Select) -> None:
    """Keep groups that have rows: all of them, and no more, whatever the aggregate is over."""
    having = select.args.get("having")
    some = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
    select.set("having", exp.Having(this=exp.and_(having.this, some) if having else some))


def alias_of(item: exp.Expression) -> str:
    return item.alias_or_name


def add_condition(holder: exp.Select | exp.Join, condition: exp.Expression) -> None:
    """AND a condition to a block's WHERE or to a join's ON."""
    if isinstance(holder, exp.Join):
        on = holder.args.get("on")
        holder.set("on", exp.and_(on, condition) if on else condition)
        return
    where = holder.args.get("where")
    holder.set("where", exp.Where(this=exp.and_(where.this, condition) if where else condition))


def is_inner(join: exp.Join) -> bool:
    return not join.side and join.kind in ("", "INNER", "CROSS") and join.method != "NATURAL"


def hide_from_stars(select: exp.Select, hidden: dict[str, list[str]]) -> None:
    """Keep helper columns out of `*` and `alias.*`, also inside calls such as struct(*).

    `hidden` maps an alias to its helpers.
    """
    for star in [node for node in own_nodes(select) if isinstance(node, exp.Star)]:
        if isinstance(star.parent, exp.Count):  # count(*) is about rows, not columns
            continue
        table = star.parent.table if isinstance(star.parent, exp.Column) else ""
        names = [
            exp.column(name, table=None if table else alias, quoted=True)
            for alias, columns in hidden.items()
            if not table or alias.lower() == table.lower()
            for name in columns
        ]
        if names:
            star.set("except_", [*(star.args.get("except_") or []), *names])
