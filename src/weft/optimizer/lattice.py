"""The dimension lattice: which nodes to keep for a set of classes, and what each derives from.

Why: a thousand classes need a handful of relations of partials; each class reads the smallest node
that has its dimensions, signature columns and statistics, and each node is computed from the
smallest node above it rather than from the rows.
Source: ARGUS §3.3 (vertical expansion from the smallest sufficient parent, horizontal expansion to
add a missing statistic, rerouting); Weave Share §3.2 (windows share panes).
Differs: signature columns are dimensions like any other, so that predicates take part in the same
lattice (Weave Share §5.3 keeps them apart). Which classes share panes, and which signature columns a
node, the weave optimiser says (weaving.py); sizes are measured (profile.py). A node may also be
computed from one with finer panes (feeding.py).
Sound because a node's statistics merge: rolling up its cells by fewer columns, or by wider panes, is
merging them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.logical.panes import RADIX, longest, pyramid
from weft.logical.statistics import Statistic
from weft.optimizer.fusing import SMALL
from weft.optimizer.measures import Measures
from weft.optimizer.need import Need
from weft.optimizer.nodes import AggregateClass, Atom, LiveNode, Node
from weft.optimizer.predicates import Condition, condition_over, signatures
from weft.optimizer.weaving import Home

TOP_NODES = 64  # a window may take this many nodes of the highest level before it is built higher
EAGER_RADIX = 2  # twice the levels to fold, half the partials a window


@dataclass(frozen=True, slots=True, eq=False)
class PlannedNode:
    """A node to keep, the one it derives from (by position; None: the rows), and who reads it."""

    node: Node
    parent: int | None
    conditions: Mapping[str, Condition]  # class key → its test on the signature columns
    eager: tuple[AggregateClass, ...] = ()  # those whose windows are merged as they fall due


def choose(
    nodes: Iterable[LiveNode], need: Need, measures: Measures | None = None
) -> tuple[LiveNode, Condition] | None:
    """The smallest of some nodes, which fold and have the past that a need asks for, that answers
    it as it is; None if one must be made."""
    found = []
    for live in nodes:
        condition = suits(live.node, need)
        if condition is None:
            continue
        extra = len(live.node.columns) - len(_columns(need, condition))
        cells = live.cells
        if not cells and measures is not None and measures.is_measured:
            cells = measures.cells(live.node)
        if extra == 0 or 0 < cells <= SMALL:
            found.append((extra, cells, live.id, live, condition))
    if not found:
        return None
    *_, live, condition = min(found, key=lambda f: f[:3])
    return live, condition


def _columns(need: Need, condition: Condition) -> set[str]:
    return {d.column for d in need.value.dimensions} | set(condition.columns)


def suits(node: Node, need: Need) -> Condition | None:
    """The class's test on the node's signature columns, if the node can answer it."""
    value = need.value
    if node.is_versioned != value.is_versioned or not _panes_suit(node, value):
        return None
    if not {d.column for d in value.dimensions} <= set(node.column_names()):
        return None
    if not {s.column for s in need.statistics} <= {s.column for s in node.statistics}:
        return None
    return condition_over(node.signature(), value.predicate)


def _panes_suit(node: Node, value: AggregateClass) -> bool:
    if node.panes is None or value.window is None:
        return node.panes is None and value.window is None
    top = node.panes.width * node.pyramid[-1]
    return node.panes.fits(value.window) and longest(value.window) <= TOP_NODES * top


def node_for(home: Home | None, group: list[Need]) -> PlannedNode:
    panes = None if home is None else home.panes
    found = signatures([need.value.predicate for need in group])
    columns: dict[str, Atom] = {d.column: d for d in group[0].value.dimensions}
    columns |= {atom.column: atom for atom in found.atoms}
    statistics = {s.key: s for need in group for s in need.statistics}
    levels = (1,)
    if panes is not None:
        radix = EAGER_RADIX if any(need.is_eager for need in group) else RADIX
        levels = pyramid(panes, max(need.value.longest for need in group), radix)
    node = Node(
        panes,
        levels,
        tuple(columns[name] for name in sorted(columns)),
        tuple(statistics[key] for key in sorted(statistics)),
        group[0].value.is_versioned,
        0 if home is None else home.apart,
    )
    conditions = {n.key: found.conditions[n.value.predicate.key] for n in group}
    eager = tuple(need.value for need in group if need.is_eager)
    return PlannedNode(node, None, conditions, eager)


def derived(planned: list[PlannedNode], measures: Measures) -> tuple[PlannedNode, ...]:
    """Give each node the smallest parent; a parent takes on the statistics of its children."""
    order = sorted(planned, key=lambda p: -len(p.node.columns))
    parents: list[int | None] = []
    above: dict[tuple, list[int]] = defaultdict(list)  # nodes of the same panes, most columns first
    for i, item in enumerate(order):
        alike = above[item.node.panes, item.node.apart, item.node.is_versioned]
        parents.append(_parent_of(order, i, alike, measures))
        alike.append(i)
    return with_parents(order, parents)


def with_parents(
    order: Sequence[PlannedNode], parents: Sequence[int | None]
) -> tuple[PlannedNode, ...]:
    """The nodes with their parents, which come before them and take on their statistics."""
    nodes = [p.node for p in order]
    for i in reversed(range(len(order))):  # children before their parents
        if parents[i] is not None:
            nodes[parents[i]] = _with_statistics(nodes[parents[i]], nodes[i].statistics)
    return tuple(
        replace(p, node=node, parent=parent)
        for node, parent, p in zip(nodes, parents, order, strict=True)
    )


def _parent_of(
    order: list[PlannedNode], i: int, alike: list[int], measures: Measures
) -> int | None:
    names = set(order[i].node.column_names())
    found = [j for j in alike if names < set(order[j].node.column_names())]
    return min(found, key=lambda j: measures.cells(order[j].node), default=None)


def _with_statistics(node: Node, more: Sequence[Statistic]) -> Node:
    """Horizontal expansion."""
    found = {s.key: s for s in (*node.statistics, *more)}
    return replace(node, statistics=tuple(found[key] for key in sorted(found)))
