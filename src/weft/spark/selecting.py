"""Registering selections: in the transaction of the queries beside them.

A new selection reads the rows that are there, so nothing is filled for it (PSoup §3.2: new queries on
old data), but what only Spark evaluates: one job derives it for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from weft.catalog.change import Change
from weft.catalog.records import QueryRecord, Segment
from weft.optimizer.codec import dump
from weft.optimizer.selections import SelectClass, Selection, Selections
from weft.spark.keep import fill_derived
from weft.spark.shared import Advance
from weft.spark.world import StreamState, World


@dataclass(frozen=True, slots=True, eq=False)
class SelectDraft:
    """A selection to be registered: its record without a class, what it shares, what is its own."""

    record: QueryRecord
    value: SelectClass
    selection: Selection

    @property
    def stream_id(self) -> int:
        return self.value.stream_id


class SelectRegistration:
    """Some selections over one stream, on their way into the catalog."""

    def __init__(
        self, world: World, state: StreamState, drafts: Sequence[SelectDraft], tick: int
    ) -> None:
        self._world, self._state, self._drafts, self._tick = world, state, drafts, tick
        self._is_refilled = False

    def fill(self, spark: SparkSession, known: Selections) -> list[Segment]:
        """Derive what only Spark evaluates, over everything retained, if some of it is new.

        The columns of all queries are derived again, into files that take the place of the old
        ones: a reader finds all columns of a row together.
        """
        drafts = [d for s in self._drafts for d in (*s.value.derived, *s.selection.derived)]
        self._is_refilled = not set(drafts) <= set(known.derived)
        if not self._is_refilled:
            return []
        every = tuple(sorted({*known.derived, *drafts}, key=lambda d: d.column))
        record = self._state.record
        advance = Advance(record.clock, record.clock, record.evaluation, self._tick)
        return fill_derived(spark, self._world, self._state, every, advance)

    def commit(self, change: Change, segments: Sequence[Segment]) -> None:
        if not self._drafts:
            return
        if self._is_refilled:
            change.drop_segments(change.segments(self._state.record.owner, "derived"))
        change.add_segments(segments)
        ids = self._add_classes(change)
        evaluation = self._state.record.evaluation
        texts: dict[Selection, str] = {}  # of many queries that differ in predicates only
        records = []
        for draft in self._drafts:
            if draft.selection not in texts:
                texts[draft.selection] = dump(_begun(draft.selection, evaluation))
            record = replace(
                draft.record, class_id=ids[draft.value.key], shared=texts[draft.selection],
                evaluation=evaluation,
            )  # fmt: skip
            records.append(record)
        change.add_queries(records)

    def _add_classes(self, change: Change) -> dict[str, int]:
        stream_id = self._state.record.id
        found = {row.key: row.id for row in change.classes(stream_id)}
        fresh = {d.value.key: d.value for d in self._drafts if d.value.key not in found}
        made = change.add_classes(stream_id, {key: dump(value) for key, value in fresh.items()})
        return found | made


def _begun(selection: Selection, evaluation: int) -> Selection:
    """A selection that is registered after an evaluation; a complete one is ready after the next."""
    is_ready = selection.policy == "complete" and selection.can_be_ready
    return replace(
        selection, evaluation=evaluation, ready_from=evaluation + 1 if is_ready else None
    )
