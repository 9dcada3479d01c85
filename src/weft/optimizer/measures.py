"""What was measured of a stream and of this machine: what the plans of a network are costed with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from weft.optimizer.nodes import Atom, Node
from weft.optimizer.profile import Profile
from weft.optimizer.weave.batch import BatchCosts
from weft.optimizer.weave.curves import GRID, Curve

SECOND = 1_000_000


@dataclass(frozen=True, eq=False)
class Measures:
    """A stream's batches, the counts of its columns, and what work costs here."""

    rows: float = 20_000.0  # of a batch
    span: float = 10.0 * SECOND  # event time that a batch covers, in microseconds
    profile: Profile = field(default_factory=Profile)
    costs: BatchCosts = field(default_factory=BatchCosts)
    is_measured: bool = False  # False: nothing has come yet
    bins: dict = field(init=False, default_factory=dict)  # costed by fusing.py, by what they are

    def curve(self, atoms: Iterable[Atom]) -> Curve:
        return self.profile.curve(atoms)

    def pieces(self, width: float) -> float:
        """Panes of a width that a batch touches, one of them cut by chance."""
        return self.span / width + 1

    def cells(self, node: Node, level: int = 0) -> float:
        """Partials that a batch writes to one level of a node."""
        if node.panes is None:
            return self.curve(node.columns).at(self.rows)
        pieces = self.pieces(node.panes.width * node.pyramid[level])
        return pieces * self.curve(node.columns).at(self.rows / pieces)

    def written(self, node: Node) -> float:
        """Partials that a batch writes to all levels of a node with panes."""
        pieces = self.span / (node.panes.width * np.array(node.pyramid, dtype=float)) + 1
        curve = self.curve(node.columns)
        return float((pieces * np.interp(self.rows / pieces, GRID, curve.values)).sum())
