"""What a tree costs in one of Weft's batches, in milliseconds: the model that the engine plans with.

A batch brings `rows` that span `span` ticks of event time. A tree with panes of width 1/E cuts them
into span·E + 1 pieces (level 0), and each level of the pyramid above into radix times fewer. Of each
piece, each node writes its distinct cells. As the fold does it (spark/fold.py):

    batch    whatever the plan is: not part of a plan's cost
    brought  a row is stored, whatever the plan is: likewise
    tree     one more aggregation, shuffle and scan                             fixed
    node     one more folder of files                                           fixed
    row      read a row, compute its columns, find its cell, once a tree
    expand   the same again for each further grouping set
    step     each cell of a root feeds each level of each node below it
    cell     a partial is merged, sorted and written
    read     a partial is joined with an eager window
    answer   a merged row of an eager window is written
    part     a node that eager windows are merged from                          fixed

The overlap factor Ω of Eq. 1 is gone, as the pyramid covers a window by few partials: what the paper
pays for reading, Weft pays for writing levels, whether windows are read or not.

Law: a tree's cost never falls when its panes become finer or it holds more.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from weft.optimizer.weave.cost import Load, Number, Stream

RADIX = 4  # of the pyramid, as in logical/panes.py
LEVELS = 16


@dataclass(frozen=True, slots=True)
class BatchCosts:
    """Milliseconds. `weft calibrate` measures them; batches refine them as they run.

    As shipped: `weft calibrate` on two cores that other work shared, Spark 4.3 with the JVM's first
    compiler only. How costs compare matters more than what they are.
    """

    batch: float = 475.0
    brought: float = 1.8e-3
    tree: float = 90.0
    node: float = 11.0
    row: float = 1.2e-3
    expand: float = 0.9e-3
    step: float = 0.8e-3
    cell: float = 3.2e-3
    read: float = 1.5e-3
    answer: float = 3.4e-3
    part: float = 230.0

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(each.name for each in fields(cls))

    def of(self, work: dict[str, Number]) -> Number:
        """The cost of counted work."""
        return sum(getattr(self, name) * amount for name, amount in work.items())


@dataclass(frozen=True, slots=True)
class EngineCosts:
    """Batch costs as a cost model of the optimiser: per tick, for trees of nodes (see kinds.py).

    Trees that are alike in panes, levels and what they hold fold for the same: each such cost is
    kept, so that it is counted once in a whole weave.
    """

    costs: BatchCosts = BatchCosts()
    _known: dict[Stream, dict[complex, float]] = field(default_factory=dict, compare=False)
    is_even = True

    def tree(self, load: Load, stream: Stream) -> Number:
        reading = self.costs.of(reads_of(load, stream))
        return (self.folding(load, stream) + reading) / stream.batch

    def folding(self, load: Load, stream: Stream) -> Number:
        """What it costs to fold: looked up, or counted for all those that were never seen."""
        known = self._known.setdefault(stream, {})
        levels = levels_of(load.longest * load.edge_rate)
        alike = load.edge_rate + 1j * (np.asarray(load.cells) * (2 * LEVELS) + levels)
        if np.ndim(alike) == 0:
            if (name := complex(alike)) not in known:
                known[name] = float(self.costs.of(folds_of(load, stream)))
            return known[name]
        distinct, first, places = np.unique(alike, return_index=True, return_inverse=True)
        found = [known.get(name, -1.0) for name in distinct.tolist()]
        costs = np.array(found)
        new = np.flatnonzero(costs < 0)
        if len(new):
            at = first[new]
            each = Load(load.edge_rate[at], 0.0, 0.0, 0.0, load.longest[at], load.cells[at])
            costs[new] = self.costs.of(folds_of(each, stream))
            known.update(zip(distinct[new].tolist(), costs[new].tolist(), strict=True))
        return costs[places]

    def partials(self, load: Load, stream: Stream) -> Number:
        return folds_of(load, stream)["cell"] / stream.batch


def work_of(load: Load, stream: Stream) -> dict[str, Number]:
    """What a tree, or each of many, does in one batch, by what it is charged for."""
    return folds_of(load, stream) | reads_of(load, stream)


def reads_of(load: Load, stream: Stream) -> dict[str, Number]:
    """Merging windows as they close: about 1 + 2·log2 partials for each row of an answer."""
    rate = np.maximum(np.asarray(load.edge_rate, dtype=float), 1e-300)
    windows = np.asarray(load.window_rate) * stream.batch
    bits = np.asarray(load.window_bits) * stream.batch + windows * np.log2(rate)
    return {
        "read": windows + 2 * np.maximum(0.0, bits),
        "answer": windows,
        "part": (windows > 0).astype(float),
    }


def folds_of(load: Load, stream: Stream) -> dict[str, Number]:
    """Folding rows into cells and levels."""
    kinds, span, rows = stream.counts, stream.batch, stream.rate * stream.batch
    rate = np.asarray(load.edge_rate, dtype=float)
    roots = kinds.roots(load.cells)
    held = roots >= 0
    is_root = roots == np.arange(roots.shape[-1])
    levels = levels_of(np.asarray(load.longest) * rate)
    cells = _pieces(kinds, span * rate, rows)  # of level 0, by kind
    written = np.where(held, cells, 0.0).sum(-1)
    for level in range(1, LEVELS):
        has_level = levels > level
        if not np.any(has_level):
            break
        higher = np.where(held, _pieces(kinds, span * rate / RADIX**level, rows), 0.0)
        written = written + np.where(has_level, higher.sum(-1), 0.0)
    sources = np.take_along_axis(cells, np.maximum(roots, 0), axis=-1)
    steps = np.where(held, sources, 0.0).sum(-1) * levels
    is_plain = (held.sum(-1) == 1) & (levels == 1)  # cells are partials as they are
    sets = is_root.sum(-1)
    return {
        "tree": np.ones_like(rate),
        "node": held.sum(-1),
        "row": np.full_like(rate, rows),
        "expand": rows * np.where(sets > 1, sets, 0),
        "step": np.where(is_plain, 0.0, steps),
        "cell": written,
    }


def levels_of(panes: Number) -> Number:
    """Levels of the pyramid over windows of so many panes."""
    return 1 + np.floor(np.log2(np.maximum(panes, 1)) / np.log2(RADIX) + 1e-9)


def _pieces(kinds, pieces: Number, rows: float) -> np.ndarray:
    """The cells that rows make in all, if they are cut into so many pieces (and one cut by chance)."""
    pieces = np.asarray(pieces) + 1.0
    return pieces[..., None] * kinds.distinct(rows / pieces)
