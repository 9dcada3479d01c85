"""What a new query shares: an aggregation, the rows that it selects, or nothing, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.catalog.view import View
from weft.logical.aggregates import CannotShare
from weft.logical.relations import Emit, Kind, Relation
from weft.plan.drafting import Sharing, draft
from weft.plan.recompute import RecomputePlan
from weft.plan.select import Selecting, is_selection, select
from weft.sql.statements import CreateQuery

if TYPE_CHECKING:
    from weft.engine.core import Engine


def what_it_shares(
    engine: Engine,
    view: View,
    statement: CreateQuery,
    plan: RecomputePlan,
    names: list[str],
    horizons: dict[str, int],
) -> dict[str, Sharing | Selecting]:
    """What a query shares: an aggregation, or the rows that it selects."""
    sharing = None
    is_distinct = plan.tree.args.get("distinct") and "materialize" not in statement.options
    if not is_selection(plan) or is_distinct:  # DISTINCT may be shared as an aggregate, too
        try:
            sharing = _share(engine, view, statement, plan, names, horizons)
        except CannotShare:
            if not is_selection(plan):
                raise
        if sharing is not None and not (is_selection(plan) and sharing.finish.on_spark):
            return {"sharing": sharing}
    try:
        return {"selecting": _select(engine, view, statement, plan, names)}
    except CannotShare:
        if sharing is None:
            raise
    return {"sharing": sharing}


def _select(
    engine: Engine, view: View, statement: CreateQuery, plan: RecomputePlan, names: list[str]
) -> Selecting:
    relation = stream_of(plan)
    policy = statement.options.get("materialize", "auto").lower()
    stream, types = view.find(relation.name), engine.analyses.type_of(relation)
    return select(plan, stream.id, types, tuple(names), policy)


def stream_of(plan: RecomputePlan) -> Relation:
    sources = [p.source.relation for p in plan.sources]
    if len(sources) != 1 or sources[0].kind is not Kind.STREAM:
        raise CannotShare("it does not read one stream alone")
    return sources[0]


def _share(
    engine: Engine,
    view: View,
    statement: CreateQuery,
    plan: RecomputePlan,
    names: list[str],
    horizons: dict[str, int],
) -> Sharing:
    relation = stream_of(plan)
    stream = view.find(relation.name)
    return draft(
        plan, stream.id, engine.analyses.type_of(relation), engine.plans.aggregates(view),
        tuple(names), statement.emit is Emit.CHANGES, max(horizons.values(), default=None),
        statement.options.get("answers", "auto").lower(),
    )  # fmt: skip
