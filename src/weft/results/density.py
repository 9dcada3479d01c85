"""How sparse predicates are: the share of a stream's newest rows that satisfies each of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from weft.catalog.records import StreamRecord
from weft.catalog.view import View
from weft.optimizer.selections import LiveSelection
from weft.results import duck
from weft.results.selected import SelectedAnswer

SAMPLE = 20_000  # rows
TOGETHER = 200  # predicates counted in one pass
FEWEST = 100  # rows that say something


def measure(
    view: View, stream: StreamRecord, live: Iterable[LiveSelection], root: Path
) -> dict[int, float]:
    """Classes and the shares of rows that satisfy them; nothing, where there are few rows."""
    classes = {each.record.class_id: each for each in live}
    found: dict[int, float] = {}
    every = list(classes.items())
    for chunk in [every[i : i + TOGETHER] for i in range(0, len(every), TOGETHER)]:
        wanted = {d: None for _, each in chunk for d in each.value.derived}
        answer = SelectedAnswer(view, chunk[0][1].record, root)
        answer.derived = tuple(wanted)
        low = newest_rows(answer)
        counts = ", ".join(f"count(*) FILTER (WHERE {each.value.where})" for _, each in chunk)
        rows = f"SELECT * FROM ({answer.scan(answer.segments, low, None)}) LIMIT {SAMPLE}"
        total, *matching = (
            duck.fetch(f"SELECT count(*), {counts} FROM ({rows})").to_pylist()[0].values()
        )
        if total >= FEWEST:
            found |= {i: n / total for (i, _), n in zip(chunk, matching, strict=True)}
    return found


def newest_rows(answer: SelectedAnswer) -> int | None:
    """A time from which on there are enough rows for a sample."""
    missing = SAMPLE
    for segment in sorted(answer.segments, key=lambda s: -s.min_time):
        missing -= segment.rows
        if missing <= 0:
            return segment.min_time
    return None
