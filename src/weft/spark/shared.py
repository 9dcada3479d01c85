"""Folding rows into the nodes of a stream: what a batch adds, and what a new node starts with.

    paned nodes     the rows that the batch brings, by pane
    totals          the rows that the clock reaches: those of the batch that are not ahead of it, and
                    older ones that had waited for it

Each returns segments to commit; no catalog is touched here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.catalog.records import Segment
from weft.optimizer.nodes import LiveNode
from weft.spark import rows as stored
from weft.spark.constants import with_constants
from weft.spark.fold import LEVEL, PANE, filled, fold, merged
from weft.spark.partials import read_partials, write_partials
from weft.spark.rows import TIME
from weft.spark.world import StreamState, World

LOW, HIGH = "_weft_low", "_weft_high"


@dataclass(frozen=True, slots=True)
class Advance:
    """How a stream moves on with a batch or a heartbeat."""

    before: int | None  # its clock before, and now
    clock: int | None
    evaluation: int
    tick: int
    fresh: tuple[Segment, ...] = ()  # segments of the rows that the batch brings


def fold_batch(
    spark: SparkSession,
    world: World,
    state: StreamState,
    nodes: Sequence[LiveNode],
    advance: Advance,
) -> list[Segment]:
    """The partials that a batch or a heartbeat adds."""
    paned = [n for n in nodes if n.node.panes is not None]
    totals = [n for n in nodes if n.node.panes is None]
    parts = []
    if paned and advance.fresh:
        rows = rows_of(spark, world, state, list(advance.fresh), None, None)
        parts.append(fold(rows, paned, advance.evaluation))
    reached = reached_rows(spark, world, state, advance) if totals else None
    if reached is not None:
        parts.append(fold(reached, totals, advance.evaluation))
    return _write(parts, world, state, advance)


def fold_paned(
    rows: DataFrame,
    root: Path,
    stream_id: int,
    nodes: Sequence[LiveNode],
    evaluation: int,
    tick: int,
) -> list[Segment]:
    """The partials of paned nodes straight from a batch's rows, while the rows are being stored."""
    partials = fold(rows, nodes, evaluation)
    return write_partials(partials, root, stream_id, tick, evaluation)


def reached_rows(
    spark: SparkSession, world: World, state: StreamState, advance: Advance
) -> DataFrame | None:
    """The rows that count from this evaluation on; None if there can be none."""
    if advance.clock is None:
        return None
    fresh = {s.path for s in advance.fresh}
    older = [s for s in state.segments if s.path not in fresh]
    after = None if advance.before is None else advance.before + 1
    parts = []
    for segments, low in ((list(advance.fresh), None), (older, after)):
        found = stored.overlapping(segments, low, advance.clock)
        if found and (low is None or low <= advance.clock):
            parts.append(rows_of(spark, world, state, found, low, advance.clock))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def fill(
    spark: SparkSession,
    world: World,
    state: StreamState,
    nodes: Sequence[LiveNode],
    live: Mapping[int, LiveNode],
    advance: Advance,
) -> list[Segment]:
    """The partials of new nodes over what is retained: from a live parent's partials (ARGUS §3.3,
    vertical expansion) or from the rows. One job for all of them."""
    below = [n for n in nodes if _can_roll_up(n, live) and not _is_logged(n)]
    ids = {n.id for n in below}
    roots = [n if n.parent_id not in live else replace(n, parent_id=None) for n in nodes]
    roots = [n for n in roots if n.id not in ids]
    own = _with_children(roots, ids)
    parts = []
    paned = [n for n in own if n.node.panes is not None]
    totals = [n for n in own if n.node.panes is None]
    if paned and state.segments:
        rows = rows_of(spark, world, state, state.segments, None, None)
        parts.append(fold(rows, paned, advance.evaluation))
    if totals and advance.clock is not None:
        found = stored.overlapping(state.segments, None, advance.clock)
        if found:
            rows = rows_of(spark, world, state, found, None, advance.clock)
            parts.append(fold(rows, totals, advance.evaluation))
    for node in below:
        parts.append(_from_parent(spark, world, node, live[node.parent_id], advance))
    return _write(parts, world, state, advance)


def _can_roll_up(node: LiveNode, live: Mapping[int, LiveNode]) -> bool:
    """Whether a live parent has all the past that a new node starts with, by the same panes."""
    parent = live.get(node.parent_id)
    return parent is not None and parent.born_tick == 0 and parent.node.panes == node.node.panes


def _is_logged(live: LiveNode) -> bool:
    """Whether the evaluation that brought a partial matters: it starts with this one then."""
    return live.node.panes is None or live.node.is_versioned


def _with_children(nodes: list[LiveNode], filled: set[int]) -> list[LiveNode]:
    """Nodes whose parent is filled in another way start from the rows."""
    return [replace(n, parent_id=None) if n.parent_id in filled else n for n in nodes]


def _from_parent(
    spark: SparkSession, world: World, node: LiveNode, parent: LiveNode, advance: Advance
) -> DataFrame | None:
    segments = world.partials.get(parent.id, [])
    if not segments:
        return None
    partials = read_partials(spark, world.root, parent, segments).where(F.col(LEVEL) == 0)
    return filled(merged(partials, node.node, [PANE]), node, advance.evaluation)


def rows_of(
    spark: SparkSession,
    world: World,
    state: StreamState,
    segments: list[Segment],
    low: int | None,
    high: int | None,
) -> DataFrame:
    """Rows of segments with low ≤ time ≤ high, the bounds as data."""
    rows = stored.read_rows(spark, world, state, segments)
    if low is None and high is None:
        return rows
    rows = with_constants(rows, **{LOW: low, HIGH: high})
    micros = F.unix_micros(TIME)
    is_in = F.coalesce(micros >= F.col(LOW), F.lit(True))
    return rows.where(is_in & F.coalesce(micros <= F.col(HIGH), F.lit(True))).drop(LOW, HIGH)


def _write(
    parts: list[DataFrame | None], world: World, state: StreamState, advance: Advance
) -> list[Segment]:
    found = [part for part in parts if part is not None]
    if not found:
        return []
    partials = found[0]
    for part in found[1:]:
        partials = partials.unionByName(part, allowMissingColumns=True)
    return write_partials(partials, world.root, state.record.id, advance.tick, advance.evaluation)
