"""The dimension lattice: which nodes to keep for a set of classes, and what each derives from.

Why: a thousand classes need a handful of relations of partials; each class reads the smallest node
that has its dimensions, signature columns and statistics, and each node is computed from the
smallest node above it rather than from the rows.
Source: ARGUS §3.3 (vertical expansion from the smallest sufficient parent, horizontal expansion to
add a missing statistic, rerouting); Weave Share §3.2 (windows share panes).
Differs: signature columns are dimensions like any other, so that predicates take part in the same
lattice (Weave Share §5.3 keeps them apart); a window's classes share panes up to a bound on how
much finer the shared panes may be than their own (`FINER`); the weave optimiser is not asked yet.
Sound because a node's statistics merge: rolling up its cells by fewer columns, or by wider panes, is
merging them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.logical.panes import RADIX, Panes, joined, longest, panes_of, pyramid
from weft.logical.statistics import Dimension, Statistic
from weft.optimizer.nodes import AggregateClass, Atom, LiveNode, Node
from weft.optimizer.predicates import (
    Condition,
    Predicate,
    Ranking,
    condition_over,
    signatures,
)

FINER = 16  # shared panes may be this many times finer than a window's own
TOP_NODES = 64  # a window may take this many nodes of the highest level before it is built higher
EAGER_RADIX = 2  # twice the levels to fold, half the partials a window
GUESS = 1000  # values of a dimension
SMALL = 20_000  # cells a batch that are as quick to roll up when read as to keep rolled up


@dataclass(frozen=True, slots=True)
class Need:
    """What a class needs of a node."""

    value: AggregateClass
    statistics: tuple[Statistic, ...]
    is_eager: bool = False  # its windows are merged as they fall due, so fewer nodes a window pay

    @property
    def key(self) -> str:
        return self.value.key


@dataclass(frozen=True, slots=True, eq=False)
class PlannedNode:
    """A node to keep, the one it derives from (by position; None: the rows), and who reads it."""

    node: Node
    parent: int | None
    conditions: Mapping[str, Condition]  # class key → its test on the signature columns


def choose(nodes: Iterable[LiveNode], need: Need) -> tuple[LiveNode, Condition] | None:
    """The smallest live node that answers a need as it is; None if one must be made."""
    found = []
    for live in nodes:
        condition = suits(live.node, need) if _is_whole(live) else None
        if condition is None:
            continue
        extra = len(live.node.columns) - len(_columns(need, condition))
        if extra == 0 or 0 < live.cells <= SMALL:
            found.append((extra, live.cells, live.id, live, condition))
    if not found:
        return None
    *_, live, condition = min(found, key=lambda f: f[:3])
    return live, condition


def _is_whole(live: LiveNode) -> bool:
    return live.retired_tick is None and live.born_tick == 0


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


def plan_nodes(needs: Sequence[Need], live: Sequence[LiveNode] = ()) -> tuple[PlannedNode, ...]:
    """The nodes for a set of classes, each after the node it derives from."""
    groups = _group(needs, [n.node.panes for n in live if n.node.panes and _is_whole(n)])
    planned = [_plan(panes, group) for panes, group in groups]
    return _derive(planned)


Group = tuple[Panes | None, list[Need]]


def _group(needs: Sequence[Need], present: list[Panes]) -> list[Group]:
    """Classes that share a node: same panes, dimensions, signature expressions, versioning."""
    home = share_panes({panes_of(n.value.window) for n in needs if n.value.window}, present)
    groups: dict[tuple, Group] = {}
    for need in needs:
        value = need.value
        panes = home[panes_of(value.window)] if value.window else None
        dimensions = tuple(sorted(d.column for d in value.dimensions))
        asked = signature_of(value.predicate)
        key = (panes, value.is_versioned, dimensions, asked)
        groups.setdefault(key, (panes, []))[1].append(need)
    return list(groups.values())


def signature_of(predicate: Predicate) -> frozenset[str]:
    """The expressions whose rank or truth a predicate asks for."""
    return frozenset(atom.key for atom in signatures([predicate]).atoms)


def share_panes(wanted: set[Panes], present: Iterable[Panes] = ()) -> dict[Panes, Panes]:
    """Panes for each window's own panes: shared where that makes them little finer."""
    trees: list[Panes] = sorted(set(present), key=lambda p: (-p.width, p.offset))
    for panes in sorted(wanted, key=lambda p: (-p.width, p.offset)):
        fitting = [t for t in trees if joined(t, panes) == t and t.width * FINER >= panes.width]
        if fitting:
            continue
        for i, tree in enumerate(trees):
            both = joined(tree, panes)
            if both.width * FINER >= max(tree.width, panes.width):
                trees[i] = both
                break
        else:
            trees.append(panes)
    home = {}
    for panes in wanted:
        fitting = [t for t in trees if joined(t, panes) == t]
        home[panes] = max(fitting, key=lambda t: (t.width, -t.offset))
    return home


def _plan(panes: Panes | None, group: list[Need]) -> PlannedNode:
    found = signatures([need.value.predicate for need in group])
    columns: dict[str, Atom] = {d.column: d for d in group[0].value.dimensions}
    columns |= {atom.column: atom for atom in found.atoms}
    statistics = {s.key: s for need in group for s in need.statistics}
    levels = (1,)
    if panes is not None:
        radix = EAGER_RADIX if any(need.is_eager for need in group) else RADIX
        levels = pyramid(panes, max(longest(need.value.window) for need in group), radix)
    node = Node(
        panes,
        levels,
        tuple(columns[name] for name in sorted(columns)),
        tuple(statistics[key] for key in sorted(statistics)),
        group[0].value.is_versioned,
    )
    conditions = {n.key: found.conditions[n.value.predicate.key] for n in group}
    return PlannedNode(node, None, conditions)


def _derive(planned: list[PlannedNode]) -> tuple[PlannedNode, ...]:
    """Give each node the smallest parent; a parent takes on the statistics of its children."""
    order = sorted(planned, key=lambda p: -len(p.node.columns))
    parents: list[int | None] = [_parent_of(order, i) for i in range(len(order))]
    nodes = [p.node for p in order]
    for i in reversed(range(len(order))):  # children before their parents
        if parents[i] is not None:
            nodes[parents[i]] = _with_statistics(nodes[parents[i]], nodes[i].statistics)
    return tuple(
        PlannedNode(node, parent, p.conditions)
        for node, parent, p in zip(nodes, parents, order, strict=True)
    )


def _parent_of(order: list[PlannedNode], i: int) -> int | None:
    node = order[i].node
    names = set(node.column_names())
    found = [
        j
        for j in range(i)
        if order[j].node.panes == node.panes
        and order[j].node.is_versioned == node.is_versioned
        and names < set(order[j].node.column_names())
    ]
    return min(found, key=lambda j: guessed_size(order[j].node), default=None)


def guessed_size(node: Node) -> int:
    """How many cells a pane may have, before anything was measured: an order, not a figure."""
    size = 1
    for atom in node.columns:
        if isinstance(atom, Ranking):
            size *= len(atom.cuts) + 1
        else:
            size *= GUESS if isinstance(atom, Dimension) else 2
    return size


def _with_statistics(node: Node, more: Sequence[Statistic]) -> Node:
    """Horizontal expansion."""
    found = {s.key: s for s in (*node.statistics, *more)}
    return replace(node, statistics=tuple(found[key] for key in sorted(found)))
