"""EXPLAIN: how a query is answered and why, as text, JSON or a Mermaid drawing."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import timedelta

from weft.catalog.records import (
    FINISHED_ON_SPARK,
    QueryRecord,
    StreamRecord,
    TableRecord,
    to_instant,
)
from weft.catalog.view import View
from weft.delivery.explain_drawn import (
    label,
    shared_lines,
    shared_mermaid,
    would_lines,
    would_mermaid,
)
from weft.delivery.explain_selected import WHY as SELECTED_WHY
from weft.delivery.explain_selected import (
    SelectedExplained,
    explain_selected,
    selected_lines,
    would_select,
)
from weft.delivery.explain_shared import SharedExplained, explain_shared, stream_of
from weft.delivery.explain_would import WouldShare, explain_would
from weft.engine import Engine
from weft.errors import SqlError
from weft.logical.aggregates import CannotShare
from weft.logical.relations import Emit, Kind
from weft.logical.windows import duration, instant
from weft.optimizer.described import counted
from weft.plan.patterns import Pattern, pattern_of
from weft.plan.recompute import PlannedSource, RecomputePlan, Shape
from weft.plan.select import is_selection as selects_rows
from weft.plan.touched import Touched, touched_groups
from weft.results.at import is_portable
from weft.results.reading import is_selection
from weft.sql.statements import Select


@dataclass(frozen=True, slots=True)
class SourceExplained:
    name: str
    kind: str
    window: str
    reading: str
    rows: int
    segments: int
    also_read_by: list[str]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What EXPLAIN says; every number is read from the catalog, none is estimated."""

    name: str | None
    strategy: str
    why: str
    emits: str
    pattern: str
    pattern_why: str
    keeps: str
    sources: list[SourceExplained]
    evaluations: int
    rows_out: int | None  # None: nobody counts; answers of shared queries are made when read
    last_ms: int | None
    at_any_instant: str | None  # who computes results(at=...) between evaluations
    sql: str
    not_shared: str | None = None  # why its aggregation is not shared
    shared: SharedExplained | None = None
    would: WouldShare | None = None  # a select that is not registered: what would be shared
    selected: SelectedExplained | None = None  # it selects rows: what is kept of it
    kept: str | None = None  # how long its closed windows are; None: for ever


AT_ANY_INSTANT = "results(at=...) at any instant, without Spark"
SHARED_WHY = (
    "rows are folded once for all queries that share, and the answer is merged from partials"
)


def explain_query(engine: Engine, view: View, record: QueryRecord) -> Explanation:
    plan = engine.plan_of(view, record)
    emits = "changes" if record.is_per_window and not record.is_append_only else None
    found = _explain(view, record.name, plan, emits, record)
    found = replace(found, kept=_kept(record))
    if record.class_id is None:
        return replace(found, not_shared=record.strategy.partition("not shared: ")[2] or None)
    if is_selection(record):
        selected = explain_selected(view, record)
        return replace(
            found, strategy=f"selected, {selected.kept}", why=SELECTED_WHY, selected=selected,
            keeps="the rows in its window", evaluations=stream_of(view, record).evaluation,
            rows_out=None, last_ms=None, sql=selected.finish,
            at_any_instant=AT_ANY_INSTANT,
        )  # fmt: skip
    shared = explain_shared(view, record)
    found = replace(
        found, strategy=f"shared, {shared.answers}", why=SHARED_WHY, shared=shared, sql=shared.finish,
        **_shared_needs(shared.routes[-1].edges is not None, found),
    )  # fmt: skip
    if record.is_stored:
        return found
    evaluations = stream_of(view, record).evaluation
    return replace(found, evaluations=evaluations, rows_out=None, last_ms=None)


def _shared_needs(has_edges: bool, found: Explanation) -> dict[str, str | None]:
    """What a shared query needs kept, and who tells it at other instants than evaluations."""
    if not has_edges:
        return {"keeps": "partials of its nodes", "at_any_instant": found.at_any_instant}
    return {
        "keeps": f"partials of its nodes, rows of {found.keeps}",
        "at_any_instant": AT_ANY_INSTANT,
    }


