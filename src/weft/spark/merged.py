"""Queries that share and are finished on Spark: merged all together, finished each by itself.

Why: what only Spark can say, or what changes as a whole, is finished batch by batch and stored like a
recomputed answer; but rows are folded once for everybody, and the merge of partials, which is most
of the work, is one plan for all such queries of a batch, kept while they are finished.
Sound because a merged row depends on its class and its window alone, and each query takes those of
its own class, and of the windows that fall due for it.
Differs from results/shared.py, which does the same on DuckDB for one query when it is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.logical.panes import Windows
from weft.spark.assemble import CLASS, EVERYTHING, Wanted, assemble, with_edges
from weft.spark.closed import due_windows, finished, nothing_merged, parts_of
from weft.spark.constants import with_constants
from weft.spark.contents import Due
from weft.spark.rows import END, START
from weft.spark.world import SharedState, World


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What one query wants of the merge: windows that fall due, or its total (None)."""

    shared: SharedState
    due: Due | None


class Merged:
    """Merged statistics of some classes: their due windows and their totals, in one relation."""

    def __init__(
        self, rows: DataFrame | None, windows: Mapping[int, Windows], is_kept: bool
    ) -> None:
        self._rows = rows.persist() if rows is not None and is_kept else rows
        self._windows = windows  # by class
        self._is_kept = rows is not None and is_kept

    def total(self, spark: SparkSession, shared: SharedState) -> DataFrame:
        """The merged rows of a standing answer."""
        if self._rows is None:
            return nothing_merged(spark, shared)
        return self._rows.where(F.col(CLASS) == shared.found.id)

    def due(self, shared: SharedState, due: Due) -> DataFrame | None:
        """The merged rows of a query's due windows; None if there are no such windows."""
        if self._rows is None or not self._has_any(shared, due):
            return None
        horizon = max(shared.record.horizons.values(), default=None)
        bounds = {"_weft_after": due.after, "_weft_upto": due.upto, "_weft_since": horizon}
        rows = with_constants(self._rows.where(F.col(CLASS) == shared.found.id), **bounds)
        for edge, name, test in (
            (END, "_weft_after", F.Column.__gt__),
            (END, "_weft_upto", F.Column.__le__),
            (START, "_weft_since", F.Column.__ge__),
        ):
            rows = rows.where(F.col(name).isNull() | test(F.unix_micros(edge), F.col(name)))
        return rows.drop(*bounds)

    def _has_any(self, shared: SharedState, due: Due) -> bool:
        found = self._windows.get(shared.found.id)
        if found is None:
            return False
        ends = found.whole_since(shared.record.horizons.values()).ends
        is_after = ends > due.after if due.after is not None else np.full(len(ends), True)
        return bool((is_after if due.upto is None else is_after & (ends <= due.upto)).any())

    def release(self) -> None:
        if self._is_kept:
            self._rows.unpersist()


def merge(spark: SparkSession, world: World, asked: Sequence[Asked]) -> Merged:
    """One plan that merges what queries ask for; nothing runs until they are finished."""
    by_class: dict[int, list[Asked]] = defaultdict(list)
    for each in asked:
        by_class[each.shared.found.id].append(each)
    nodes = {n.id: n for each in asked for n in each.shared.nodes.values()}
    known: dict = {}
    wanted = [_wanted(world, group, known) for group in by_class.values()]
    wanted = [each for each in wanted if len(each.windows)]
    rows = assemble(spark, parts_of(spark, world, nodes, wanted)) if wanted else None
    if rows is not None:
        rows = with_edges(spark, rows, wanted)
    return Merged(rows, {w.found.id: w.windows for w in wanted}, is_kept=len(asked) > 1)


def _wanted(world: World, group: list[Asked], known: dict) -> Wanted:
    """The windows of a class that any of its queries asks for, and the statistics they need."""
    shared = group[0].shared
    statistics = frozenset(s for each in group for s in each.shared.finish.statistics)
    found = replace(shared.found, statistics=statistics)
    if group[0].due is None:
        return Wanted(found, EVERYTHING)
    afters, uptos = [a.due.after for a in group], [a.due.upto for a in group]
    after = None if None in afters else min(afters)
    upto = None if None in uptos else max(uptos)
    return Wanted(found, due_windows(world, found, shared.nodes, after, upto, known))


class SharedEvaluator:
    """Answers one query from partials: the same verbs as evaluate.Evaluator, which has the rows."""

    def __init__(
        self, spark: SparkSession, world: World, shared: SharedState, merged: Merged | None
    ) -> None:
        self._spark, self._world, self._shared = spark, world, shared
        self._merged = merged  # None: it merges for itself

    def windows(self, due: Due, only: None = None) -> DataFrame | None:
        """The answers of all windows that fall due; None when none do."""
        rows = self._merge(due).due(self._shared, due)
        return None if rows is None else finished(self._spark, rows, self._shared)

    def standing(self, now: int | None, only: None = None) -> DataFrame:
        """The total now; totals hold the rows that the clock has reached, whatever `now` is."""
        rows = self._merge(None).total(self._spark, self._shared)
        if self._shared.finish.is_global:  # one row even over nothing
            rows = self._spark.range(1).drop("id").join(rows, F.lit(True), "left")
        return finished(self._spark, rows, self._shared)

    def _merge(self, due: Due | None) -> Merged:
        return self._merged or merge(self._spark, self._world, [Asked(self._shared, due)])
