"""EXPLAIN SELECT …: what registering a query would do to its stream's network. Changes nothing.

The same steps as in a registration: the plan is drafted (plan/drafting.py) and placed in the loaded
network (optimizer/placing.py), which gives a value; it is described instead of carried out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from weft.catalog.records import StreamRecord
from weft.catalog.view import View
from weft.delivery.explain_shared import Users, covers, load_users
from weft.engine import Engine
from weft.logical.aggregates import CannotShare
from weft.logical.aggregates.kinds import is_portable
from weft.logical.relations import Kind, Relation
from weft.optimizer.described import counted, edges_text, node_text, readable, window_text
from weft.optimizer.nodes import LiveNode
from weft.optimizer.placing import Placement, place
from weft.plan.drafting import Sharing, draft
from weft.plan.recompute import RecomputePlan

HELPERS = {"_weft_time": "timestamp", "unix_micros(_weft_time)": "bigint"}


@dataclass(frozen=True, slots=True)
class WouldShare:
    """What a select would share if it were registered."""

    window: str
    predicate: str
    dimensions: list[str]
    statistics: list[str]
    placed: str  # which class and which node, in words
    joins: int | None  # the class that it equals
    with_queries: list[str]  # in that class
    reads: int | None  # the node that it would read, if there is one
    makes: list[str]  # nodes that would be made
    moves: list[int]  # classes that would read on from another node
    retires: list[int]  # nodes that would fold no more
    most: int | None  # partials that cover one window
    typical: int | None
    finish: str
    edges: str | None = None  # what is read from the rows beside them
    on_spark: str | None = None  # why Spark would finish it
    may_fail: list[str] = field(default_factory=list)


def explain_would(
    engine: Engine, view: View, plan: RecomputePlan, text: str, emits_changes: bool
) -> WouldShare:
    """Raises CannotShare with the reason, as a registration would meet it."""
    relations = [p.source.relation for p in plan.sources]
    if len(relations) != 1 or relations[0].kind is not Kind.STREAM:
        raise CannotShare("it does not read one stream alone")
    stream = view.find(relations[0].name)
    sharing = draft(
        plan, stream.id, lazy_types(engine, relations[0], text), engine.plans.aggregates(view), (),
        emits_changes, _horizon(view, stream), "auto",
    )  # fmt: skip
    users = load_users(view, stream.id)
    tick = int(view.fact("tick") or 0) + 1
    weaving = engine.weaver.weaving(stream.id)
    placement = place(
        users.network, [sharing.need], tick, stream.pruned_rows == 0, weaving, stream.clock
    )
    return _described(users, stream, sharing, placement)


def lazy_types(engine: Engine, relation: Relation, text: str) -> Callable[[str], str]:
    """Types of expressions over a stream's columns; Spark is started for what they do not say."""
    known = {c.name.lower(): c.type.lower() for c in relation.columns}
    known = {name: kind for name, kind in known.items() if is_portable(kind)} | HELPERS

    def type_of(sql: str) -> str:
        found = known.get(sql.replace("`", "").lower())
        return found or _asked(engine, relation, text, sql)

    return type_of


def _asked(engine: Engine, relation: Relation, text: str, sql: str) -> str:
    analyses = engine.analyses
    try:
        return analyses.type_of(relation)(sql)
    except Exception as error:
        from weft.spark.problems import statement_problem

        if not hasattr(error, "getCondition"):
            raise
        raise statement_problem(error, text) from None


def _horizon(view: View, stream: StreamRecord) -> int | None:
    """The first instant that a query registered now would see; None if nothing is hidden."""
    if stream.definition.retain is None or stream.clock is None:
        return None
    from weft.spark.register import visible_from

    times = [s.min_time for s in view.segments(stream.owner, "rows") if s.min_time is not None]
    return visible_from(stream, min(times, default=None))


def _described(
    users: Users, stream: StreamRecord, sharing: Sharing, placement: Placement
) -> WouldShare:
    (need,) = placement.needs
    known = users.network.classes.get(need.key)
    route = placement.moved.get(need.key) or placement.routes.get(need.key)
    node_id = (route or known.open_route).node_id
    nodes = users.network.nodes | {made.id: made for made in placement.made}
    node = nodes[node_id].node
    most, typical = covers(need.value.window, node.panes, node.pyramid, stream.clock or 0)
    return WouldShare(
        window=window_text(need.value),
        predicate=readable(need.value.predicate.text),
        dimensions=[d.key for d in need.value.dimensions],
        statistics=[s.key for s in need.statistics],
        placed=_placed(users, nodes[node_id], None if known is None else known.id),
        joins=None if known is None else known.id,
        with_queries=users.names.get(known.id, []) if known else [],
        reads=node_id if node_id in users.network.nodes else None,
        makes=[_made(stream, made) for made in placement.made],
        moves=sorted(users.network.classes[key].id for key in placement.moved),
        retires=sorted(placement.retired),
        most=most,
        typical=typical,
        finish=sharing.finish.spark if sharing.finish.on_spark else sharing.finish.duck,
        edges=edges_text(need.value, node.panes),
        on_spark=sharing.finish.on_spark,
        may_fail=[text for _, text in sharing.finish.failures],
    )


def _placed(users: Users, live: LiveNode, class_id: int | None) -> str:
    who = "a new class" if class_id is None else f"joins class {class_id}"
    if live.id in users.network.nodes:
        readers = len(users.queries(live.id))
        do = "does" if readers == 1 else "do"
        return f"{who}; reads node {live.id}, as {counted(readers, 'query')} {do}"
    return f"{who}; a new node would be made"


def _made(stream: StreamRecord, live: LiveNode) -> str:
    if live.parent_id is None:
        source = f"the rows of {stream.name}"
    else:
        source = "another new one" if live.parent_id < 0 else f"node {live.parent_id}"
    return f"{node_text(live.node)}, from {source}"
