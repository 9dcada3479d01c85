"""A bound query → its plan and its catalog record, checked by Spark's own analyzer.

Names were bound before, with positions; here types are: the plan is analysed over the real
sources, which runs no job, and what Spark refuses is refused now, not in the middle of a batch.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from sqlglot import exp

from weft.catalog.records import QueryRecord, StreamRecord
from weft.errors import SqlError, TypeProblem
from weft.logical.query import BoundQuery
from weft.logical.relations import Column, Emit, Kind, Relation
from weft.logical.types import arrow_type
from weft.logical.windows import LastRows, microseconds
from weft.plan.recompute import RecomputePlan
from weft.spark.evaluate import Evaluator
from weft.spark.problems import statement_problem
from weft.spark.rows import HELPERS, nothing
from weft.spark.world import World


class Analyses:
    """What Spark's analyzer said, kept: thousands of queries differ in windows and constants only."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._schemas: dict[tuple, StructType] = {}
        self._types: dict[tuple, str] = {}

    def schema(self, world: World, plan: RecomputePlan, text: str) -> StructType:
        """The schema of the plan's answer; what Spark refuses is refused with its position."""
        sources = tuple((p.source.placeholder, p.source.relation) for p in plan.sources)
        key = (_without_numbers(plan.tree), sources, plan.shape)
        if key not in self._schemas:
            try:
                self._schemas[key] = Evaluator(self._spark, world, plan, {}).analysed().schema
            except PySparkException as error:
                raise statement_problem(error, text) from None
        return self._schemas[key]

    def type_of(self, relation: Relation) -> Callable[[str], str]:
        """Types of expressions over a stream's columns and helper columns."""
        columns = relation.columns + HELPERS
        if relation.time_column and relation.time_column not in relation.column_names():
            columns += (Column(relation.time_column, "TIMESTAMP"),)

        def ask(sql: str) -> str:
            key = (columns, sql)
            if key not in self._types:
                found = nothing(self._spark, columns).selectExpr(sql).schema.fields[0].dataType
                self._types[key] = found.simpleString()
            return self._types[key]

        return ask


def _without_numbers(tree: exp.Query) -> str:
    """The query with whole numbers of a comparison left out: they do not change what it yields."""

    def blank(node: exp.Expression) -> exp.Expression:
        is_small = isinstance(node, exp.Literal) and node.is_int and len(node.name) < 10
        if is_small and isinstance(node.parent, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.EQ):
            return exp.Literal.number(0)
        return node

    return tree.copy().transform(blank).sql(dialect="spark")


def make_record(
    query_id: int,
    name: str,
    statement: str,
    bound: BoundQuery,
    plan: RecomputePlan,
    answer: StructType,
    reads: tuple[str, ...],
    horizons: dict[str, int],
    tick: int,
) -> QueryRecord:
    """The record of a query that has not been evaluated yet."""
    types = {f.name: _type_name(f) for f in answer.fields}
    columns = tuple(Column(n, t) for n, t in types.items() if not n.startswith("_weft_"))
    check_columns(columns, answer)
    names = {c.name.lower() for c in columns}
    shows_window = plan.is_per_window and not plan.projects_window
    shows_window = shows_window and not names & {"window_start", "window_end"}
    is_append_only = plan.is_per_window and (
        bound.emit is not Emit.CHANGES or isinstance(plan.window, LastRows)
    )
    return QueryRecord(
        id=query_id, name=name, statement=statement, columns=columns,
        order=tuple((k.column, k.is_descending, k.is_nulls_first, types[k.column]) for k in plan.order),
        is_per_window=plan.is_per_window, is_append_only=is_append_only, shows_window=shows_window,
        window=windows_text(plan),
        strategy=f"recompute: {plan.shape}", reads=reads, horizons=horizons, created_tick=tick,
        clock=None, evaluated_tick=0, frontier=None, evaluation=0, rows_out=0, last_ms=0,
        newest_end=None, error=None,
    )  # fmt: skip


def check_columns(columns: tuple[Column, ...], answer: StructType) -> None:
    if not columns:
        raise SqlError("the query has no columns", hint="select at least one column")
    lowered = [f.name.lower() for f in answer.fields]
    twice = next((n for n in lowered if lowered.count(n) > 1), None)
    if twice is not None:
        raise SqlError(
            f'two columns of the answer are named "{twice}"',
            hint="give one of them an alias",
            code="WEFT_DUPLICATE_COLUMN",
        )
    for column in columns:
        try:
            arrow_type(column.type)
        except Exception:
            raise TypeProblem(
                f'column "{column.name}" of the answer has type {column.type}, which cannot be stored',
                hint="cast it, for example to STRING",
            ) from None


def _type_name(field) -> str:
    name = field.dataType.simpleString()
    if name == "void":
        return "STRING"
    return name if "<" in name else name.upper()


def visible_from(record: StreamRecord, earliest: int | None) -> int | None:
    """The first instant that a query registered now may see; None if nothing is hidden from it."""
    retain = record.definition.retain
    if retain is None or record.clock is None:
        return None
    horizon = record.clock - microseconds(retain)
    is_cut = record.pruned_rows > 0 or (earliest is not None and earliest < horizon)
    return horizon if is_cut else None


def horizons_of(plan: RecomputePlan, world: World) -> dict[str, int]:
    found = {}
    for planned in plan.sources:
        if planned.source.relation.kind is Kind.STREAM:
            state = world.streams[planned.source.relation.name.lower()]
            earliest = min(
                (s.min_time for s in state.segments if s.min_time is not None), default=None
            )
            horizon = visible_from(state.record, earliest)
            if horizon is not None:
                found[state.record.name.lower()] = horizon
        elif planned.source.relation.kind is Kind.QUERY:
            name = planned.source.relation.name.lower()
            forgotten = (world.shared.get(name) or world.queries[name]).record.forgotten
            if forgotten is not None:  # a window's time is 1 µs before its end
                found[name] = forgotten
    return found


def windows_text(plan: RecomputePlan) -> str:
    """The query's windows in words: "tumbling 1 h", "sliding 10 min, whole stream"."""
    if plan.window is not None:
        return str(plan.window)
    kinds = (Kind.STREAM, Kind.QUERY)
    found = [str(p.source.window) for p in plan.sources if p.source.relation.kind in kinds]
    return ", ".join(dict.fromkeys(found)) or "tables only"
