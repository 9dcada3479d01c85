"""A statement → a query that is bound, planned and checked by Spark's analyzer, but not registered."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weft.catalog.records import FINISHED_ON_SPARK, QueryRecord
from weft.catalog.rules import owner_of, readers_of, refuse_cycle
from weft.catalog.view import View
from weft.engine.aggregates import user_defined
from weft.engine.alike import Alike
from weft.engine.keeping import with_keep
from weft.engine.selecting import not_a_selection
from weft.engine.sharing import stream_of, what_it_shares
from weft.errors import SqlError
from weft.logical.aggregates import CannotShare
from weft.logical.query import BoundQuery
from weft.plan.drafting import Sharing
from weft.plan.recompute import RecomputePlan, plan_recompute
from weft.plan.select import Selecting, is_selection
from weft.results.pull import Standing
from weft.sql.bind import bind
from weft.sql.options import check_query_options
from weft.sql.statements import CreateQuery

if TYPE_CHECKING:
    from weft.engine.core import Engine
    from weft.spark.world import World


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A query that is bound, planned and checked, but not registered."""

    statement: CreateQuery
    bound: BoundQuery
    plan: RecomputePlan | None  # None: it is planned when somebody asks
    record: QueryRecord  # without an id
    old: QueryRecord | None
    sharing: Sharing | None = None
    selecting: Selecting | None = None  # it shares the rows themselves

    @property
    def stream_id(self) -> int | None:
        """The stream whose network it enters; None: it is evaluated by itself."""
        if self.selecting is not None:
            return self.selecting.value.stream_id
        return None if self.sharing is None else self.sharing.need.value.stream_id


def planned_query(
    engine: Engine, view: View, world: World, statement: CreateQuery, old: QueryRecord | None,
    alike: Alike,
) -> Planned:  # fmt: skip
    from weft.spark.register import horizons_of, make_record
    from weft.spark.world import load_shared

    check_query_options(statement)
    bound = engine.plans.bind(view, statement.select, statement.emit)
    reads = _reads(engine, view, bound, statement)
    refuse_cycle(view, reads, old)
    drafted = plan_recompute(bound)
    if "materialize" in statement.options and not is_selection(drafted):
        raise not_a_selection(statement.name)
    plan = engine.plans.written_out(view, drafted)
    load_shared(view, world, plan)
    analyses = engine.analyses
    answer = analyses.schema(world, plan, statement.text)
    horizons = horizons_of(plan, world)
    record = make_record(0, statement.name, statement.text, bound, plan, answer, reads, horizons, 0)
    record = with_keep(record, statement.options)
    shared: dict[str, Sharing | Selecting] = {}
    try:
        shared = what_it_shares(engine, view, statement, drafted, answer.names, horizons)
        sharing = shared.get("sharing")
        is_stored = sharing is not None and sharing.finish.on_spark
        record = replace(record, strategy=FINISHED_ON_SPARK if is_stored else "shared")
    except CannotShare as reason:
        record = replace(record, strategy=f"{record.strategy}; not shared: {reason}")
    if old is not None:
        _check_readers(engine, old, record)
    planned = Planned(statement, bound, plan, record, old, **shared)
    if planned.selecting is not None and not _may_read_queries(view, statement):
        alike.learn(planned, drafted, analyses.type_of(stream_of(drafted)))
    return planned


def _reads(
    engine: Engine, view: View, bound: BoundQuery, statement: CreateQuery
) -> tuple[str, ...]:
    """The owners that a statement names itself, before views are inlined, and what those read."""
    if not _may_read_queries(view, statement):
        return tuple(dict.fromkeys(owner_of(view, s.relation.name) for s in bound.sources))
    functions = user_defined(engine.plans.aggregates(view))
    has = engine.plans.has_function
    direct = bind(
        statement.select, Standing(view), statement.emit, functions=functions, is_other=has
    )
    names = [s.relation.name for s in (*direct.sources, *bound.sources)]
    return tuple(dict.fromkeys(owner_of(view, name) for name in names))


def _may_read_queries(view: View, statement: CreateQuery) -> bool:
    """Whether a statement may name a registered query; most name none, which is seen at a glance."""
    words = re.findall(r"\b[^\W\d]\w*", statement.text.lower())
    names = (view.find(word) for word in dict.fromkeys(words))
    return "`" in statement.text or any(isinstance(found, QueryRecord) for found in names)


def _check_readers(engine: Engine, old: QueryRecord, new: QueryRecord) -> None:
    with engine.catalog.read() as view:
        readers = readers_of(view, old)
    if readers and old.output_columns() != new.output_columns():
        raise SqlError(
            f'query "{old.name}" is read by {", ".join(readers)}, and its columns would change',
            hint="keep the columns, or drop the queries that read it first",
            code="WEFT_IN_USE",
        )
