"""Closed windows of a shared query, assembled and finished by Spark: what queries above it read."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial, reduce

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.catalog.records import Segment
from weft.logical.panes import Windows, windows_between
from weft.logical.relations import Column
from weft.optimizer.nodes import LiveClass, LiveNode, Route
from weft.spark import rows as stored
from weft.spark.assemble import PartOfNode, Wanted, assemble, by_group, with_edges
from weft.spark.fold import PANE
from weft.spark.hot import HotPartials
from weft.spark.order import limited, sort_keys
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
    windows = no_windows()
    if upto is not None:
        windows = due_windows(world, state.found, state.nodes, low, upto)
        windows = windows.whole_since(state.record.horizons.values())
    if not len(windows):
        columns = (*state.record.columns, *stored.WINDOW_COLUMNS)
        return stored.as_stream(stored.nothing(spark, columns), state.record, low, high)
    wanted = [Wanted(state.found, windows)]
    merged = assemble(spark, parts_of(spark, world, state.nodes, wanted))
    if merged is None:
        merged = nothing_merged(spark, state)
    else:
        merged = with_edges(spark, merged, wanted)
    return stored.as_stream(finished(spark, merged, state), state.record, low, high)


def on_route(segments: list[Segment], route: Route) -> list[Segment]:
    return [s for s in segments if route.holds(s.tick)]


def due_windows(
    world: World,
    found: LiveClass,
    nodes: Mapping[int, LiveNode],
    after: int | None,
    upto: int | None,
    known: dict | None = None,
) -> Windows:
    """The windows of a class that end in (after, upto] and may hold rows; None: no bound.

    `known` keeps what was found out about nodes, for many classes that read the same ones.
    """
    known = {} if known is None else known
    extents = []
    for route in found.routes:
        key = (route.node_id, route.from_tick, route.to_tick)
        if key not in known:
            known[key] = _extent(world, nodes[route.node_id], route)
        extents += [known[key]] if known[key] else []
    if not extents:
        return no_windows()
    low, high = min(low for low, _ in extents), max(high for _, high in extents)
    return windows_between(found.value.window, after, upto, low, high)


def _extent(world: World, live: LiveNode, route: Route) -> tuple[int, int] | None:
    """The first and last instant that partials on a route may have rows of."""
    panes, kept = live.node.panes, on_route(world.partials.get(live.id, []), route)
    if not kept:
        return None
    first, last = min(s.min_time for s in kept), max(s.max_time for s in kept)
    return panes.start(first), panes.start(last + 1) - 1


def no_windows() -> Windows:
    return Windows(np.zeros(0, np.int64), np.zeros(0, np.int64))


def parts_of(
    spark: SparkSession,
    world: World,
    nodes: Mapping[int, LiveNode],
    wanted: Sequence[Wanted],
    hot: HotPartials | None = None,
) -> list[PartOfNode]:
    """What is read of each node, by whom: one scan for each stretch of ticks of a node. `hot` keeps
    what is read in batch after batch."""
    readers: dict[tuple[int, int, int | None], list[tuple[Wanted, Route, int]]] = {}
    first = 0
    for each in wanted:
        for route in each.found.routes:
            key = (route.node_id, route.from_tick, route.to_tick)
            readers.setdefault(key, []).append((each, route, first))
        first += len(each.windows)
    parts = []
    for (node_id, _, _), found in readers.items():
        live, route = nodes[node_id], found[0][1]
        segments = on_route(world.partials.get(node_id, []), route)
        if live.node.panes is None:
            partials = _totals(spark, world, live, route, segments)
        else:
            low = live.node.panes.number(min(int(w.windows.starts.min()) for w, _, _ in found))
            high = live.node.panes.number(max(int(w.windows.ends.max()) for w, _, _ in found))
            held = [s for s in segments if s.min_time < high and s.max_time >= low]
            if held and hot is not None:
                windows = sum(len(w.windows) for w, _, _ in found)
                read = partial(hot.read, spark, world.root, live, route, held, segments, windows)
                parts.append(PartOfNode(live, read, found))
                continue
            partials = read_partials(spark, world.root, live, held) if held else None
        if partials is not None:
            parts.append(PartOfNode(live, partial(by_group, partials), found))
    return parts


def _totals(
    spark: SparkSession, world: World, live: LiveNode, route: Route, segments: list[Segment]
) -> DataFrame | None:
    """The partials of totals from the newest base on: what earlier ones add up to is in it."""
    bases = [s for s in segments if s.part == "totals" and route.from_tick == 0]
    base = max((s.evaluation for s in bases), default=0)
    later = [s for s in segments if s.part == "partials" and s.evaluation > base]
    parts = []
    if later:
        parts.append(read_partials(spark, world.root, live, later).where(F.col(PANE) > base))
    if base:
        kept = [s for s in bases if s.evaluation == base]
        parts.append(read_partials(spark, world.root, live, kept))
    return reduce(DataFrame.unionByName, parts) if parts else None


def nothing_merged(spark: SparkSession, state: SharedState) -> DataFrame:
    """What is merged of no partials: no row."""
    columns = [Column(d.column, d.type) for d in state.found.value.dimensions]
    columns += [Column(s.column, s.type) for s in state.finish.statistics]
    return stored.nothing(spark, (*columns, *stored.WINDOW_COLUMNS[:2]))


def refusing(merged: DataFrame, state: SharedState) -> DataFrame:
    """Merged rows that raise an error, whatever is asked of them, where they hold a row that fails."""
    failures = state.finish.failures
    if not failures:
        return merged
    fails = reduce(F.Column.__or__, [F.coalesce(F.col(c), F.lit(0)) > 0 for c, _ in failures])
    texts = [F.when(F.col(column) > 0, F.lit(text)) for column, text in failures]
    problem = F.raise_error(F.concat(F.lit(f"{state.record.name} fails on "), F.coalesce(*texts)))
    return merged.select(
        *[F.when(fails, problem).otherwise(F.col(c)).alias(c) for c in merged.columns]
    )


def finished(spark: SparkSession, merged: DataFrame, state: SharedState) -> DataFrame:
    """The finish over merged rows, ORDER BY … LIMIT for each window."""
    name = f"weft_merged_{next(_names)}"
    refusing(merged, state).createOrReplaceTempView(name)
    try:
        answer = spark.sql(state.finish.spark.replace("FROM weft_m0", f"FROM {name}"))
    finally:
        spark.catalog.dropTempView(name)
    for old, new in zip(state.finish.window_names, (START, END), strict=False):
        answer = answer.withColumnRenamed(old, new)
    answer = answer.withColumn(NUMBER, F.lit(0).cast("bigint"))
    return limited(answer, sort_keys(state.record), state.finish.limit, state.finish.offset)
