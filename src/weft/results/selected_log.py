"""Changes of selections, told from the rows: when each came into the window, and when it left.

A row of event time t that came with the rows of evaluation a is in the answer from the first
evaluation n >= a whose clock reaches t on; a sliding window of length r loses it at the first whose
clock reaches t + r (UPA §2: its validity is known at birth), a window of n rows when n newer ones
are in. What an evaluation changed is then a difference of rows, nothing that had to be stored.
Rows that come in and out in the same evaluation cancel, as they do in a difference of two answers.
"""

from __future__ import annotations

import pyarrow as pa

from weft.logical.windows import LastRows, Sliding, microseconds
from weft.results.answers import DIFF, EVALUATION
from weft.results.duck import Reading
from weft.results.retained import refuse_pruned
from weft.results.selected import ARRIVAL_ORDER, TICK, TIME, Evaluation, SelectedAnswer

FIRST, LAST = (
    "_weft_first",
    "_weft_last",
)  # the evaluation a row comes in with, and the one it leaves
CLOCKS, TICKS = "weft_clocks", "weft_ticks"


def change_log(answer: SelectedAnswer, after: int) -> Reading:
    """Signed rows of the answer, by evaluation, after one."""
    known = answer.evaluations
    if not any(e.number > after for e in known):
        return Reading(_no_changes(answer))
    before = next((e for e in reversed(known) if e.number <= after), None)
    if before is not None:  # what left since then cannot be told of rows that are gone
        problem = "the rows for the changes since then are no longer kept"
        hint = "read results() and subscribe without a token"
        refuse_pruned(answer.stream, answer.extent(before.clock)[0], problem, hint)
    spans = _spans(answer, before, known[-1])
    if answer.selection.limit is not None or answer.selection.offset:
        sql = _limited(answer, spans)
    else:
        sql = _distinct(answer, spans) if answer.selection.is_distinct else _plain(answer, spans)
    sql = f"SELECT * FROM ({sql}) WHERE {DIFF} <> 0 AND {EVALUATION} > {after}"
    numbers = [e.number for e in known if e.number >= (before.number if before else 0)]
    return Reading(sql, {**_tables(known), "weft_evaluations": pa.table({"n": numbers})})


def _tables(known: list[Evaluation]) -> dict[str, pa.Table]:
    """The first evaluation that has reached a clock, and the first that has seen a tick."""
    clocks: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for evaluation in known:
        clocks.setdefault(evaluation.clock, evaluation.number)
        ticks.setdefault(evaluation.seen, evaluation.number)
    return {
        CLOCKS: pa.table({"clock": list(clocks), "n": list(clocks.values())}),
        TICKS: pa.table({"tick": list(ticks), "n": list(ticks.values())}),
    }


def _spans(answer: SelectedAnswer, before: Evaluation | None, now: Evaluation) -> str:
    """Outputs of matching rows with the evaluations between which they are in the answer."""
    window = answer.selection.window
    low, _ = answer.extent((before or answer.evaluations[0]).clock)
    if before is None and not isinstance(window, LastRows):
        low = answer.visible_from(None)
    _, high = answer.extent(now.clock)
    is_last = isinstance(window, LastRows)
    rows = answer.rows(low, high) if is_last else answer.matching(_settled(answer, low), high)
    lag = microseconds(window.lag) if isinstance(window, Sliding) else 0
    entered = (
        f"SELECT r.*, greatest(c.n, t.n) AS {FIRST} FROM ({rows}) r"
        f" ASOF JOIN {CLOCKS} c ON epoch_us(r.{TIME}) + {lag} <= c.clock"
        f" ASOF JOIN {TICKS} t ON r.{TICK} <= t.tick"
    )
    if is_last:
        spans = _last_rows(entered, window.count)
    elif isinstance(window, Sliding):
        until = f"epoch_us(e.{TIME}) + {lag + microseconds(window.length)}"
        spans = (
            f"SELECT e.*, c.n AS {LAST} FROM ({entered}) e"
            f" ASOF LEFT JOIN {CLOCKS} c ON {until} <= c.clock"
        )
    else:
        spans = f"SELECT *, NULL::BIGINT AS {LAST} FROM ({entered}) e"
    where = f"({answer.shared.where})" if is_last else "TRUE"
    return (
        f"SELECT {answer.outputs}, {ARRIVAL_ORDER}, {FIRST}, {LAST} FROM ({spans})"
        f" WHERE {where} AND {LAST} IS DISTINCT FROM {FIRST}"
    )


