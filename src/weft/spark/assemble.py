"""Assemble: partials ⋈ windows → merged statistics per (class, window, group), for any number of classes.

Why: which windows are wanted, of which classes, is a relation, not a plan: a thousand queries are a
thousand times more rows of it. Each window is covered by few partials of each node that its class
reads (see logical/panes.py); the class's predicate is a range for each signature column.
Source: Weave Share's final aggregation (§3.2), PSoup's join of queries with data (§4.2).
Totals are one window that holds everything.
Sound because a cover holds each pane of its window once, and a route each row once.
Compilers only, but for the small relations that they ship to Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.logical.panes import Windows, cover
from weft.logical.statistics import Dimension, Statistic
from weft.optimizer.nodes import LiveClass, LiveNode, Route
from weft.optimizer.predicates import Ranking
from weft.spark.fold import LEVEL, PANE
from weft.spark.rows import END, START

CLASS, WINDOW, KEY = "_weft_class", "_weft_window", "_weft_key"
LEVELS = 64  # more than a pyramid can have: panes are counted in 64 bits
EVERYTHING = Windows(np.zeros(1, np.int64), np.zeros(1, np.int64))  # what a class of totals wants


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """Windows of one class."""

    found: LiveClass
    windows: Windows


@dataclass(frozen=True, slots=True, eq=False)
class PartOfNode:
    """The partials that some classes read of a node, on one of their routes.

    `partials` are given the columns that classes group by, and come with each group in one place,
    so that what windows make of them, which is many times more, need not be moved again.
    """

    live: LiveNode
    partials: Callable[[tuple[str, ...]], Sequence[DataFrame]]
    readers: Sequence[tuple[Wanted, Route, int]]  # with the number of the first window


def assemble(spark: SparkSession, parts: Sequence[PartOfNode]) -> DataFrame | None:
    """Merged statistics by number of window and by dimensions, all classes in one plan."""
    groups: dict[tuple[Dimension, ...], list[tuple[PartOfNode, list]]] = defaultdict(list)
    for part in parts:
        by_dimensions = defaultdict(list)
        for reader in part.readers:
            by_dimensions[reader[0].found.value.dimensions].append(reader)
        for dimensions, readers in by_dimensions.items():
            groups[dimensions].append((part, readers))
    merged = [_merge(spark, dimensions, found) for dimensions, found in groups.items()]
    return reduce(_union, merged) if merged else None


def _merge(
    spark: SparkSession, dimensions: tuple[Dimension, ...], found: list[tuple[PartOfNode, list]]
) -> DataFrame:
    """One group of classes with the same dimensions, over every node that they read."""
    statistics: dict[str, Statistic] = {}
    joined = []
    for part, readers in found:
        wanted = {s.column: s for reader in readers for s in reader[0].found.statistics}
        statistics |= wanted
        names = [d.column for d in dimensions] + sorted(wanted)
        due = F.broadcast(due_relation(spark, part.live, readers))
        rows = _by_group(part, dimensions, names)
        is_paned = part.live.node.panes is not None
        rows = rows.join(due, KEY) if is_paned else rows.crossJoin(due)
        joined.append(rows.where(_condition(part.live)).select(WINDOW, *names))
    rows = reduce(_union, joined)
    grouped = rows.groupBy(WINDOW, *[d.column for d in dimensions])
    made = [F.expr(s.merged()).alias(name) for name, s in sorted(statistics.items())]
    if not made:
        return grouped.agg(F.count(F.lit(1)).alias("_weft_n")).drop("_weft_n")
    return grouped.agg(*made)


def _by_group(part: PartOfNode, dimensions: tuple[Dimension, ...], names: list[str]) -> DataFrame:
    signature = [atom.column for atom in part.live.node.signature()]
    found = part.partials(tuple(d.column for d in dimensions))
    rows = reduce(lambda one, other: one.unionByName(other), found)
    return rows.select(key_of(F.col(LEVEL), F.col(PANE)).alias(KEY), *names, *signature)


def key_of(level, pane):
    """Level and pane as one number: a join by one long is quicker than by two columns."""
    return pane * LEVELS + level


def by_group(partials: DataFrame, groups: tuple[str, ...]) -> Sequence[DataFrame]:
    """Partials moved to where their groups are."""
    return [partials.repartition(*groups) if groups else partials]


def _union(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.unionByName(other, allowMissingColumns=True)


def _condition(live: LiveNode) -> F.Column:
    """The class's tests, whatever they are: a range for each rank, a demand for each bit."""
    tests = [F.lit(True)]
    for atom in live.node.signature():
        column = F.col(atom.column)
        if isinstance(atom, Ranking):
            low, high = F.col(f"lo_{atom.column}"), F.col(f"hi_{atom.column}")
            tests.append(low.isNull() | column.between(low, high))
        else:
            tests.append(~F.col(f"lo_{atom.column}") | column)
    return reduce(lambda a, b: a & b, tests)