def _kept(record: QueryRecord) -> str | None:
    span, cut = record.keep.span, record.forgotten
    if span is None and cut is None:
        return None
    spell = "for ever" if span is None else f"for {duration(timedelta(microseconds=span))}"
    gone = "" if cut is None else f"; forgotten: those that end by {instant(to_instant(cut))}"
    return f"closed windows, {spell}{gone}"


def explain_select(engine: Engine, view: View, select: Select, emit: Emit | None) -> Explanation:
    plan = engine.plan_select(view, select, emit)
    run = engine.plans.written_out(view, plan)
    found = _explain(view, None, run, "changes" if emit is Emit.CHANGES else None, None)
    try:
        would = explain_would(engine, view, plan, select.text, emit is Emit.CHANGES)
    except CannotShare as reason:
        return _explain_selection(engine, view, plan, select, found, reason)
    if would.on_spark and selects_rows(plan):  # DISTINCT: read from the rows, if that can be
        selected = _explain_selection(engine, view, plan, select, found, CannotShare("it is"))
        if selected.selected is not None:
            return selected
    strategy = FINISHED_ON_SPARK if would.on_spark else "shared"
    return replace(
        found, strategy=strategy, why=SHARED_WHY, would=would, sql=would.finish,
        **_shared_needs(would.edges is not None, found),
    )  # fmt: skip


def _explain_selection(
    engine: Engine, view: View, plan: RecomputePlan, select: Select, found: Explanation,
    reason: CannotShare,
) -> Explanation:  # fmt: skip
    if not selects_rows(plan):
        return replace(found, not_shared=str(reason))
    try:
        selected = would_select(engine, view, plan, select.text)
    except CannotShare as obstacle:
        return replace(found, not_shared=str(obstacle))
    return replace(
        found, strategy="selected", why=SELECTED_WHY, selected=selected, sql=selected.finish,
        keeps="the rows in its window",
        at_any_instant=AT_ANY_INSTANT,
    )  # fmt: skip


def _explain(
    view: View, name: str | None, plan: RecomputePlan, emits: str | None, record: QueryRecord | None
) -> Explanation:
    pattern, why = pattern_of(plan, emits == "changes")
    return Explanation(
        name=name,
        strategy=f"recompute, {plan.shape}",
        why=_why(plan, emits == "changes"),
        emits=_emits(plan, emits),
        pattern=str(pattern),
        pattern_why=why,
        keeps=_keeps(plan, pattern),
        sources=[_source(view, p, name) for p in plan.sources],
        evaluations=record.evaluation if record else 0,
        rows_out=record.rows_out if record else 0,
        last_ms=record.last_ms if record else 0,
        at_any_instant=_at(plan),
        sql=plan.tree.sql(dialect="spark"),
    )


def _at(plan: RecomputePlan) -> str | None:
    if plan.is_per_window:
        return None
    if is_portable(plan):
        return AT_ANY_INSTANT
    return "results(at=...) between evaluations is computed by Spark"


def _why(plan: RecomputePlan, emits_changes: bool) -> str:
    reason = {
        Shape.STANDING: "the whole answer is computed again when the clock moves or rows come: ",
        Shape.ALL_WINDOWS: "windows that fall due are computed together, over their rows only: ",
        Shape.EACH_WINDOW: "each window that falls due is computed by itself, over its rows only: ",
    }[plan.shape]
    if emits_changes or not plan.is_per_window:
        found = touched_groups(plan)
        if isinstance(found, Touched):
            groups = ", ".join(found.groups)
            reason = f"the groups by {groups} whose rows came or went are computed again: "
    return reason + plan.reason


def _emits(plan: RecomputePlan, emits: str | None) -> str:
    if not plan.is_per_window:
        return "inserts and retractions, whenever the answer changes"
    if emits == "changes":
        return "each window when it changes, with retractions"
    return "each window once, when the clock reaches its end"


def _keeps(plan: RecomputePlan, pattern: Pattern) -> str:
    kept = [
        f"{p.source.relation.name}: {p.source.window}"
        for p in plan.sources
        if p.source.relation.kind is Kind.STREAM
    ]
    return "; ".join(dict.fromkeys(kept)) or "nothing of any stream"