def _settled(answer: SelectedAnswer, low: int | None) -> int | None:
    """A snapshot or landmark holds no row before its start, at whatever evaluation."""
    start, _ = answer.extent(answer.evaluations[-1].clock)
    if isinstance(answer.selection.window, Sliding | LastRows) or start is None:
        return low
    return start if low is None else max(start, low)


def _last_rows(entered: str, count: int) -> str:
    """A row leaves with the first evaluation that has `count` newer ones. Rows come in in their
    order: one that comes later is not before the clock, which those that are in have reached."""
    numbered = (
        f"SELECT *, row_number() OVER (ORDER BY {ARRIVAL_ORDER}) AS _weft_nth FROM ({entered})"
    )
    totals = f"SELECT {FIRST} AS n, max(_weft_nth) AS total FROM ({numbered}) GROUP BY {FIRST}"
    return (
        f"SELECT e.*, c.n AS {LAST} FROM ({numbered}) e"
        f" ASOF LEFT JOIN ({totals}) c ON e._weft_nth + {count} <= c.total"
    )


def _events(answer: SelectedAnswer, spans: str) -> str:
    names = ", ".join(answer.names)
    return (
        f"WITH spans AS MATERIALIZED ({spans})"
        f" SELECT {names}, {FIRST} AS {EVALUATION}, 1::BIGINT AS {DIFF} FROM spans"
        f" UNION ALL SELECT {names}, {LAST}, -1::BIGINT FROM spans WHERE {LAST} IS NOT NULL"
    )


def _plain(answer: SelectedAnswer, spans: str) -> str:
    keys = ", ".join([*answer.names, EVALUATION])
    return (
        f"SELECT {keys}, sum({DIFF})::BIGINT AS {DIFF} FROM ({_events(answer, spans)})"
        f" GROUP BY {keys}"
    )


def _distinct(answer: SelectedAnswer, spans: str) -> str:
    """A row is told when the first of its kind comes and when the last of them goes."""
    names = ", ".join(answer.names)
    over = f"OVER (PARTITION BY {names} ORDER BY {EVALUATION})"
    counted = (
        f"SELECT *, sum({DIFF}) {over} AS _weft_now FROM ({_plain(answer, spans)})"
        f" WHERE {DIFF} <> 0"
    )
    told = f"(_weft_now > 0)::BIGINT - (_weft_now - {DIFF} > 0)::BIGINT"
    return f"SELECT {names}, {EVALUATION}, {told} AS {DIFF} FROM ({counted})"


def _limited(answer: SelectedAnswer, spans: str) -> str:
    """The answer as it was after each evaluation, and the differences between them."""
    names, selection = ", ".join(answer.names), answer.selection
    held = (
        f"SELECT e.n AS {EVALUATION}, s.* FROM weft_evaluations e JOIN ({spans}) s"
        f" ON s.{FIRST} <= e.n AND (s.{LAST} IS NULL OR e.n < s.{LAST})"
    )
    ties = [ARRIVAL_ORDER]
    if selection.is_distinct:
        held, ties = f"SELECT DISTINCT {EVALUATION}, {names} FROM ({held})", answer.names
    rank = f"row_number() OVER (PARTITION BY {EVALUATION} ORDER BY {answer.sorted_by(ties)})"
    tests = [f"_weft_rank > {selection.offset}"]
    if selection.limit is not None:
        tests.append(f"_weft_rank <= {selection.offset + selection.limit}")
    kept = (
        f"SELECT * FROM (SELECT *, {rank} AS _weft_rank FROM ({held})) WHERE {' AND '.join(tests)}"
    )
    following = "(SELECT n, lead(n) OVER (ORDER BY n) AS next FROM weft_evaluations)"
    keys = f"{names}, {EVALUATION}"
    return (
        f"WITH kept AS MATERIALIZED ({kept}), events AS ("
        f"SELECT {keys}, 1::BIGINT AS {DIFF} FROM kept UNION ALL"
        f" SELECT {names}, f.next, -1::BIGINT FROM kept k JOIN {following} f ON f.n = k.{EVALUATION}"
        f" WHERE f.next IS NOT NULL)"
        f" SELECT {keys}, sum({DIFF})::BIGINT AS {DIFF} FROM events GROUP BY {keys}"
    )


def _no_changes(answer: SelectedAnswer) -> str:
    names = ", ".join(answer.names)
    nothing = answer.scan([], None, None)
    return (
        f"SELECT {names}, 0::BIGINT AS {EVALUATION}, 0::BIGINT AS {DIFF}"
        f" FROM (SELECT {answer.outputs} FROM ({nothing}))"
    )
