"""EXPLAIN: how a query is answered and why, as text, JSON or a Mermaid drawing."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from weft.catalog.records import QueryRecord, StreamRecord, TableRecord
from weft.catalog.view import View
from weft.engine import Engine
from weft.errors import SqlError
from weft.logical.relations import Emit, Kind
from weft.plan.patterns import Pattern, pattern_of
from weft.plan.recompute import PlannedSource, RecomputePlan, Shape
from weft.results.at import is_portable
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
    rows_out: int
    last_ms: int
    at_any_instant: str | None  # who computes results(at=...) between evaluations
    sql: str


def explain_query(engine: Engine, view: View, record: QueryRecord) -> Explanation:
    plan = engine.plan_of(view, record)
    emits = "changes" if record.is_per_window and not record.is_append_only else None
    return _explain(view, record.name, plan, emits, record)


def explain_select(engine: Engine, view: View, select: Select, emit: Emit | None) -> Explanation:
    plan = engine.plan_select(view, select, emit)
    return _explain(view, None, plan, "changes" if emit is Emit.CHANGES else None, None)


def _explain(
    view: View, name: str | None, plan: RecomputePlan, emits: str | None, record: QueryRecord | None
) -> Explanation:
    pattern, why = pattern_of(plan, emits == "changes")
    return Explanation(
        name=name,
        strategy=f"recompute, {plan.shape}",
        why=_why(plan),
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
        return "results(at=...) at any instant, without Spark"
    return "results(at=...) between evaluations is computed by Spark"


def _why(plan: RecomputePlan) -> str:
    reason = {
        Shape.STANDING: "the whole answer is computed again when the clock moves or rows come: ",
        Shape.ALL_WINDOWS: "windows that fall due are computed together, over their rows only: ",
        Shape.EACH_WINDOW: "each window that falls due is computed by itself, over its rows only: ",
    }[plan.shape]
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
        f"emits      {found.emits}",
        f"pattern    {found.pattern}: {found.pattern_why}",
        f"needs      {found.keeps}",
    ]
    for source in found.sources:
        lines.append(f"reads      {source.kind} {source.name}, {source.window}, {source.reading}")
        shared = (
            f", also read by {len(source.also_read_by)} other queries"
            if source.also_read_by
            else ""
        )
        lines.append(f"           {source.rows:,} rows in {source.segments} segments{shared}")
    if found.name:
        lines.append(
            f"so far     {found.evaluations} evaluations, {found.rows_out:,} rows out, the last took {found.last_ms} ms"
        )
    if found.at_any_instant:
        lines.append(f"at=        {found.at_any_instant}")
    lines.append(f"runs       {found.sql}")
    return "\n".join(lines)


def _mermaid(found: Explanation) -> str:
    lines = ["flowchart TD"]
    for index, source in enumerate(found.sources):
        label = (
            f"{source.kind} {source.name}<br/>{source.rows:,} rows in {source.segments} segments"
        )
        lines.append(f'  s{index}[("{_escape(label)}")] -->|"{_escape(source.window)}"| q')
    title = found.name or "query"
    lines.append(
        f'  q["{_escape(found.strategy)}<br/>{found.evaluations} evaluations"] -->|"{_escape(found.pattern)}"| a'
    )
    lines.append(f'  a(["{_escape(title)}<br/>{_escape(found.emits)}"])')
    return "\n".join(lines)


def _escape(text: str) -> str:
    return text.replace('"', "&quot;")
