"""Closed windows of a shared query, assembled and finished by Spark: what queries above it read."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window as Over

from weft.catalog.records import Segment
from weft.logical.panes import Windows, windows_between
from weft.optimizer.nodes import LiveClass, LiveNode, Route
from weft.plan.order import SortKey
from weft.spark import rows as stored
from weft.spark.assemble import (
    CLASS,
    HOME,
    WINDOW,
    PartOfNode,
    Wanted,
    assemble,
    by_group,
    with_edges,
)
from weft.spark.partials import read_partials
from weft.spark.rows import END, NUMBER, START
from weft.spark.world import SharedState, World

_names = itertools.count()


def closed_windows(
    spark: SparkSession, world: World, state: SharedState, low: int | None, high: int | None
) -> DataFrame:
    """Closed windows as a stream whose event time is window_end less 1 µs, within [low, high]."""
    clock = world.streams[state.stream].clock
    upto = clock if high is None or clock is None else min(clock, high + 1)
    segments = {r: on_route(world.partials[r.node_id], r) for r in state.found.routes}
    windows = due_windows(state.found, state.nodes, segments, low, upto)
    windows = windows.whole_since(state.record.horizons.values())
    if clock is None or not len(windows):
        columns = (*state.record.columns, *stored.WINDOW_COLUMNS)
        return stored.as_stream(stored.nothing(spark, columns), state.record, low, high)
    wanted = Wanted(state.found, windows)
    parts = [
        PartOfNode(
            state.nodes[route.node_id],
            partial(by_group, read_partials(spark, world.root, state.nodes[route.node_id], found)),
            [(wanted, route, 0)],
        )
        for route, found in segments.items()
        if found
    ]
    merged = with_edges(spark, assemble(spark, parts), [wanted], [0]).drop(CLASS, HOME, WINDOW)
    return stored.as_stream(finished(spark, merged, state), state.record, low, high)


def on_route(segments: list[Segment], route: Route) -> list[Segment]:
    return [s for s in segments if route.holds(s.tick)]


def due_windows(
    found: LiveClass,
    nodes: dict[int, LiveNode],
    segments: dict[Route, list[Segment]],
    after: int | None,
    upto: int | None,
) -> Windows:
    """The windows of a class that end in (after, upto] and may hold rows."""
    lows, highs = [], []
    for route, kept in segments.items():
        panes = nodes[route.node_id].node.panes
        lows += [panes.start(s.min_time) for s in kept]
        highs += [panes.start(s.max_time + 1) - 1 for s in kept]
    if not lows or upto is None:
        return Windows(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return windows_between(found.value.window, after, upto, min(lows), max(highs))


def finished(spark: SparkSession, merged: DataFrame, state: SharedState) -> DataFrame:
    """The finish over merged rows, ORDER BY … LIMIT for each window."""
    name = f"weft_merged_{next(_names)}"
    merged.createOrReplaceTempView(name)
    try:
        answer = spark.sql(state.finish.spark.replace("FROM weft_m0", f"FROM {name}"))
    finally:
        spark.catalog.dropTempView(name)
    for old, new in zip(state.finish.window_names, (START, END), strict=False):
        answer = answer.withColumnRenamed(old, new)
    return _limited(answer.withColumn(NUMBER, F.lit(0).cast("bigint")), state)


def _limited(answer: DataFrame, state: SharedState) -> DataFrame:
    from weft.spark.evaluate import sort_columns

    limit, offset = state.finish.limit, state.finish.offset
    if limit is None and not offset:
        return answer
    keys = sort_columns(tuple(SortKey(*key[:3]) for key in state.record.order)) or [F.lit(1)]
    rank = F.row_number().over(Over.partitionBy(START, END).orderBy(*keys))
    answer = answer.withColumn("_weft_rn", rank).where(F.col("_weft_rn") > offset)
    if limit is not None:
        answer = answer.where(F.col("_weft_rn") <= offset + limit)
    return answer.drop("_weft_rn")