def due_relation(
    spark: SparkSession, live: LiveNode, readers: Sequence[tuple[Wanted, Route, int]]
) -> DataFrame:
    """Rows (level and pane, window's number, the class's tests): what to join partials with. Of
    totals, the class's one number and its tests."""
    sizes = [len(wanted.windows) for wanted, _, _ in readers]
    windows = Windows(
        np.concatenate([wanted.windows.starts for wanted, _, _ in readers]),
        np.concatenate([wanted.windows.ends for wanted, _, _ in readers]),
    )
    numbers = np.concatenate([np.arange(s) + r[2] for s, r in zip(sizes, readers, strict=True)])
    reader = np.repeat(np.arange(len(readers)), sizes)
    columns = {WINDOW: numbers}
    if live.node.panes is not None:
        covered = cover(windows, live.node.panes, live.node.pyramid)
        key = key_of(covered.level.astype(np.int64), covered.pane)
        columns = {KEY: key, WINDOW: numbers[covered.window]}
        reader = reader[covered.window]
    for name, values, kind in _tests(live, readers):
        columns[name] = pa.array(values, kind).take(pa.array(reader))
    return spark.createDataFrame(pa.table(columns))


def _tests(
    live: LiveNode, readers: Sequence[tuple[Wanted, Route, int]]
) -> Iterator[tuple[str, list, pa.DataType]]:
    """For each signature column, what each reader demands of it."""
    ranges = [{c: (low, high) for c, low, high in r.condition.ranges} for _, r, _ in readers]
    for atom in live.node.signature():
        if isinstance(atom, Ranking):
            found = [each.get(atom.column, (None, None)) for each in ranges]
            yield f"lo_{atom.column}", [low for low, _ in found], pa.int32()
            yield f"hi_{atom.column}", [high for _, high in found], pa.int32()
        else:
            asked = [atom.column in r.condition.bits for _, r, _ in readers]
            yield f"lo_{atom.column}", asked, pa.bool_()


def with_edges(spark: SparkSession, merged: DataFrame, wanted: Sequence[Wanted]) -> DataFrame:
    """Give merged rows their class and the edges of their window, for its number."""
    return labelled(spark, merged, wanted, CLASS, [w.found.id for w in wanted])


def labelled(
    spark: SparkSession, merged: DataFrame, wanted: Sequence[Wanted], name: str, labels: list[int]
) -> DataFrame:
    """Give merged rows the edges of their window and what stands for who wants it."""
    sizes = [len(w.windows) for w in wanted]
    table = pa.table(
        {
            WINDOW: pa.array(np.arange(sum(sizes), dtype=np.int64)),
            name: pa.array(np.repeat(labels, sizes).astype(np.int64)),
            START: pa.array(np.concatenate([w.windows.starts for w in wanted])),
            END: pa.array(np.concatenate([w.windows.ends for w in wanted])),
        }
    )
    edges = spark.createDataFrame(table)
    for edge in (START, END):
        edges = edges.withColumn(edge, F.timestamp_micros(edge))
    return merged.join(F.broadcast(edges), WINDOW).drop(WINDOW)
