"""The system catalog as relations: SELECT … FROM weft.group_topology, and so on. Read-only.

Source: ARGUS §3.1 (GroupExprIndex, GroupExprSet, GroupTopology and GroupColumns record the shared
network) and §3.2 (AggreRules and AggreBasics, Tables 1 and 2). Differs: definitions that the catalog
keeps as JSON are shown in words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.catalog.records import to_instant
from weft.catalog.view import View
from weft.errors import UnknownName, did_you_mean
from weft.logical.aggregates import Aggregates, basics, rules
from weft.logical.relations import Column, Kind, Relation
from weft.logical.windows import duration
from weft.optimizer.codec import load
from weft.optimizer.described import (
    BEGINNING,
    columns_text,
    levels_of,
    panes_text,
    readable,
    window_text,
)
from weft.optimizer.selections import SelectClass
from weft.results import answers, duck
from weft.results.duck import Reading
from weft.results.reading import is_selection

PREFIX = "weft."
TABLE = "weft_system"
Rows = list[tuple]


@dataclass(frozen=True, slots=True)
class SystemRelation:
    """A relation of the catalog: its columns, and how its rows are read."""

    columns: tuple[Column, ...]
    rows: Callable[[View, Aggregates], Rows]


def is_system(name: str) -> bool:
    return name.lower() in RELATIONS


def relation(name: str) -> Relation:
    columns = RELATIONS[name.lower()].columns
    return Relation(Kind.TABLE, name, columns, is_retroactive=True)


def refuse_unknown(name: str) -> None:
    """Refuse a name that starts like one of these, and is none."""
    if name.lower().startswith(PREFIX):
        raise UnknownName(
            f'there is no system relation "{name}"',
            detail=f"there are {', '.join(sorted(RELATIONS))}",
            hint=did_you_mean(name, list(RELATIONS)),
            code="WEFT_UNKNOWN_RELATION",
        )


def reading(name: str, view: View, aggregates: Aggregates) -> Reading:
    found = RELATIONS[name.lower()]
    values = duck.values(len(found.columns), found.rows(view, aggregates))
    return Reading(f"SELECT * FROM {TABLE}", {TABLE: answers.typed(values, found.columns)})


def _streams(view: View) -> dict[int, str]:
    return {stream.id: stream.name for stream in view.streams()}


def _group_topology(view: View, _: Aggregates) -> Rows:
    names, found = _streams(view), []
    for row in view.nodes():
        node = load(row.definition)
        statistics = ", ".join(s.key for s in node.statistics)
        found.append((
            row.id, names[row.stream_id], row.parent_id, columns_text(node), panes_text(node),
            ", ".join(levels_of(node)), statistics, row.born_tick, row.retired_tick, row.rows_in,
            row.cells,
        ))  # fmt: skip
    return found


def _group_expressions(view: View, _: Aggregates) -> Rows:
    names = _streams(view)
    return [
        (names[row.stream_id], row.name, row.kind, readable(row.expression))
        for row in view.rows("group_expressions")
    ]


def _group_sets(view: View, _: Aggregates) -> Rows:
    return [(row.node_id, row.name) for row in view.rows("group_sets")]


def _group_columns(view: View, _: Aggregates) -> Rows:
    return [
        (row.node_id, row.name, row.statistic, row.type, row.merge.replace("{}", row.name))
        for row in view.rows("group_columns")
    ]


def _classes(view: View, _: Aggregates) -> Rows:
    names, sharers, found = _streams(view), _sharers(view), []
    for row in view.rows("classes"):
        value = load(row.definition)
        if isinstance(value, SelectClass):
            predicate, since = readable(value.predicate.text), _since(row)
            found.append((
                row.id, names[row.stream_id], "any", predicate, "", _kept(row), since,
                sharers.get(row.id, 0),
            ))  # fmt: skip
            continue
        dimensions = ", ".join(d.key for d in value.dimensions)
        since = _since(row)
        found.append((
            row.id, names[row.stream_id], window_text(value), readable(value.predicate.text),
            dimensions, _answers(row), since, sharers.get(row.id, 0),
        ))  # fmt: skip
    return found


def _sharers(view: View) -> dict[int, int]:
    counts: dict[int, int] = {}
    for query in view.sharing():
        counts[query.class_id] = counts.get(query.class_id, 0) + 1
    return counts


def _since(row):
    return None if row.eager_from in (None, BEGINNING) else to_instant(row.eager_from)


def _kept(row) -> str:
    return "rows" if row.eager_from is None else "list"


def _answers(row) -> str:
    return "lazy" if row.eager_from is None else "eager"


def _routes(view: View, _: Aggregates) -> Rows:
    return [
        (row.class_id, row.node_id, row.from_tick, row.to_tick, load(row.condition).sql)
        for row in view.rows("routes")
    ]


def _aggregate_rules(_: View, aggregates: Aggregates) -> Rows:
    return [
        (r.function, r.category, r.incremental, r.expansion, r.kind, r.error)
        for r in rules(aggregates)
    ]


def _aggregate_basics(_: View, aggregates: Aggregates) -> Rows:
    return list(basics(aggregates))


def query_rows(view: View) -> Rows:
    """Every query. One that is assembled when it is read moves on with its stream, and nobody counts
    its rows or its time."""
    streams = {s.owner: s for s in view.streams()}
    answers = {row.id: f"shared, {_answers(row)}" for row in view.rows("classes")}
    kept = {
        row.id: "once per row" if row.eager_from is None else "list" for row in view.rows("classes")
    }
    found = []
    for q in view.queries():
        strategy = q.strategy if q.is_stored else answers[q.class_id]
        if is_selection(q):
            strategy = f"selected, {'window' if load(q.shared).ready_from else kept[q.class_id]}"
        evaluations = q.evaluation if q.is_stored else streams[q.reads[0]].evaluation
        counts = (q.rows_out, q.last_ms) if q.is_stored else (None, None)
        found.append((
            q.name, strategy, q.window, to_instant(q.clock), evaluations, *counts, q.error,
            q.class_id, q.statement,
        ))  # fmt: skip
    return found


def _stream_rows(view: View, _: Aggregates) -> Rows:
    return [
        (
            s.name, s.definition.source, s.definition.time_column, to_instant(s.clock),
            s.evaluation, s.rows, s.late, s.rejected, s.pruned_rows,
            "all" if s.definition.retain is None else duration(s.definition.retain),
        )
        for s in view.streams()
    ]  # fmt: skip


def _weaves(view: View, _: Aggregates) -> Rows:
    names = _streams(view)
    return [
        (
            to_instant(row.at), names[row.stream_id], row.tick, row.what, row.why,
            row.ms_before, row.ms_after, row.trees_before, row.trees_after,
        )
        for row in view.rows("weaves")
    ]  # fmt: skip


def _segments(view: View, _: Aggregates) -> Rows:
    return [
        (row.owner, row.part, row.path, row.rows, row.bytes, row.min_time, row.max_time, row.tick)
        for row in view.rows("segments")
        if row.dropped_at is None
    ]


def _declared(columns: str, rows: Callable[[View, Aggregates], Rows]) -> SystemRelation:
    """From "name, name BIGINT, …"; a column without a type is text."""
    pairs = [[*part.split(), "STRING"][:2] for part in columns.split(",")]
    return SystemRelation(tuple(Column(*pair) for pair in pairs), rows)


RELATIONS = {
    "weft.group_topology": _declared(
        "node_id BIGINT, stream, parent_id BIGINT, expressions, panes, levels, statistics,"
        " born_tick BIGINT, retired_tick BIGINT, rows_in BIGINT, partials_out BIGINT",
        _group_topology,
    ),
    "weft.group_expressions": _declared("stream, name, kind, expression", _group_expressions),
    "weft.group_sets": _declared("node_id BIGINT, name", _group_sets),
    "weft.group_columns": _declared(
        "node_id BIGINT, name, statistic, type, merge_rule", _group_columns
    ),
    "weft.classes": _declared(
        "class_id BIGINT, stream, windows, predicate, dimensions, answers, eager_from TIMESTAMP,"
        " queries BIGINT",
        _classes,
    ),
    "weft.routes": _declared(
        "class_id BIGINT, node_id BIGINT, from_tick BIGINT, to_tick BIGINT, test", _routes
    ),
    "weft.aggregate_rules": _declared(
        "aggregate, category, incremental_rule, expansion_rule, kind, error_bound",
        _aggregate_rules,
    ),
    "weft.aggregate_basics": _declared("aggregate, statistic, identifier", _aggregate_basics),
    "weft.queries": _declared(
        "name, strategy, windows, clock TIMESTAMP, evaluations BIGINT, rows_out BIGINT,"
        " last_ms BIGINT, error, class_id BIGINT, statement",
        lambda view, _: query_rows(view),
    ),
    "weft.streams": _declared(
        "name, source, time_column, clock TIMESTAMP, evaluations BIGINT, rows BIGINT, late BIGINT,"
        " rejected BIGINT, pruned BIGINT, retain",
        _stream_rows,
    ),
    "weft.weaves": _declared(
        "at TIMESTAMP, stream, tick BIGINT, what, why, ms_before DOUBLE, ms_after DOUBLE,"
        " trees_before BIGINT, trees_after BIGINT",
        _weaves,
    ),
    "weft.segments": _declared(
        "owner, part, path, rows BIGINT, bytes BIGINT, min_time BIGINT, max_time BIGINT,"
        " tick BIGINT",
        _segments,
    ),
}