def _source(view: View, planned: PlannedSource, name: str | None) -> SourceExplained:
    relation = planned.source.relation
    record = view.find(relation.name)
    part = {StreamRecord: ("rows",), TableRecord: ("rows",), QueryRecord: ("changes",)}[
        type(record)
    ]
    segments = view.segments(record.owner, *part)
    readers = [q.name for q in view.queries() if record.owner in q.reads and q.name != name]
    return SourceExplained(
        relation.name, str(relation.kind), str(planned.source.window), _reading(planned),
        sum(s.rows for s in segments), len(segments), readers,
    )  # fmt: skip


def _reading(planned: PlannedSource) -> str:
    relation = planned.source.relation
    if relation.kind is Kind.STREAM:
        return f"by {relation.time_column}"
    if relation.kind is Kind.QUERY:
        return "its closed windows"
    if planned.validity:
        return "as it was when each row arrived (non-retroactive)"
    return "as it is now" + (" (retroactive)" if relation.is_retroactive else "")


def render(found: Explanation, format: str) -> str:
    if format == "json":
        return json.dumps(asdict(found), indent=2)
    if format == "mermaid":
        return _mermaid(found)
    if format != "text":
        raise SqlError(f'there is no EXPLAIN format "{format}"', hint="use text, json or mermaid")
    return _text(found)


def _text(found: Explanation) -> str:
    lines = [
        f"query      {found.name or '(not registered)'}",
        f"strategy   {found.strategy}",
        f"why        {found.why}",
    ]
    if found.not_shared:
        lines.append(f"not shared {found.not_shared}")
    lines += [
        f"emits      {found.emits}",
        f"pattern    {found.pattern}: {found.pattern_why}",
        f"needs      {found.keeps}",
    ]
    if found.kept:
        lines.append(f"keeps      {found.kept}")
    for source in found.sources:
        lines += _source_lines(source)
    if found.name:
        lines.append(f"so far     {_so_far(found)}")
    if found.at_any_instant:
        lines.append(f"at=        {found.at_any_instant}")
    return "\n".join(lines + _runs(found))


def _source_lines(source: SourceExplained) -> list[str]:
    others = len(source.also_read_by)
    shared = f", also read by {counted(others, 'other query')}" if others else ""
    return [
        f"reads      {source.kind} {source.name}, {source.window}, {source.reading}",
        f"           {_size(source)}{shared}",
    ]


def _so_far(found: Explanation) -> str:
    if found.rows_out is None:
        return f"{counted(found.evaluations, 'evaluation')} of the stream"
    rows = f"{counted(found.evaluations, 'evaluation')}, {counted(found.rows_out, 'row')} out"
    return f"{rows}, the last took {found.last_ms} ms"


def _runs(found: Explanation) -> list[str]:
    if found.selected is not None:
        return selected_lines(found.selected)
    if found.shared is not None:
        return shared_lines(found.shared)
    return would_lines(found.would) if found.would else [f"runs       {found.sql}"]


def _mermaid(found: Explanation) -> str:
    source = found.sources[0] if found.sources else None
    if found.shared is not None:
        return shared_mermaid(found.shared, _box(source), found.name, found.emits)
    if found.would is not None:
        return would_mermaid(found.would, _box(source), found.emits)
    lines = ["flowchart TD"]
    for index, source in enumerate(found.sources):
        lines.append(f'  s{index}[("{_box(source)}")] -->|"{label(source.window)}"| q')
    why = f"not shared: {found.not_shared}" if found.not_shared else ""
    box = label(found.strategy, why, counted(found.evaluations, "evaluation"))
    lines.append(f'  q["{box}"] -->|"{label(found.pattern)}"| a')
    lines.append(f'  a(["{label(found.name or "query", found.emits)}"])')
    return "\n".join(lines)


def _box(source: SourceExplained) -> str:
    return label(f"{source.kind} {source.name}", _size(source))


def _size(source: SourceExplained) -> str:
    return f"{counted(source.rows, 'row')} in {counted(source.segments, 'segment')}"
