"""EXPLAIN of a selection: what is kept of it, why, and how the Query SteM finds its rows."""

from __future__ import annotations

from dataclasses import dataclass

from weft.catalog.records import QueryRecord, to_instant
from weft.catalog.view import View
from weft.delivery.explain_would import lazy_types
from weft.engine import Engine
from weft.logical.aggregates import CannotShare
from weft.logical.relations import Kind
from weft.logical.windows import instant
from weft.optimizer.atoms import Bit
from weft.optimizer.codec import load
from weft.optimizer.described import BEGINNING, counted, readable
from weft.optimizer.selections import SelectClass, Selection
from weft.plan.recompute import RecomputePlan
from weft.plan.select import Selecting, select

WHY = "rows are kept once for all queries; window, predicate and projection apply when it is read"


@dataclass(frozen=True, slots=True)
class SelectedExplained:
    policy: str
    kept: str  # "once per row", "list" or "window"
    kept_why: str
    density: float | None  # the share of the newest rows that satisfies the predicate, as measured
    class_id: int | None  # None: it is not registered
    predicate: str
    with_queries: list[str]
    indexed: list[str]  # factors that are found by their constants
    evaluated: list[str]  # factors that are evaluated as they stand
    derived: list[str]  # what Spark evaluates for each row, and keeps
    finish: str


def explain_selected(view: View, record: QueryRecord) -> SelectedExplained:
    row = view.class_of(record.class_id)
    others = [name for name in view.sharers(row.id) if name != record.name]
    made = Selecting(load(row.definition), load(record.shared))
    return _explained(made, row.id, row.eager_from, row.density, others)


def would_select(engine: Engine, view: View, plan: RecomputePlan, text: str) -> SelectedExplained:
    """What registering a select would come to; raises CannotShare with the reason."""
    relations = [p.source.relation for p in plan.sources]
    if len(relations) != 1 or relations[0].kind is not Kind.STREAM:
        raise CannotShare("it does not read one stream alone")
    stream = view.find(relations[0].name)
    made = select(plan, stream.id, lazy_types(engine, relations[0], text), (), "auto")
    row = next((r for r in view.classes(stream.id) if r.key == made.value.key), None)
    if row is None:
        return _explained(made, None, None, None, [])
    return _explained(made, row.id, row.eager_from, row.density, view.sharers(row.id))


def _explained(
    made: Selecting, class_id: int | None, listed: int | None, density: float | None,
    others: list[str],
) -> SelectedExplained:  # fmt: skip
    selection, value = made.selection, made.value
    kept, why = kept_as(selection, value, listed, density)
    factors = value.predicate.factors
    derived = dict.fromkeys((*value.derived, *selection.derived))
    return SelectedExplained(
        selection.policy, kept, why, density, class_id, readable(value.predicate.text), others,
        [f.expression for f in factors if not isinstance(f, Bit)],
        [f.expression for f in factors if isinstance(f, Bit)],
        [f"{d.column} {d.type} = {d.expression}" for d in derived], _finish(selection, value),
    )  # fmt: skip


def kept_as(
    selection: Selection, value: SelectClass, listed: int | None, density: float | None
) -> tuple[str, str]:
    """How the Results Structure has a query, and why."""
    if selection.ready_from is not None:
        return "window", "the rows of its window are written after every evaluation"
    if listed is not None and selection.can_be_ready:
        since = (
            "" if listed <= BEGINNING else f" of event times from {instant(to_instant(listed))} on"
        )
        return "list", f"its rows{since} are kept apart, {_share(density)} satisfies its predicate"
    why = "the columns of each row decide its predicate, nothing is stored for it"
    if value.derived or selection.derived:
        why = "what only Spark evaluates is derived once for each row"
    if density is not None:
        why += f"; {_share(density)} satisfies its predicate"
    if not selection.can_be_ready:
        why += "; a window of the last rows has no list, and is not kept ready"
    return "once per row", why


def _share(density: float | None) -> str:
    return (
        "an unknown share of the rows" if density is None else f"{density:.3%} of the newest rows"
    )


def _finish(selection: Selection, value: SelectClass) -> str:
    shown = ", ".join(f'{o.sql} AS "{o.name}"' for o in selection.outputs)
    distinct = "DISTINCT " if selection.is_distinct else ""
    limit = "" if selection.limit is None else f" LIMIT {selection.limit}"
    offset = f" OFFSET {selection.offset}" if selection.offset else ""
    return f"SELECT {distinct}{shown} FROM rows WHERE {value.where}{limit}{offset}"


def selected_lines(found: SelectedExplained) -> list[str]:
    who = "it would be alone in a new class" if found.class_id is None else f"{found.class_id}"
    lines = [
        f"keeps      {found.kept} ({found.policy}): {found.kept_why}",
        f"class      {who}: where {found.predicate}" if found.class_id else f"class      {who}",
    ]
    if found.with_queries:
        names = ", ".join(found.with_queries[:5])
        rest = len(found.with_queries) - 5
        more = f" and {rest:,} more" if rest > 0 else ""
        lines.append(
            f"           with {counted(len(found.with_queries), 'other query')}: {names}{more}"
        )
    if not found.indexed and not found.evaluated:
        return [*lines, "index      no predicate: every row", *_ending(found)]
    by = (
        f"found by the constants of {', '.join(found.indexed)}" if found.indexed else "no constants"
    )
    direct = f"; evaluated as they stand: {', '.join(found.evaluated)}" if found.evaluated else ""
    lines.append(f"index      {by}{direct}")
    return [*lines, *_ending(found)]


def _ending(found: SelectedExplained) -> list[str]:
    return [*(f"derived    {text}" for text in found.derived), f"finish     {found.finish}"]
