"""What a tree costs: the paper's aggregate operations, or seconds of Spark. Per tick.

A tree's `Load` is what a cost model may look at. All of it is a function of the *set* of queries
(sums are correctly rounded, so their order does not matter), and each field may be an array, one
entry for each candidate tree: the models are plain arithmetic.

    Eq. 1   C_t = λ + E·Ω                                    PaperCosts.tree
    Eq. 2   Ω = Σ r/s                                        Load.overlap
    Eq. 3   C = Σ C_t                                        plan.plan_cost
    Eq. 5   Δ = C_x + C_y − C_xy                             (λ + E_x·Ω_x + E_y·Ω_y − E_xy·Ω_xy)

Law that the algorithms rely on: a tree's cost never falls when its edge rate or its cells grow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from weft.optimizer.weave.counts import Counts, OneCell, cells
from weft.optimizer.weave.kinds import Kinds
from weft.optimizer.weave.windows import Query

Number = Any  # a float, or an array of floats


@dataclass(frozen=True, slots=True)
class Stream:
    """What was measured of the input. Rates are per tick."""

    rate: float  # λ: rows per tick
    counts: Counts = field(default_factory=OneCell)
    batch: float = 1.0  # ticks between two micro-batches


@dataclass(frozen=True, slots=True)
class Load:
    """What a tree has to do, as far as costs go."""

    edge_rate: Number  # E, edges per tick
    overlap: Number  # Ω = Σ ω, weighted by how often its windows are read
    window_rate: Number  # windows assembled per tick
    window_bits: Number  # Σ over those windows of log2(length in ticks)
    longest: Number  # the longest window, in ticks
    cells: Number  # groups × signatures of a fragment


class CostModel(Protocol):
    """The cost per tick of a tree (or of an array of trees) with this load."""

    is_even: bool  # whether a tree's panes all have one width (see even.py)

    def tree(self, load: Load, stream: Stream) -> Number: ...

    def partials(self, load: Load, stream: Stream) -> Number:
        """The partials that such a tree writes per tick."""
        ...


@dataclass(frozen=True, slots=True)
class PaperCosts:
    """Aggregate operations: λ + E·Ω (Eq. 1), where a fragment may hold many cells (§5.3).

    Final aggregation reads every cell of every fragment: λ + E·cells·Ω. A tree cannot write more
    cells than there are rows, unless each fragment has but one: E·cells ≤ max(E, λ). With one
    cell this is Eq. 1 to the letter.
    """

    is_even = False

    def tree(self, load: Load, stream: Stream) -> Number:
        return stream.rate + self.partials(load, stream) * load.overlap

    def partials(self, load: Load, stream: Stream) -> Number:
        most = np.maximum(load.edge_rate, stream.rate)
        return np.minimum(load.edge_rate * load.cells, most)


@dataclass(frozen=True, slots=True)
class SparkCosts:
    """Seconds of work on Spark, with the pyramid. `weft calibrate` measures the parameters.

    Partials written per tick: a fragment is written once by every batch that touches it, so there
    are u = (E + 1/batch)·cells chances to write one, of which λ rows hit u·(1 − e^(−λ/u)).
    Each partial also feeds log2(longest window in fragments) levels of the pyramid. A window of
    r·E fragments is assembled from about 1 + 2·log2(r·E) nodes, so the overlap factor of the
    paper is gone: Σ over windows of log2(r·E) = window_bits + window_rate·log2(E).

    Defaults: from the figures measured on two cores with Spark 4.3 in the design (10 million rows
    into 0.5 and 3.7 million groups; 5.4 million joined rows; one more small job). The engine itself
    uses BatchCosts (see batch.py): even panes, several nodes a tree, counts from samples.
    """

    row: float = 0.18e-6  # fold one row
    cell: float = 1.6e-6  # write one partial
    level: float = 0.4e-6  # feed one level of the pyramid with one partial
    window: float = 1.5e-6  # assemble one window, however small
    node: float = 0.8e-6  # read one cell of one node while assembling
    per_tree: float = 0.1  # jobs and files of one tree in one batch
    is_even = False

    def tree(self, load: Load, stream: Stream) -> Number:
        levels = np.maximum(0.0, np.log2(load.longest * load.edge_rate))
        panes = load.window_bits + load.window_rate * np.log2(load.edge_rate)
        nodes = load.window_rate + 2 * np.maximum(0.0, panes)
        return (
            self.per_tree / stream.batch
            + self.row * stream.rate
            + (self.cell + self.level * levels) * self.partials(load, stream)
            + self.window * load.window_rate
            + self.node * load.cells * nodes
        )

    def partials(self, load: Load, stream: Stream) -> Number:
        chances = (load.edge_rate + 1 / stream.batch) * load.cells
        return -chances * np.expm1(-stream.rate / chances)


def load_of(queries: Iterable[Query], edge_rate: Number, cells: Number) -> Load:
    """The load of one tree. `fsum` rounds once, so the order of the queries does not matter."""
    queries = tuple(queries)
    return Load(
        edge_rate,
        math.fsum(q.reads * q.overlap for q in queries),
        math.fsum(q.reads / q.slide for q in queries),
        math.fsum(q.reads / q.slide * math.log2(q.length) for q in queries),
        float(max(q.length for q in queries)),
        cells,
    )


def cells_of(queries: Iterable[Query], counts: Counts | Kinds) -> float:
    """The cells of a fragment of a tree that holds these queries; the number of its set of kinds."""
    if isinstance(counts, Kinds):
        return counts.number(shape_of(queries)[0])
    return cells(counts, *shape_of(queries))


def shape_of(queries: Iterable[Query]) -> tuple[frozenset[str], frozenset[str]]:
    """What a tree folds by: the union of its queries' dimensions, and their distinct predicates."""
    queries = tuple(queries)
    return (
        frozenset().union(*(q.dimensions for q in queries)),
        frozenset(q.predicate for q in queries if q.predicate is not None),
    )
