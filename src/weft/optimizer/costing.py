"""What a network costs a batch, node by node: for EXPLAIN, and to choose between whole plans.

The optimiser's model (weave/batch.py) looks at trees while it merges them; here the nodes are
known, with what each is computed from. The same work is counted, at the same prices.
A *tree* is what shares one set of panes. One that is fed by another's cells (a factor window) reads
no rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2

from weft.logical.panes import Panes, hopping_of, longest
from weft.logical.windows import Cumulating, microseconds
from weft.optimizer.measures import Measures
from weft.optimizer.nodes import AggregateClass, Node
from weft.optimizer.weave.batch import BatchCosts

TreeKey = tuple[Panes, int]
Work = dict[str, float]


@dataclass(frozen=True, slots=True)
class Placed:
    """A node in a network or in a plan, with the number of the one it is computed from."""

    id: int
    node: Node
    parent: int | None
    readers: tuple[AggregateClass, ...] = ()  # eager ones


def tree_of(node: Node) -> TreeKey:
    return node.panes, node.apart


def work_by_tree(
    nodes: Sequence[Placed], measures: Measures, above: Mapping[int, Placed] | None = None
) -> dict[TreeKey, Work]:
    """The work of each tree of paned nodes in one batch. `above`: what they are computed from, if
    the nodes are not all there are."""
    paned = {placed.id: placed for placed in nodes if placed.node.panes is not None}
    families: dict[TreeKey, list[Placed]] = defaultdict(list)
    for placed in paned.values():
        families[tree_of(placed.node)].append(placed)
    return {key: _work(members, above or paned, measures) for key, members in families.items()}


def _work(members: list[Placed], paned: Mapping[int, Placed], measures: Measures) -> Work:
    sets = {m.node.column_names() for m in members if m.parent is None and _is_light(m.node)}
    heavy = sum(m.parent is None and not _is_light(m.node) for m in members)
    passes = (1 if sets else 0) + heavy
    work = {
        "tree": float(passes),
        "node": float(len(members)),
        "row": measures.rows * passes,
        "expand": measures.rows * (len(sets) if len(sets) > 1 else 0),
        "step": 0.0, "cell": 0.0, "read": 0.0, "answer": 0.0, "part": 0.0,
    }  # fmt: skip
    is_plain = len(members) == 1 and passes == 1 and len(members[0].node.pyramid) == 1
    for placed in members:
        node = placed.node
        if not is_plain:
            work["step"] += measures.cells(_root(placed, paned).node) * len(node.pyramid)
        work["cell"] += measures.written(node)
        work["part"] += len({value.dimensions for value in placed.readers})
        for value in placed.readers:
            _add_reads(work, value, node, measures)
    return work


def _is_light(node: Node) -> bool:
    return all(s.is_light for s in node.statistics)


def _root(placed: Placed, paned: Mapping[int, Placed]) -> Placed:
    while placed.parent is not None:
        placed = paned[placed.parent]
    return placed


def _add_reads(work: Work, value: AggregateClass, node: Node, measures: Measures) -> None:
    window = hopping_of(value.window)
    step = microseconds(window.step if isinstance(window, Cumulating) else window.slide)
    length = longest(window)
    windows = measures.span / step
    groups = measures.curve(value.dimensions).at(measures.rows * length / measures.span)
    per_pane = measures.curve(node.columns).at(measures.rows / measures.pieces(node.panes.width))
    work["answer"] += windows * groups
    work["read"] += windows * per_pane * covered(length / node.panes.width)


def covered(panes: float) -> float:
    """Partials that cover a window of so many panes, about: 1 + 2·log2."""
    return 1 + 2 * log2(max(panes, 1))


def total(work: Iterable[Work], costs: BatchCosts) -> float:
    """Milliseconds a batch."""
    return sum(costs.of(each) for each in work)


def network_cost(nodes: Sequence[Placed], measures: Measures) -> float:
    return total(work_by_tree(nodes, measures).values(), measures.costs)
