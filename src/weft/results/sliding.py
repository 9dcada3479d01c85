"""The answers of aggregates over windows that slide, at any instant, from panes and rows.

At an instant τ the window (τ − r, τ] is its full panes, covered by few partials of the pyramid, and
the rows at its two edges, each a partial of its own (plan/edges.py). So nothing is computed for a
query in a batch, and an aggregate over any window of what is kept is read in logarithmic time.
Source: PSoup §6 (the ranked tree), §3.3 (windows are imposed when an answer is read).
Sound after any evaluation, without versions of partials: a pane that ends by the clock is complete,
because a row before the clock is late. Only rows exactly at the clock may come in a later batch; they
are at the edge, where the tick of a row says whether an evaluation had seen it.
What changed is the difference of consecutive answers, all of them in one query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weft.logical.panes import Panes, Windows
from weft.logical.windows import bounds
from weft.results import duck
from weft.results.answers import DIFF, EVALUATION, order_by, stored_columns
from weft.results.duck import Reading
from weft.results.retained import refuse_pruned
from weft.results.rows import Evaluation
from weft.results.shared import LEVEL, PANE, TIME, SharedAnswer, window_table

AT, NEXT = "_weft_at", "_weft_next"
OF_ROWS = -1  # rows are a level below the panes
ANY_TICK = 2**62
FEW = 4  # edges that are looked up one by one, by the bounds of the files


@dataclass(frozen=True, slots=True)
class Edge:
    """Rows of a window beside its full panes: times in [low, high], of ticks up to `seen`."""

    window: int
    low: int
    high: int
    seen: int | None  # None: of any tick


def now(answer: SharedAnswer) -> Reading:
    return _alone(answer, Evaluation(0, answer.stream.clock, None))


def at(answer: SharedAnswer, micros: int) -> Reading:
    """The answer at an instant: as an evaluation at it left it, else over what the window held."""
    clock = answer.stream.clock
    if clock is None or micros >= clock:
        return now(answer)
    refuse_pruned(answer.stream, _extent(answer, micros)[0])
    known = [e for e in answer.evaluations() if e.clock == micros]
    return _alone(answer, Evaluation(0, micros, known[-1].seen if known else None))


def _alone(answer: SharedAnswer, evaluation: Evaluation) -> Reading:
    found = _answers(answer, [evaluation])
    return Reading(f"SELECT * EXCLUDE ({AT}) FROM ({found.sql})", found.tables)


def change_log(answer: SharedAnswer, after: int) -> Reading:
    """Signed rows of the answer, by evaluation, after one: each answer less the one before it."""
    known = answer.evaluations()
    told = [e for e in known if e.number > after]
    before = [e for e in known if e.number <= after][-1:]
    if before and told and before[0].clock is not None:
        # what left since then cannot be told of rows that are gone
        problem = "the rows for the changes since then are no longer kept"
        hint = "read results() and subscribe without a token"
        refuse_pruned(answer.stream, _extent(answer, before[0].clock)[0], problem, hint)
    if not before:
        told = [e for e in told if _is_kept(answer, e)]
    wanted = before + told if told else []
    found = _answers(answer, wanted)
    numbers = [e.number for e in wanted]
    following = {
        AT: np.arange(len(numbers)),
        EVALUATION: numbers,
        NEXT: [*numbers[1:], None][: len(numbers)],
    }
    names = ", ".join(map(duck.name, stored_columns(answer.record)))
    sql = (
        f"WITH shown AS MATERIALIZED ("
        f"SELECT {names}, {EVALUATION}, {NEXT} FROM ({found.sql}) JOIN weft_following USING ({AT})"
        f"), events AS (SELECT {names}, {EVALUATION}, 1::BIGINT AS {DIFF} FROM shown UNION ALL"
        f" SELECT {names}, {NEXT}, -1::BIGINT FROM shown WHERE {NEXT} IS NOT NULL)"
        f" SELECT {names}, {EVALUATION}, sum({DIFF})::BIGINT AS {DIFF} FROM events"
        f" WHERE {EVALUATION} > {after} GROUP BY {names}, {EVALUATION} HAVING {DIFF} <> 0"
    )
    types = pa.schema([(name, pa.int64()) for name in following])
    return Reading(sql, {**found.tables, "weft_following": pa.table(following, types)})


def _is_kept(answer: SharedAnswer, evaluation: Evaluation) -> bool:
    """Whether the rows at the edges of a window are there still."""
    pruned = answer.stream.pruned_before
    if pruned is None or evaluation.clock is None:
        return True
    return _extent(answer, evaluation.clock)[0] >= pruned


def _extent(answer: SharedAnswer, clock: int | None) -> tuple[int, int]:
    """The closed range of event times in the window at an instant; without a clock there are none."""
    if clock is None:
        return 0, -1
    low, high = bounds(answer.shared.window, clock)
    return max([low, *answer.record.horizons.values()]), high


# answers


def _answers(answer: SharedAnswer, evaluations: Sequence[Evaluation]) -> Reading:
    """The finished answers at some evaluations, with the position of each as AT."""
    extents = [_extent(answer, e.clock) for e in evaluations]
    windows = _full_panes(answer, extents)
    tables = {"weft_windows": window_table(windows)}
    parts = answer.covered(windows, tables)
    parts += _of_edges(answer, _edges(evaluations, extents, windows), tables)
    merged = answer.merged(parts) if parts else f"SELECT * FROM ({answer.nothing()})"
    if answer.finish.is_global:  # one row, even over nothing
        merged = f"SELECT * FROM (SELECT w FROM weft_windows) LEFT JOIN ({merged}) USING (w)"
    finish = answer.finish.duck
    start = "SELECT DISTINCT " if finish.startswith("SELECT DISTINCT ") else "SELECT "
    carried = f"{start}w AS {AT}, " + finish.removeprefix(start)
    sql = f"WITH weft_m0 AS ({merged}) {carried}"
    return Reading(_limited(answer, sql), tables)


def _limited(answer: SharedAnswer, sql: str) -> str:
    """LIMIT and OFFSET in each answer; rows that sort alike are taken in the order of their columns."""
    finish = answer.finish
    if finish.limit is None and not finish.offset:
        return sql
    keys = order_by(answer.record, []).removeprefix(" ORDER BY ")
    ties = ", ".join(map(duck.name, stored_columns(answer.record)))
    order = f"{keys}, {ties}" if keys else ties
    rank = f"row_number() OVER (PARTITION BY {AT} ORDER BY {order})"
    most = "" if finish.limit is None else f" AND {rank} <= {finish.offset + finish.limit}"
    return f"SELECT * FROM ({sql}) QUALIFY {rank} > {finish.offset}{most}"


def _full_panes(answer: SharedAnswer, extents: Sequence[tuple[int, int]]) -> Windows:
    """Of each window, the panes that lie in it and end by its last instant; none: an empty range.

    By the panes of its nodes, if they have the same; else by its own, which are made of whole ones
    of every node.
    """
    widths = {reach.live.node.panes for reach in answer.reaches}
    panes: Panes = widths.pop() if len(widths) == 1 else answer.shared.panes
    low = np.array([low for low, _ in extents], np.int64)
    high = np.array([high for _, high in extents], np.int64)
    starts = -((panes.offset - low) // panes.width) * panes.width + panes.offset
    ends = (high - panes.offset) // panes.width * panes.width + panes.offset
    return Windows(starts, np.maximum(starts, ends))


def _edges(
    evaluations: Sequence[Evaluation], extents: Sequence[tuple[int, int]], windows: Windows
) -> list[Edge]:
    found = []
    starts, ends = windows.starts.tolist(), windows.ends.tolist()
    for i, (evaluation, (low, high)) in enumerate(zip(evaluations, extents, strict=True)):
        has_panes = starts[i] < ends[i]
        spans = [(low, starts[i] - 1), (ends[i], high)] if has_panes else [(low, high)]
        found += [Edge(i, a, b, evaluation.seen) for a, b in spans if a <= b]
    return found


def _of_edges(answer: SharedAnswer, edges: list[Edge], tables: dict[str, pa.Table]) -> list[str]:
    """Rows at edges as partials, with the number of their window."""
    if not edges:
        return []
    if len(edges) <= FEW:
        return [part for edge in edges if (part := _one_edge(answer, edge)) is not None]
    rows = _lifted(answer, min(e.low for e in edges), max(e.high for e in edges))
    if rows is None:
        return []
    tables["weft_edges"] = pa.table(
        {
            "w": [e.window for e in edges], "low": [e.low for e in edges],
            "high": [e.high for e in edges],
            "seen": [ANY_TICK if e.seen is None else e.seen for e in edges],
        }
    )  # fmt: skip
    return [
        f"SELECT e.w, {_shown(answer)} FROM ({rows}) r JOIN weft_edges e"
        f" ON r.{PANE} BETWEEN e.low AND e.high AND r._weft_tick <= e.seen"
    ]


def _one_edge(answer: SharedAnswer, edge: Edge) -> str | None:
    rows = _lifted(answer, edge.low, edge.high)
    if rows is None:
        return None
    where = "" if edge.seen is None else f" WHERE r._weft_tick <= {edge.seen}"
    return f"SELECT {edge.window}::BIGINT AS w, {_shown(answer)} FROM ({rows}) r{where}"


def _lifted(answer: SharedAnswer, low: int, high: int) -> str | None:
    """Rows between two instants that the query keeps, each as a partial."""
    rows = answer.rows(low, high)
    if rows is None:
        return None
    edges = answer.finish.edges
    columns = "".join(f", {sql} AS {duck.name(column)}" for column, sql in edges.columns)
    micros = f"epoch_us({TIME}) AS {PANE}"
    return (
        f"SELECT {OF_ROWS} AS {LEVEL}, {micros}, _weft_tick{columns} FROM ({rows})"
        f" WHERE {edges.where}"
    )


def _shown(answer: SharedAnswer) -> str:
    """The columns of partials, in their order."""
    columns = [*answer.finish.dimensions, *(s.column for s in answer.finish.statistics)]
    return ", ".join(f"r.{duck.name(c)}" for c in (LEVEL, PANE, *columns))
