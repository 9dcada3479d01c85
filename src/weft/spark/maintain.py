"""Background work of the loop: retention, compaction, sweeping. Each step is crash-safe by itself.

    prune     drop segments that neither RETAIN nor any registered query needs
    forget    drop what is only of windows that are kept no longer (see forget.py)
    compact   merge small segments of one owner, part and day into one
    base      write the settled answer of a query whose change log has grown long
    nodes     merge the partials of shared nodes (see compact_nodes.py)
    results   merge the windows that eager classes have ready (see compact_results.py)
    sweep     delete files that were dropped long enough ago for every reader to have finished

Each writes new files first and then swaps the catalog's rows in one transaction, so a crash leaves
the old state and an orphan, or the new state and files to sweep.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.catalog.records import QueryRecord, Segment, StreamRecord
from weft.catalog.store import Catalog
from weft.logical.relations import Column
from weft.optimizer.selections import load_selections
from weft.plan.recompute import RecomputePlan
from weft.settings import Settings
from weft.spark import rows as stored
from weft.spark.compact_nodes import NodeCompactor
from weft.spark.compact_results import ResultsCompactor
from weft.spark.forget import Bounds, forget, is_past
from weft.spark.keep import PARTS, ROW_GROUP, schema_of
from weft.spark.match import TARGET
from weft.spark.needed import Reader, needed_from, readers
from weft.spark.rows import DIFF, END, EVALUATION, TIME, instant
from weft.spark.sources import HELPERS
from weft.spark.world import QueryState, World, load_world
from weft.storage.crash import crash_point
from weft.storage.files import footer_segment, intact_paths, parquet_files, spark_path, sync_file
from weft.storage.sweep import sweep_dropped

DAY = 86_400_000_000
MERGES_PER_ROUND = 4  # bounds the pause between two batches


class Maintainer:
    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        root: Path,
        plans: dict[int, RecomputePlan],
        settings: Settings,
    ) -> None:
        self._spark, self._catalog, self._root = spark, catalog, root
        self._plans, self._settings = plans, settings
        self._readers: dict[int, list[Reader]] = {}
        self._bounds = Bounds()

    def run(self) -> None:
        with self._catalog.read() as view:
            world = load_world(view, self._root, self._plans)
            self._readers = readers(view)
        for state in world.streams.values():
            self._prune(world, state.record, state.segments)
            self._release(state.record)
        self._bounds = forget(self._catalog, world)
        merges = 0
        for state in world.streams.values():
            pruned = self._needed_from(world, state.record)
            with self._catalog.read() as view:
                aside = view.segments(state.record.owner, "late", "rejected", "derived", "lists")
            kept = [
                s
                for s in state.segments + aside
                if pruned is None
                or s.max_time is None
                or s.max_time >= pruned
                or s.part in ("late", "rejected")
            ]
            merges += self._compact(state.record, kept, MERGES_PER_ROUND - merges)
        for query in world.queries.values():
            self._rebase(world, query)
            cut = self._bounds.queries.get(query.record.id)
            changes = [s for s in query.segments if s.part == "changes" and not is_past(s, cut)]
            merges += self._compact(query.record, changes, MERGES_PER_ROUND - merges)
        common = (self._spark, self._catalog, self._root, self._settings, self._bounds)
        nodes, results = NodeCompactor(*common), ResultsCompactor(*common)
        merges = 0  # a budget of their own: many queries must not keep partials from being merged
        for state in world.streams.values():
            merges += nodes.run(state.record.id, MERGES_PER_ROUND - merges)
            results.run(state.record.id)
        sweep_dropped(self._catalog, self._root, self._settings.grace_seconds * 1_000_000)

    # retention

    def _prune(self, world: World, record: StreamRecord, segments: list[Segment]) -> None:
        horizon = self._needed_from(world, record)
        if horizon is None:
            return
        old = [s for s in segments if s.max_time is not None and s.max_time < horizon]
        if not old:
            return
        with self._catalog.read() as view:
            kept = view.segments(record.owner, *PARTS)
        gone = [s for s in kept if s.max_time < horizon]
        crash_point("prune.before-commit")
        with self._catalog.write() as change:
            change.drop_segments([*old, *gone])
            pruned = record.pruned_rows + sum(s.rows for s in old)
            change.set_stream(record.id, pruned_rows=pruned, pruned_before=horizon)
        crash_point("prune.committed")

    def _release(self, record: StreamRecord) -> None:
        """Let go of what was kept for selections that are no more, or are kept otherwise now."""
        with self._catalog.write() as change:
            found = load_selections(change, record.id)
            idle = {
                "derived": not found.derived,
                "lists": found.listing() is None,
                "ready": not found.ready(record.evaluation),
            }
            parts = [part for part in PARTS if idle[part]]
            if parts:
                change.drop_segments(change.segments(record.owner, *parts))

    def _needed_from(self, world: World, record: StreamRecord) -> int | None:
        return needed_from(world, record, self._readers.get(record.id, ()))

    # compaction

    def _compact(self, record: StreamRecord | QueryRecord, found: list[Segment], most: int) -> int:
        """Merge the small segments of one owner, by part and day; returns how many merges were made."""
        groups: dict[tuple[str, int], list[Segment]] = defaultdict(list)
        for segment in found:
            if segment.bytes < self._settings.compact_bytes:
                is_rows = isinstance(record, StreamRecord) and segment.min_time is not None
                groups[segment.part, segment.min_time // DAY if is_rows else 0].append(segment)
        full = [
            key
            for key, group in sorted(groups.items())
            if len(group) >= self._settings.compact_after
        ]
        for part, day in full[: max(most, 0)]:
            self._merge(record, part, groups[part, day])
        return len(full[: max(most, 0)])

    def _merge(self, record: StreamRecord | QueryRecord, part: str, group: list[Segment]) -> None:
        folder = self._root / _home(record) / f"{group[-1].tick:019d}-merged-{uuid.uuid4().hex[:8]}"
        rows = self._read(record, part, group)
        time = _time_column(record)
        cut = self._bounds.queries.get(record.id) if isinstance(record, QueryRecord) else None
        if cut is not None:
            rows = rows.where(F.col(END) > instant(cut))
        if part == "lists":  # those of dropped classes go
            live = {query.class_id for query, _ in self._readers.get(record.id, ())}
            rows = rows.where(F.col(TARGET).isin(*live))
            rows = rows.coalesce(1).sortWithinPartitions(TARGET, time)
        elif time is not None:
            rows = rows.coalesce(1).sortWithinPartitions(time)
        writer = rows.coalesce(1).write.option("compression", "zstd")
        if isinstance(record, StreamRecord):
            writer = writer.option("parquet.block.size", ROW_GROUP)
        writer.parquet(spark_path(folder))
        crash_point("compact.written")
        made = self._describe(
            folder, record.owner, part, group[-1].tick, time, max(s.evaluation for s in group)
        )
        with self._catalog.write() as change:
            change.add_segments(made)
            change.drop_segments(group)
            crash_point("compact.before-commit")
        crash_point("compact.committed")

    def _read(
        self, record: StreamRecord | QueryRecord, part: str, group: list[Segment]
    ) -> DataFrame:
        if isinstance(record, StreamRecord) and part not in PARTS:
            helpers = (*HELPERS, Column(TIME, "TIMESTAMP"))
            return stored.read_stream(self._spark, self._root, record, group, helpers)
        schema = self._schema(record, part)
        return self._spark.read.schema(schema).parquet(*intact_paths(self._root, group))

    def _schema(self, record: StreamRecord | QueryRecord, part: str):
        if isinstance(record, QueryRecord):
            state = QueryState(record, self._plans[record.id], [], None)
            columns = (*stored.answer_columns(state), Column(DIFF, "BIGINT"))
            return stored.struct_of((*columns, Column(EVALUATION, "BIGINT")))
        found = self._readers.get(record.id)
        with self._catalog.read() as view:
            derived = load_selections(view, record.id).derived if found else ()
        return schema_of(part, record.definition.columns, derived)

    def _rebase(self, world: World, state: QueryState) -> None:
        """Give readers a settled answer to start from when the change log has grown long."""
        record = state.record
        if record.is_append_only or record.evaluation == 0:
            return
        segments = state.segments
        base = max((s.evaluation for s in segments if s.part == "base"), default=0)
        if record.evaluation - base < self._settings.compact_after:
            return
        if not any(s.part == "changes" and s.evaluation > base for s in segments):
            return
        settled = stored.settle(stored.answer_log(self._spark, world, state))
        settled = settled.withColumn(EVALUATION, F.lit(record.evaluation).cast("bigint"))
        folder = (
            self._root / _home(record) / f"{record.evaluated_tick:019d}-base-{uuid.uuid4().hex[:8]}"
        )
        settled.coalesce(1).write.option("compression", "zstd").parquet(spark_path(folder))
        crash_point("compact.base-written")
        made = self._describe(
            folder,
            record.owner,
            "base",
            record.evaluated_tick,
            _time_column(record),
            record.evaluation,
            keep_empty=True,
        )
        with self._catalog.write() as change:
            change.drop_segments([s for s in segments if s.part == "base"])
            change.add_segments(made)
        crash_point("compact.base-committed")

    def _describe(
        self,
        folder: Path,
        owner: str,
        part: str,
        tick: int,
        time: str | None,
        evaluation: int,
        keep_empty: bool = False,
    ) -> list[Segment]:
        found = []
        for path in parquet_files(folder):
            sync_file(path)
            segment = footer_segment(path, self._root, owner, part, tick, time, evaluation)
            if segment.rows or keep_empty:
                found.append(segment)
        return found


def _home(record: StreamRecord | QueryRecord) -> str:
    return f"{'streams' if isinstance(record, StreamRecord) else 'queries'}/{record.id}"


def _time_column(record: StreamRecord | QueryRecord) -> str | None:
    if isinstance(record, StreamRecord):
        return TIME
    return END if record.is_per_window else None
