"""Update patterns: how rows of an answer come to leave it.

Monotonic rows never leave; weakest leave in the order they came; weak leave at a time known at
birth; strict may be cut short. Computed bottom-up by UPA's five rules (§5.2) over the query's
blocks. Differs: a per-window answer is a stream of closed windows, so it is monotonic once emitted.
"""

from __future__ import annotations

from enum import IntEnum

from sqlglot import exp

from weft.logical.relations import Kind
from weft.logical.windows import LastRows, Snapshot, Window
from weft.plan.blocks import from_items, is_aggregated
from weft.plan.recompute import PlannedSource, RecomputePlan


class Pattern(IntEnum):
    MONOTONIC = 0
    WEAKEST = 1
    WEAK = 2
    STRICT = 3

    def __str__(self) -> str:
        return self.name.lower()


Found = tuple[Pattern, str]


def pattern_of(plan: RecomputePlan, emits_changes: bool = False) -> Found:
    """The pattern of the answer, and the operator that decides it."""
    if plan.is_per_window and emits_changes:
        return Pattern.WEAK, "a window's rows are replaced when it changes (rule 4)"
    if plan.is_per_window:
        return Pattern.MONOTONIC, "a closed window does not change"
    if not any(p.source.relation.time_column for p in plan.sources):
        return Pattern.STRICT, "its tables may change at any time"
    return _query(plan.tree, {p.source.placeholder: p for p in plan.sources}, {})


def _query(
    query: exp.Expression, sources: dict[str, PlannedSource], ctes: dict[str, Found]
) -> Found:
    clause = query.args.get("with_")
    for cte in clause.expressions if clause else ():
        ctes = {**ctes, cte.alias.lower(): _query(cte.this, sources, ctes)}
    if isinstance(query, exp.Subquery):
        return _query(query.this, sources, ctes)
    if isinstance(query, exp.Except):
        return Pattern.STRICT, "negation (rule 5)"
    if isinstance(query, exp.Intersect):
        return _weak(
            [_query(query.this, sources, ctes), _query(query.expression, sources, ctes)],
            "intersection",
        )
    if isinstance(query, exp.SetOperation):
        sides = [_query(query.this, sources, ctes), _query(query.expression, sources, ctes)]
        return _weak(sides, "duplicate elimination") if query.args.get("distinct") else max(sides)
    if isinstance(query, exp.Select):
        return _select(query, sources, ctes)
    return Pattern.MONOTONIC, "constants"


def _select(select: exp.Select, sources: dict[str, PlannedSource], ctes: dict[str, Found]) -> Found:
    inputs = [_item(item, join, sources, ctes) for item, join in from_items(select)]
    tables = [i for i in inputs if i is not None and i[1] == "a retroactive table (rule 5)"]
    streams = [i for i in inputs if i is not None]
    found = max(streams, default=(Pattern.MONOTONIC, "constants"))
    if _has_negation(select):
        return Pattern.STRICT, "negation (rule 5)"
    if is_aggregated(select):
        return Pattern.WEAK, "group-by (rule 4)"
    if tables and len(inputs) > 1:
        return Pattern.STRICT, "a join with a retroactive table (rule 5)"
    if len(streams) > 1 and found[0] < Pattern.STRICT and found[0] > Pattern.MONOTONIC:
        found = (Pattern.WEAK, "a join of windows (rule 3)")
    if select.args.get("distinct"):
        found = _weak([found], "duplicate elimination")
    if select.args.get("limit") or any(select.find_all(exp.Window)):
        return Pattern.STRICT, "a row may be pushed out by a better one"
    return found


def _weak(inputs: list[Found], what: str) -> Found:
    worst = max(inputs)
    if worst[0] is Pattern.STRICT:
        return worst
    return Pattern.WEAK, f"{what} (rule 3)"


def _has_negation(select: exp.Select) -> bool:
    if any(join.kind == "ANTI" for _, join in from_items(select) if join is not None):
        return True
    nots = select.find_all(exp.Not)
    return any(
        node.find(exp.Exists) or (node.find(exp.In) and node.find(exp.Query)) for node in nots
    )


def _item(
    item: exp.Expression,
    join: exp.Join | None,
    sources: dict[str, PlannedSource],
    ctes: dict[str, Found],
) -> Found | None:
    if isinstance(item, exp.Subquery):
        return _query(item.this, sources, ctes)
    if not isinstance(item, exp.Table):
        return None
    planned = sources.get(item.name)
    if planned is None:
        return ctes.get(item.name.lower())
    relation = planned.source.relation
    if relation.kind is Kind.TABLE:
        return (Pattern.STRICT, "a retroactive table (rule 5)") if relation.is_retroactive else None
    return _window(planned.source.window)


def _window(window: Window) -> Found:
    if type(window).__name__ == "Sliding":
        return Pattern.WEAKEST, "selection over a sliding window (rule 1)"
    if isinstance(window, LastRows):
        return Pattern.WEAKEST, "selection over the last rows (rule 1)"
    if isinstance(window, Snapshot):
        return Pattern.MONOTONIC, "rows of a snapshot stay"
    return Pattern.MONOTONIC, "rows of the stream stay"
