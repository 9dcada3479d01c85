"""User-defined aggregates: registered, looked up, and their calls in queries made ready to plan.

A call is checked and marked when a query is bound, so that every rule of the planner sees an
aggregate; where Spark or DuckDB runs the query as it stands, the call is written out as its finish
over its folds. Between the two the query is drafted for sharing (logical/aggregates/defined.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.catalog.view import View
from weft.errors import NameTaken, SqlError, TypeProblem, UnknownName, Unsupported, did_you_mean
from weft.logical.aggregates import (
    BUILT_IN,
    Aggregates,
    PythonAggregate,
    SqlAggregate,
    expand,
    mark,
)
from weft.logical.declared import find
from weft.logical.query import BoundQuery
from weft.logical.relations import Column, Kind, Relation
from weft.plan.names import spark_name
from weft.plan.recompute import RecomputePlan
from weft.sql.parse import parse
from weft.sql.scope import position
from weft.sql.statements import CreateAggregate

if TYPE_CHECKING:
    from weft.engine.core import Engine


@lru_cache(maxsize=16)
def known_aggregates(statements: tuple[str, ...]) -> Aggregates:
    """The built-in aggregates and those that some statements define."""
    if not statements:
        return BUILT_IN
    return BUILT_IN.having(*(parse(text)[0].definition.aggregate() for text in statements))


def user_defined(aggregates: Aggregates) -> dict[str, SqlAggregate | PythonAggregate]:
    return {a.name: a.definition for a in aggregates if a.definition is not None}


def in_python(aggregates: Aggregates) -> list[PythonAggregate]:
    return [d for d in user_defined(aggregates).values() if isinstance(d, PythonAggregate)]


# calls in queries


def marked(bound: BoundQuery, aggregates: Aggregates) -> BoundQuery:
    """The query with its calls checked, marked as aggregates, and named as Spark would."""
    known = user_defined(aggregates)
    calls = [n for n in bound.tree.find_all(exp.Anonymous) if n.name.lower() in known]
    if not calls:
        return bound
    for call in calls:
        _check_call(call, known[call.name.lower()])
    tree = mark(bound.tree, aggregates)
    for select in tree.find_all(exp.Select):
        select.set("expressions", [_named(p, known) for p in select.expressions])
    return replace(bound, tree=tree)


def written_out(bound: BoundQuery, aggregates: Aggregates) -> BoundQuery:
    """The query with its marked calls written out."""
    return replace(bound, tree=_expanded(bound.tree, aggregates))


def written_out_plan(plan: RecomputePlan, aggregates: Aggregates) -> RecomputePlan:
    return replace(plan, tree=_expanded(plan.tree, aggregates))


def _expanded(tree: exp.Query, aggregates: Aggregates) -> exp.Query:
    known = user_defined(aggregates)
    return expand(tree, aggregates) if known and _calls(tree, known) else tree


def _calls(tree: exp.Expression, names: object) -> bool:
    kinds = (exp.Anonymous, exp.AnonymousAggFunc)
    return any(n.name.lower() in names for n in tree.find_all(*kinds))


def _named(projection: exp.Expression, known: dict) -> exp.Expression:
    if isinstance(projection, exp.Alias) or not _calls(projection, known):
        return projection
    return exp.alias_(projection, spark_name(projection), quoted=True)


def _check_call(call: exp.Anonymous, definition: SqlAggregate | PythonAggregate) -> None:
    wanted = ", ".join(f"{p.name} {p.type}" for p in definition.parameters)
    given = call.expressions
    if any(isinstance(a, exp.Distinct) for a in given):
        raise Unsupported(
            f"{call.name} cannot be used with DISTINCT",
            hint="aggregate the distinct rows of a subquery",
            **position(call),
        )
    if len(given) != len(definition.parameters) or any(isinstance(a, exp.Star) for a in given):
        raise TypeProblem(
            f"{call.name} takes {len(definition.parameters)} arguments: {wanted}",
            code="WEFT_WRONG_ARGUMENTS",
            **position(call),
        )
    around = call.parent.parent if isinstance(call.parent, exp.Filter) else call.parent
    if isinstance(around, exp.Window | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        raise Unsupported(
            f"{call.name} cannot be used with OVER, IGNORE NULLS or WITHIN GROUP",
            hint="group in a subquery, and use its answer",
            **position(call),
        )


# the catalog


def create_aggregate(engine: Engine, statement: CreateAggregate) -> None:
    name = statement.definition.name
    with engine.lock:
        engine.become_writer()
        with engine.catalog.read() as view:
            old = user_defined(engine.plans.aggregates(view)).get(name.lower())
            if old is not None and statement.if_not_exists:
                return
            if old is not None and not statement.or_replace:
                raise NameTaken(
                    f'aggregate "{name}" already exists',
                    hint="use another name, or CREATE OR REPLACE AGGREGATE",
                    line=statement.line,
                    column=statement.column,
                )
            if old is not None and old.meaning != statement.definition.meaning:
                refuse_if_used(view, name, "replaced")
        if isinstance(statement.definition, PythonAggregate):
            find(statement.definition.target)
        else:
            _check_types(engine, statement)
        with engine.catalog.write() as change:
            change.add_aggregate(name, statement.text)
        engine.tell_spark()


def drop_aggregate(engine: Engine, name: str, if_exists: bool, **place: int) -> None:
    with engine.lock:
        engine.become_writer()
        with engine.catalog.write() as change:
            known = user_defined(engine.plans.aggregates(change))
            if name.lower() in known:
                refuse_if_used(change, name, "dropped")
                change.remove_aggregate(name)
            elif not if_exists:
                is_built_in = BUILT_IN.find(name) is not None
                raise UnknownName(
                    f'there is no user-defined aggregate "{name}"',
                    detail=f"{name} is built in" if is_built_in else None,
                    hint=did_you_mean(name, list(known)),
                    code="WEFT_UNKNOWN_AGGREGATE",
                    **place,
                )


def refuse_if_used(view: View, name: str, verb: str) -> None:
    users = [q.name for q in view.queries() if uses(q.statement, name)]
    if users:
        raise SqlError(
            f'aggregate "{name}" cannot be {verb}: {len(users)} queries use it',
            detail="used by " + ", ".join(users[:8]),
            hint="drop those queries first",
            code="WEFT_IN_USE",
        )


def uses(statement: str, name: str) -> bool:
    """Whether a query's own text calls an aggregate."""
    if name.lower() not in statement.lower():
        return False
    return _calls(parse(statement)[0].select.tree, {name.lower()})


def _check_types(engine: Engine, statement: CreateAggregate) -> None:
    """Let Spark's analyzer look at every fold, merge and the finish: now, not at the first use."""
    definition = statement.definition
    over_rows = _typer(engine, [(p.name, p.type) for p in definition.parameters])
    over_parts = _typer(engine, [(s.name, s.type) for s in definition.statistics])
    try:
        for basic in definition.statistics:
            over_rows(f"CAST({basic.fold.sql('spark')} AS {basic.type})")
            if basic.merge is not None:
                over_parts(f"CAST({basic.merge.sql('spark')} AS {basic.type})")
        over_parts(definition.finish.sql("spark"))
    except Exception as error:
        from weft.spark.problems import statement_problem

        if not hasattr(error, "getCondition"):
            raise
        raise statement_problem(error, statement.text) from None


def _typer(engine: Engine, columns: Sequence[tuple[str, str]]):
    made = tuple(Column(*pair) for pair in columns)
    return engine.analyses.type_of(Relation(Kind.TABLE, "aggregate", made))
