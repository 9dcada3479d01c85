"""Which groups of a recomputed answer a batch can have changed.

Why: a function that does not merge (MEDIAN, MODE, PERCENTILE, …) must see all rows of its group
again, but only of the groups whose rows came or went. Source: ARGUS §3.2 (holistic functions are
re-aggregated); differs: ARGUS re-aggregates every group.
Law: a group none of whose rows came or went since the last evaluation has the answer that it had;
so the new answer over the touched groups, minus the old answer's rows of those groups, is what
changed. It needs the group in the answer, to find the old rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from weft.logical.aggregates import CannotShare
from weft.logical.canonical import canonical, text_of
from weft.logical.relations import Kind
from weft.logical.windows import LastRows, Session
from weft.plan.blocks import from_items
from weft.plan.recompute import RecomputePlan, Shape
from weft.plan.resolve import END, START, Resolver
from weft.plan.share import check_clauses

KEY = "_weft_touched_"


@dataclass(frozen=True, slots=True)
class Touched:
    """A group by its expressions over the stream's columns, and by columns of the answer."""

    groups: tuple[str, ...]
    outputs: tuple[str, ...]
    where: str | None  # rows that count

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(f"{KEY}{n}" for n in range(len(self.groups)))


def touched_groups(plan: RecomputePlan) -> Touched | str:
    """How to find the groups that rows touch, or why all of them must be computed again."""
    try:
        return _touched(plan)
    except CannotShare as reason:
        return str(reason)


def _touched(plan: RecomputePlan) -> Touched:
    select = plan.tree
    if plan.shape is Shape.EACH_WINDOW or not isinstance(select, exp.Select):
        raise CannotShare("it is more than one SELECT block")
    if len(plan.sources) != 1 or len(from_items(select)) != 1:
        raise CannotShare("it reads more than one source")
    planned, item = plan.sources[0], from_items(select)[0][0]
    if planned.source.relation.kind is not Kind.STREAM or not isinstance(item, exp.Table):
        raise CannotShare("it does not read a stream itself")
    if isinstance(planned.source.window, LastRows | Session):
        raise CannotShare("which rows its window holds depends on the others")
    check_clauses(select)
    if select.args.get("distinct") or select.args.get("limit") or select.args.get("offset"):
        raise CannotShare("DISTINCT or LIMIT looks at all groups together")
    if select.find(exp.Window):
        raise CannotShare("a function OVER (…) looks at all groups together")
    block = Resolver(select, planned, item.alias_or_name).block()
    shown = {text_of(canonical(node)): name for name, node in block.projections if name}
    groups = dict.fromkeys(text_of(canonical(g)) for g in block.groups)
    if block.is_global or not groups:
        raise CannotShare("it has one group")
    if any(column.name in (START, END) for g in block.groups for column in g.find_all(exp.Column)):
        raise CannotShare("it groups by an expression of the window's edges")
    hidden = [group for group in groups if group not in shown]
    if hidden:
        raise CannotShare(f"its answer does not show {hidden[0]}, by which it groups")
    where = block.where.sql(dialect="spark") if block.where is not None else None
    return Touched(tuple(groups), tuple(shown[g] for g in groups), where)
