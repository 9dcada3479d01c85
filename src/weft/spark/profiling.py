"""Sampling a stream: the values of a network's columns in a few thousand rows of a batch. One job.

What comes to the driver is bounded: so many rows, so many columns, a number for each.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weft.catalog.records import Segment
from weft.logical.statistics import Dimension
from weft.optimizer.network import Network
from weft.optimizer.nodes import Atom, LiveNode
from weft.optimizer.profile import SAMPLED, Profile, profile_of
from weft.spark.shared import Advance, rows_of
from weft.spark.signature import with_signature
from weft.spark.world import StreamState, World

KEPT = 64  # batches of a stream that are remembered until somebody learns from them
COLUMNS = 256  # that are sampled; of more, the rest is guessed


def atoms_of(nodes: list[LiveNode]) -> list[Atom]:
    """The columns of the nodes that fold, dimensions first."""
    found = {atom.column: atom for live in nodes for atom in live.node.columns}
    ordered = sorted(
        found.values(), key=lambda atom: (not isinstance(atom, Dimension), atom.column)
    )
    return ordered[:COLUMNS]


def take_profile(
    spark: SparkSession, world: World, state: StreamState, newest: list[Segment], atoms: list[Atom]
) -> Profile:
    """Sample the rows of some segments."""
    rows = rows_of(spark, world, state, newest, None, None)
    share = 1.2 * SAMPLED / max(1, sum(segment.rows for segment in newest))
    if share < 1:
        rows = rows.sample(share, seed=len(newest) + newest[0].rows)
    signature = [atom for atom in atoms if not isinstance(atom, Dimension)]
    signed = with_signature(rows.limit(SAMPLED), signature)
    values = [
        F.xxhash64(F.expr(a.expression) if isinstance(a, Dimension) else F.col(a.column)).alias(
            a.column
        )
        for a in atoms
    ]
    if not values:
        return Profile()
    table = signed.select(*values).toArrow()
    return profile_of(atoms, {name: np.asarray(table[name]) for name in table.column_names})


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """A batch: the network that folded it, the rows and partials, and what it took."""

    network: Network
    rows: int
    span: float  # of event time, in microseconds
    partials: int
    ms: int


@dataclass
class Observed:
    """What batches took, by stream, until somebody learns from it. In memory only."""

    _seen: dict[int, deque[Seen]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=KEPT))
    )

    def note(
        self, stream_id: int, network: Network, advance: Advance, partials: list[Segment], ms: int
    ) -> None:
        times = [(s.min_time, s.max_time) for s in advance.fresh if s.min_time is not None]
        if not times:
            return
        span = max(high for _, high in times) - min(low for low, _ in times)
        rows = sum(s.rows for s in advance.fresh)
        written = sum(s.rows for s in partials if s.part == "partials")
        self._seen[stream_id].append(Seen(network, rows, float(max(1, span)), written, ms))

    def take(self, stream_id: int) -> list[Seen]:
        found = list(self._seen[stream_id])
        self._seen[stream_id].clear()
        return found
