"""The answers of all windows that an evaluation has left ready, in one query for each kind of answer.

Thousands of selections differ in predicates and windows, whose rows the evaluation has found; how
an answer comes of its rows (outputs, DISTINCT, ORDER BY, LIMIT) has few kinds. So the rows of all
queries of a kind are read together, sorted by query, and cut.
Source: PSoup §5, complete materialisation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from weft.catalog.records import StreamRecord
from weft.catalog.view import View
from weft.optimizer.selections import LiveSelection
from weft.results import answers, duck
from weft.results.kept import Answer, live_state
from weft.results.selected import ARRIVAL_ORDER, TARGET, SelectedAnswer

KINDS = 16  # of answers that are worth a query of their own after every evaluation
CELL = 8  # bytes of a value, at least


def ready_answers(
    view: View, ready: Iterable[LiveSelection], root: Path, read: set[str], most_bytes: int
) -> Iterator[tuple[dict[str, Answer], int]]:
    """Answers by name with the bytes they hold together; of those that were read, if all are too many."""
    kinds: dict[tuple, list[LiveSelection]] = {}
    for live in ready:
        if not (live.value.derived or live.selection.derived):  # which would be a join for each
            kinds.setdefault(_kind(live), []).append(live)
    for found in sorted(kinds.values(), key=len, reverse=True)[:KINDS]:
        answer = SelectedAnswer(view, found[0].record, root)
        segments = view.segments(answer.stream.owner, "ready")
        width = CELL * len(answer.record.columns)
        if sum(s.rows for s in segments) * width > most_bytes:
            found = [live for live in found if live.record.name.lower() in read]
        if found and segments:
            ids = ", ".join(str(live.record.id) for live in found)
            rows = answer.scan(segments, None, None, f"{TARGET} IN ({ids})")
            yield _cut(found, answer.stream, duck.fetch(_sql(answer, rows)))


def _kind(live: LiveSelection) -> tuple:
    """What the answers of one kind have in common: how they come of their rows."""
    selection, record = live.selection, live.record
    cut = (selection.is_distinct, selection.limit, selection.offset)
    return selection.outputs, cut, record.columns, record.order


def _sql(answer: SelectedAnswer, rows: str) -> str:
    """As the answer of one query is cut and sorted (selected.py), for each query by itself."""
    names, selection = ", ".join(answer.names), answer.selection
    ties = [ARRIVAL_ORDER]
    sql = f"SELECT {TARGET}, {answer.outputs}, {ARRIVAL_ORDER} FROM ({rows})"
    if selection.is_distinct:
        sql, ties = f"SELECT DISTINCT {TARGET}, {names} FROM ({sql})", answer.names
    order = answer.sorted_by(ties)
    if selection.limit is not None or selection.offset:
        rank = f"row_number() OVER (PARTITION BY {TARGET} ORDER BY {order})"
        tests = [f"{rank} > {selection.offset}"]
        if selection.limit is not None:
            tests.append(f"{rank} <= {selection.offset + selection.limit}")
        sql = f"SELECT * FROM ({sql}) QUALIFY {' AND '.join(tests)}"
    shown = ", ".join(answers.shown(answer.record))
    return f"SELECT {TARGET}, {shown} FROM ({sql}) ORDER BY {TARGET}, {order}"


def _cut(
    found: list[LiveSelection], stream: StreamRecord, rows: pa.Table
) -> tuple[dict[str, Answer], int]:
    targets = rows[TARGET].to_numpy()
    whole = answers.typed(rows.drop_columns([TARGET]), found[0].record.output_columns())
    ids = np.array([live.record.id for live in found], np.int64)
    first, last = np.searchsorted(targets, ids), np.searchsorted(targets, ids, side="right")
    cut = {}
    for live, start, end in zip(found, first.tolist(), last.tolist(), strict=True):
        state = live_state(live.record, stream)
        cut[live.record.name] = Answer(live.record, whole.slice(start, end - start), state)
    return cut, whole.nbytes
