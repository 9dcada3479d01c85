"""From a recompute plan to a row of the relation of queries: window, predicate, dimensions,
statistics, finish.

Law: grouping the rows of a window that satisfy the predicate by the dimensions, folding the
statistics and finishing gives the answer of the plan over that window; and since every statistic
merges, so does finishing the merge of any partials of those rows. Rows that do not satisfy the
predicate may be folded too, under another signature: an expression that may raise an error on them
is folded as one that does not, and rows where it would have are counted.

Source: ARGUS §3.2 (Fig. 6: a function is parsed, its basic statistics and rules are retrieved and
instantiated with its arguments), architecture §1.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from weft.logical.aggregates import (
    BUILT_IN,
    Aggregates,
    CannotShare,
    PythonAggregate,
    TypeOf,
    expand,
)
from weft.logical.relations import Kind
from weft.logical.statistics import Dimension, Statistic
from weft.logical.windows import (
    Cumulating,
    Hopping,
    Landmark,
    LastRows,
    Session,
    Sliding,
    Snapshot,
    WholeStream,
    Window,
)
from weft.plan.blocks import from_items, is_aggregated
from weft.plan.finish import Finisher
from weft.plan.recompute import PlannedSource, RecomputePlan, Shape
from weft.plan.resolve import Resolver
from weft.plan.terms import Terms, Types

__all__ = ["CannotShare", "SharedQuery", "TypeOf", "share"]

SHARED_WINDOWS = (Hopping, Cumulating, Sliding, Landmark, Snapshot, WholeStream)
UNSHARED_WINDOWS = {
    LastRows: "a window of the last rows is not made of panes",
    Session: "sessions depend on the rows themselves",
}
CLAUSES = {
    "with_": "WITH", "laterals": "LATERAL VIEW", "windows": "a WINDOW clause", "qualify": "QUALIFY",
    "pivots": "PIVOT", "sample": "TABLESAMPLE", "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY", "sort": "SORT BY", "connect": "CONNECT BY", "match": "MATCH",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class SharedQuery:
    """What a query needs of the shared pipeline, and how its answer comes of it.

    `finish` reads one relation, weft_m0, of merged rows: g_* (dimensions), s_* (statistics),
    _weft_start and _weft_end. It yields the output columns of the plan's tree, in order. A global
    standing aggregate over nothing finishes to what SQL gives for no rows when it is given one row
    of NULLs: counts are 0, sums NULL. Every finish maps NULL statistics so.
    """

    stream: str
    window: Window
    predicate: exp.Expression | None  # WHERE, over bare columns
    dimensions: tuple[Dimension, ...]  # by key; without the window's edges
    statistics: tuple[Statistic, ...]  # by key, no duplicates
    is_global: bool  # no GROUP BY besides the window: one row, if standing even over nothing
    finish: exp.Select
    finish_spark: str
    finish_duck: str | None  # None: DuckDB cannot say it with the same meaning
    is_row_local: bool  # the finish maps each merged row by itself
    is_total: bool = False  # its folds raise no error, whatever the rows: none can stop the others
    is_repeatable: bool = True  # merging partials in another order gives the same answer
    definitions: tuple[PythonAggregate, ...] = ()  # whose functions the reading engine must have
    obstacle: str | None = None  # why there is no finish_duck
    failures: tuple[tuple[str, str], ...] = ()  # columns that count failing rows, and what fails
    where: exp.Expression | None = None  # as it was written: what it evaluates first


def share(
    plan: RecomputePlan,
    type_of: TypeOf,
    aggregates: Aggregates = BUILT_IN,
    names: tuple[str, ...] | None = None,
) -> SharedQuery:
    """Decompose a plan. `type_of` is also asked for sum(price), where a user-defined aggregate has it.

    `names` are the output columns as Spark names them, needed only for columns without an alias.
    """
    planned, select = _one_block_over_one_stream(plan)
    alias = from_items(select)[0][0].alias_or_name
    block = Resolver(select, planned, alias).block()
    types = Types(planned, type_of, aggregates)
    block = block.mapped(lambda node: expand(node, aggregates, types.of, only_plain=True))
    terms = Terms(block, types, aggregates)
    finisher = Finisher(plan, select, block, terms, names)
    finish = finisher.select()
    if block.is_global and plan.window is None and not terms.covers_nothing:
        raise CannotShare("it answers over nothing with an empty sketch or bitmap")
    spark, duck = finish.sql(dialect="spark"), finisher.duck()
    return SharedQuery(
        planned.source.relation.name, planned.source.window, terms.predicate,
        tuple(sorted(terms.dimensions.values(), key=lambda d: d.key)),
        tuple(sorted(terms.statistics.values(), key=lambda s: s.key)),
        block.is_global, finish, spark, duck, finisher.is_row_local,
        terms.is_total, terms.is_repeatable, tuple(terms.definitions), finisher.obstacle,
        tuple(sorted(terms.failures.items())), block.where,
    )  # fmt: skip


def _one_block_over_one_stream(plan: RecomputePlan) -> tuple[PlannedSource, exp.Select]:
    if plan.shape is Shape.EACH_WINDOW:
        raise CannotShare(f"it runs window by window: {plan.reason}")
    select = plan.tree
    if not isinstance(select, exp.Select):
        raise CannotShare("it is more than one SELECT block")
    if len(plan.sources) != 1 or len(from_items(select)) != 1:
        raise CannotShare("it reads more than one source")
    check_clauses(select)
    planned = plan.sources[0]
    _check_source(planned, from_items(select)[0][0])
    if not is_aggregated(select) and not select.args.get("distinct"):
        raise CannotShare("it does not aggregate")
    return planned, select


def check_clauses(select: exp.Select) -> None:
    for key, name in CLAUSES.items():
        if select.args.get(key):
            raise CannotShare(f"{name} in the query")
    if any(node is not select for node in select.find_all(exp.Query)):
        raise CannotShare("a subquery")
    distinct = select.args.get("distinct")
    if distinct and distinct.args.get("on"):
        raise CannotShare("DISTINCT ON in the query")


def _check_source(planned: PlannedSource, item: exp.Expression) -> None:
    if not isinstance(item, exp.Table) or item.args.get("pivots") or item.args.get("sample"):
        raise CannotShare("it does not read a stream itself")
    source = planned.source
    if source.relation.kind is not Kind.STREAM:
        raise CannotShare(f'"{source.relation.name}" is a {source.relation.kind}, not a stream')
    if not isinstance(source.window, SHARED_WINDOWS):
        raise CannotShare(UNSHARED_WINDOWS[type(source.window)])
