"""Changes of shared answers that stand or that are emitted while windows are open.

A total after evaluation e is the merge of all partials up to e; an open window likewise, over the
partials of its cover. What evaluation e changed is told by the partials that carry its number: only
those groups are looked at, the old state with −1 and the new one with +1 (ARGUS Algorithm 1, with
A_N the groups of e and A_H their merge before it).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weft.logical.panes import Windows, windows_between
from weft.results import duck
from weft.results.answers import DIFF, END, EVALUATION, START
from weft.results.duck import Reading
from weft.results.failing import refuse_failing, refuse_failing_total
from weft.results.shared import LEVEL, PANE, VERSION, SharedAnswer, window_table

AT, GROUPS = "_weft_at", "weft_groups"


# totals


def standing(answer: SharedAnswer, evaluation: int | None = None) -> Reading:
    """The total after an evaluation, or now."""
    upto = answer.stream.evaluation if evaluation is None else evaluation
    keys = ", ".join(map(duck.name, answer.finish.dimensions))
    merged = ", ".join([*map(duck.name, answer.finish.dimensions), *answer.merges()])
    grouped = (
        f" GROUP BY {keys}" if keys else ("" if answer.finish.is_global else " HAVING count(*) > 0")
    )
    rows = totals(answer, upto)
    refuse_failing_total(answer.record, answer.finish, Reading(rows))
    sql = f"SELECT {merged or 'count(*)'} FROM ({rows}){grouped}"
    return Reading(answer.finished(sql))


def totals(answer: SharedAnswer, upto: int | None = None) -> str:
    """Partials of totals on every stretch of the route; up to an evaluation, from its base on."""
    columns = [*answer.finish.dimensions, *(s.column for s in answer.finish.statistics)]
    shown = ", ".join([PANE, *map(duck.name, columns)])
    parts = []
    for reach in answer.reaches:
        bases = [s for s in reach.bases if upto is not None and s.evaluation <= upto]
        base = max((s.evaluation for s in bases), default=0)
        later = [s for s in reach.segments if s.evaluation > base]
        tests = f"{reach.route.condition.sql} AND {PANE} > {base}"
        tests += "" if upto is None else f" AND {PANE} <= {upto}"
        if later:
            parts.append(f"SELECT {shown} FROM {answer.scan(later)} WHERE {tests}")
        if base:
            kept = [s for s in bases if s.evaluation == base]
            where = reach.route.condition.sql
            parts.append(f"SELECT {shown} FROM {answer.scan(kept)} WHERE {where}")
    if parts:
        return " UNION ALL ".join(parts)
    return f"SELECT 0::BIGINT AS {PANE}, * FROM ({answer.nothing()})"


def standing_log(answer: SharedAnswer, after: int) -> Reading:
    """Changes of a standing total after an evaluation."""
    first = answer.finish.evaluation
    numbers = [n for n, _ in answer.clocks() if n >= first and n > after]
    if not numbers:
        return answer.log(Reading(answer.nothing()), "1::BIGINT")
    keys = list(map(duck.name, answer.finish.dimensions))
    shown = ", ".join(["", *keys])
    rows = totals(answer)
    refuse_failing_total(answer.record, answer.finish, Reading(rows))
    later = (
        f"SELECT DISTINCT {PANE} AS {AT}{shown} FROM ({rows}) WHERE {PANE} > {max(after, first)}"
    )
    groups = [later]
    if first > after:  # the first answer: everything there is
        initial = (
            f"SELECT DISTINCT {first}::BIGINT AS {AT}{shown} FROM ({rows}) WHERE {PANE} <= {first}"
        )
        if answer.finish.is_global:
            initial = f"SELECT {first}::BIGINT AS {AT}"
        groups.append(initial)
    same = " AND ".join([f"r.{k} IS NOT DISTINCT FROM g.{k}" for k in keys] or ["TRUE"])
    new = _versions(answer, rows, same, f"r.{PANE} <= g.{AT}", keys)
    old = _versions(answer, rows, same, f"r.{PANE} < g.{AT} AND g.{AT} > {first}", keys)
    if answer.finish.is_global:
        old = f"SELECT * FROM ({old}) WHERE {AT} > {first}"
    else:
        old = f"SELECT * FROM ({old}) WHERE _weft_parts > 0"
    return _signed(answer, " UNION ALL ".join(groups), new, old, {})


def _versions(answer: SharedAnswer, rows: str, same: str, when: str, keys: list[str]) -> str:
    """Each changed group, merged over its partials up to (or before) the change."""
    grouped = ", ".join([f"g.{AT}", *(f"g.{k}" for k in keys)])
    merges = ", ".join(["", *answer.merges(f"r.{PANE}")])
    return (
        f"SELECT {grouped}, count(r.{PANE}) AS _weft_parts{merges} FROM {GROUPS} g"
        f" LEFT JOIN ({rows}) r ON {same} AND {when} GROUP BY {grouped}"
    )


def _signed(
    answer: SharedAnswer, groups: str, new: str, old: str, tables: dict[str, pa.Table]
) -> Reading:
    """New finished rows less old ones, with multiplicities: what did not change cancels out."""
    parts = []
    for sql, sign in ((new, 1), (old, -1)):
        finished = _finished_at(answer, sql)
        parts.append(f"SELECT *, {sign}::BIGINT AS {DIFF} FROM ({finished})")
    union = " UNION ALL ".join(parts)
    summed = f"SELECT * EXCLUDE ({DIFF}), sum({DIFF})::BIGINT AS {DIFF} FROM ({union}) GROUP BY ALL"
    sql = f"WITH {GROUPS} AS MATERIALIZED ({groups}) SELECT * FROM ({summed}) WHERE {DIFF} <> 0"
    named = f"SELECT * EXCLUDE ({AT}, {DIFF}), {DIFF}, {AT} AS {EVALUATION} FROM ({sql})"
    return Reading(named, tables)


def _finished_at(answer: SharedAnswer, merged: str) -> str:
    """The finish of rows that carry the evaluation they belong to."""
    finish = answer.finish.duck
    assert finish.startswith("SELECT "), finish
    carried = f"SELECT {AT}, " + finish.removeprefix("SELECT ")
    return answer.finished(merged, carried)


# open windows, EMIT CHANGES


def versioned_log(answer: SharedAnswer, after: int) -> Reading:
    """Changes of windows, open ones too, after an evaluation."""
    first = answer.finish.evaluation
    touched = _touched(answer, max(after, first))
    if first > after:
        everything = answer.windows(None, None)
        numbers = np.full(len(everything), first, np.int64)
        touched = _joined([(everything, numbers), touched])
    windows, numbers = touched
    if not len(windows):
        return answer.log(Reading(answer.nothing()), "1::BIGINT")
    tables = {"weft_windows": window_table(windows).append_column("n", pa.array(numbers))}
    parts = answer.covered(windows, tables, "", VERSION)
    if not parts:
        return answer.log(Reading(answer.nothing()), "1::BIGINT")
    if answer.finish.failures:
        refuse_failing(answer.record, answer.finish, answer.assembled(windows))
    rows = " UNION ALL ".join(parts)
    new = _windows_at(answer, rows, f"r.{VERSION} <= g.n")
    old = _windows_at(answer, rows, f"r.{VERSION} < g.n AND g.n > {first}")
    return _signed(answer, "SELECT 1 AS _weft_one", new, old, tables)


def _touched(answer: SharedAnswer, after: int) -> tuple[Windows, np.ndarray]:
    """Windows that hold a row of an evaluation, with its number, for evaluations after one."""
    found = []
    for reach in answer.reaches:
        segments = [s for s in reach.segments if s.evaluation > after]
        if not segments:
            continue
        sql = (
            f"SELECT DISTINCT {VERSION} AS n, {PANE} AS p FROM {answer.scan(segments)}"
            f" WHERE {LEVEL} = 0 AND {VERSION} > {after} AND {reach.route.condition.sql}"
        )
        for n, p in zip(*(c.to_pylist() for c in duck.fetch(sql).columns), strict=True):
            start = reach.live.node.panes.start(p)
            held = answer.visible(windows_between(answer.shared.window, start, None, start, start))
            found.append((held, np.full(len(held), n, np.int64)))
    return _joined(found)


def _joined(found: list[tuple[Windows, np.ndarray]]) -> tuple[Windows, np.ndarray]:
    if not found:
        nothing = np.zeros(0, np.int64)
        return Windows(nothing, nothing), nothing
    starts = np.concatenate([w.starts for w, _ in found])
    ends = np.concatenate([w.ends for w, _ in found])
    triples = np.unique(np.stack([starts, ends, np.concatenate([n for _, n in found])]), axis=1)
    return Windows(triples[0], triples[1]), triples[2]


def _windows_at(answer: SharedAnswer, rows: str, when: str) -> str:
    keys = ["g.n", "g.s", "g.e", *(f"r.{duck.name(d)}" for d in answer.finish.dimensions)]
    merges = ", ".join(["", *answer.merges(f"r.{LEVEL}, r.{PANE}, r.{VERSION}")])
    dimensions = ", ".join(["", *(f"r.{duck.name(d)}" for d in answer.finish.dimensions)])
    return (
        f"SELECT g.n AS {AT}, make_timestamptz(g.s) AS {START}, make_timestamptz(g.e) AS {END}"
        f"{dimensions}{merges} FROM weft_windows g JOIN ({rows}) r ON r.w = g.w AND {when}"
        f" GROUP BY {', '.join(keys)}"
    )
