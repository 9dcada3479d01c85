"""What a change of a network comes to, in words and in costs: for the log of weaves.

A plan is changed by the weaver, or because a query came that no node suited as it was. Either way
the log says what was done, why, and what a batch costs before and after, by what is known then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.optimizer.costing import Placed, network_cost, tree_of
from weft.optimizer.described import counted
from weft.optimizer.measures import Measures
from weft.optimizer.network import Network
from weft.optimizer.nodes import AggregateClass, LiveNode, Node
from weft.optimizer.placing import Placement

NAMED = 3  # queries that the log names


def placed(network: Network) -> list[Placed]:
    """The nodes of a network that fold, with the eager classes that read them."""
    readers = [(c.open_route.node_id, c.value) for c in network.eager()]
    return _placed(network.folding(), readers)


def placed_after(network: Network, placement: Placement) -> list[Placed]:
    """The same, as a placement will leave it."""
    nodes = [n for n in network.folding() if n.id not in placement.retired] + placement.made
    opened = {key: c.open_route for key, c in network.classes.items()}
    opened |= placement.routes | placement.moved
    eager = {c.value.key: c.value for c in network.eager()}
    eager |= {need.key: need.value for need in placement.needs if need.is_eager}
    return _placed(nodes, [(opened[key].node_id, value) for key, value in eager.items()])


def _placed(
    nodes: Iterable[LiveNode], readers: Iterable[tuple[int, AggregateClass]]
) -> list[Placed]:
    found: dict[int, list[AggregateClass]] = {}
    for node_id, value in readers:
        found.setdefault(node_id, []).append(value)
    return [Placed(n.id, n.node, n.parent_id, tuple(found.get(n.id, ()))) for n in nodes]


def trees_of(nodes: Iterable[Node]) -> int:
    return len({tree_of(node) for node in nodes if node.panes is not None})


def logged(
    network: Network, placement: Placement, measures: Measures, tick: int, why: str
) -> dict[str, object]:
    """A row of the log of weaves. The network is as it was before."""
    before, after = placed(network), placed_after(network, placement)
    return {
        "stream_id": network.stream_id, "tick": tick, "what": _told(network, placement), "why": why,
        "ms_before": network_cost(before, measures), "ms_after": network_cost(after, measures),
        "trees_before": trees_of(p.node for p in before),
        "trees_after": trees_of(p.node for p in after),
    }  # fmt: skip


def came(names: Sequence[str]) -> str:
    """That queries were registered, as a reason."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    few = ", ".join(names[:NAMED])
    return f"{counted(len(names), 'query')} came: {few}{more}; no node had all that is needed"


def _told(network: Network, placement: Placement) -> str:
    return (
        f"{len(placement.moved)} of {counted(len(network.classes), 'class')} read on from"
        f" other nodes; {counted(len(placement.made), 'node')} made,"
        f" {counted(len(placement.retired), 'node')} fold no more"
    )
