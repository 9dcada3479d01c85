"""What RETAIN has removed cannot be answered: it is refused, never answered in part."""

from __future__ import annotations

from weft.catalog.records import StreamRecord, to_instant
from weft.errors import StorageError
from weft.logical.windows import instant


def refuse_pruned(
    stream: StreamRecord,
    low: int | None,
    problem: str = "the rows for that instant are no longer kept",
    hint: str = "ask for a later instant",
) -> None:
    """Refuse an answer that looks at rows from `low` on (None: at all), if some of them are gone."""
    pruned = stream.pruned_before
    if pruned is not None and (low is None or low < pruned):
        raise StorageError(
            f'{problem} in stream "{stream.name}"',
            detail=f"rows before {instant(to_instant(pruned))} were pruned by RETAIN",
            hint=f"{hint}, or declare a longer RETAIN",
            code="WEFT_NOT_RETAINED",
        )
