"""The weave in EXPLAIN: what a class's tree and the whole plan cost, by Spark's costs and the paper's.

All of it is arithmetic over what the catalog knows: the nodes that fold, the newest batches, the
sample of the stream, the costs that were measured. Source: Weave Share, Eq. 1 and 3; the design's
second cost model.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.catalog.records import StreamRecord, to_instant
from weft.catalog.view import View
from weft.engine.measuring import COSTS, load_measures
from weft.logical.windows import instant
from weft.optimizer.changing import placed
from weft.optimizer.costing import total, tree_of, work_by_tree
from weft.optimizer.described import counted, panes_text
from weft.optimizer.measures import Measures
from weft.optimizer.network import Network
from weft.optimizer.nodes import LiveClass, LiveNode, Node
from weft.optimizer.placing import homes_of, needs_of
from weft.optimizer.weave.cost import PaperCosts
from weft.optimizer.weave.plan import plan_of, tree_cost
from weft.optimizer.weaving import Weaving

INDENT = " " * 11


@dataclass(frozen=True, slots=True)
class WeaveExplained:
    """Costs of the tree that a class is in, and of the plan."""

    panes: str
    classes: int  # in the tree
    trees: int  # in the plan
    tree_ms: float  # a batch, by Spark's costs
    plan_ms: float
    tree_operations: float  # a second of event time, by the paper's
    plan_operations: float
    rows: float  # of a batch, for which it is costed
    seconds: float  # of event time in a batch
    is_measured: bool  # False: no batch has come yet, and rows are assumed
    is_sampled: bool  # False: counts of groups are guessed
    is_calibrated: bool  # False: costs as shipped
    fed_by: int | None  # the node with finer panes that the tree is computed from
    apart: str | None  # which nodes with the same dimensions are kept apart, and why
    changed: str | None  # the last change of the plan


def explain_weave(
    view: View, stream: StreamRecord, network: Network, found: LiveClass
) -> WeaveExplained | None:
    """None for a class without panes."""
    live = network.nodes[found.open_route.node_id]
    if live.node.panes is None:
        return None
    measures = load_measures(view, stream)
    work = work_by_tree(placed(network), measures)
    mine = {key for key, home in homes_of(network).items() if _is_in(home, live)}
    operations, all_operations = _paper(network, measures, found.value.key)
    return WeaveExplained(
        panes=panes_text(live.node),
        classes=len(mine),
        trees=len(work),
        tree_ms=float(measures.costs.of(work[tree_of(live.node)])) if _folds(live) else 0.0,
        plan_ms=float(total(work.values(), measures.costs)),
        tree_operations=operations,
        plan_operations=all_operations,
        rows=measures.rows,
        seconds=measures.span / 1e6,
        is_measured=measures.is_measured,
        is_sampled=len(measures.profile) > 0,
        is_calibrated=view.fact(COSTS) is not None,
        fed_by=_fed_by(network, live),
        apart=_apart(network, live, measures),
        changed=_changed(view, stream.id),
    )


def _folds(live: LiveNode) -> bool:
    return live.retired_tick is None


def _is_in(home, live: LiveNode) -> bool:
    return (home.panes, home.apart) == (live.node.panes, live.node.apart)


def _paper(network: Network, measures: Measures, key: str) -> tuple[float, float]:
    """Eq. 1 of the class's tree and Eq. 3 of the plan, in aggregate operations a second."""
    needs = {k: n for k, n in needs_of(network).items() if n.value.window is not None}
    weaving = Weaving(measures, forced="shared")  # which nodes there are does not matter here
    asked = list(needs.values())
    queries = weaving.queries(asked, weaving.kinds(asked))
    seen, stream = weaving.paper_view(queries, asked)
    named, homes = {query.id: query for query in seen}, homes_of(network)
    trees: dict[object, list[str]] = {}
    for each in named:
        trees.setdefault(homes[each], []).append(each)
    seconds = measures.span / stream.batch / 1e6  # of one tick
    costs = {
        tree: tree_cost(tree, named, stream, PaperCosts()).cost / seconds
        for tree in plan_of(trees.values())
    }
    return next(cost for tree, cost in costs.items() if key in tree), sum(costs.values())


def _fed_by(network: Network, live: LiveNode) -> int | None:
    while live.parent_id is not None and live.parent_id in network.nodes:
        parent = network.nodes[live.parent_id]
        if parent.node.panes != live.node.panes:
            return parent.id
        live = parent
    return None


def _apart(network: Network, live: LiveNode, measures: Measures) -> str | None:
    """Nodes that test other expressions over the same dimensions, and what one for all would be."""
    alike = [n for n in network.folding() if _is_alike(n.node, live.node)]
    if len(alike) < 2:
        return None
    columns = {atom.column: atom for n in alike for atom in n.node.columns}
    pieces = measures.pieces(live.node.panes.width)
    together = pieces * measures.curve(columns.values()).at(measures.rows / pieces)
    each = sum(measures.cells(n.node) for n in alike)
    others = ", ".join(f"node {n.id}" for n in alike if n.id != live.id)
    return (
        f"apart from {others}: one node for their predicates would write"
        f" {together:,.0f} partials a batch, they write {each:,.0f}"
    )


def _is_alike(one: Node, other: Node) -> bool:
    """Over the same dimensions and panes, neither computed from the other."""
    same = tree_of(one) == tree_of(other) and one.is_versioned == other.is_versioned
    if not same or one.dimensions() != other.dimensions():
        return False
    mine, theirs = set(one.column_names()), set(other.column_names())
    return mine == theirs or not (mine < theirs or theirs < mine)


def _changed(view: View, stream_id: int) -> str | None:
    for row in view.weaves(stream_id, 1):
        at = instant(to_instant(row.at))
        return (
            f"{at}: {row.what}; {row.why} ({row.ms_before:,.0f} → {row.ms_after:,.0f} ms a batch)"
        )
    return None


def weave_lines(found: WeaveExplained) -> list[str]:
    source = "costs measured here" if found.is_calibrated else "costs as shipped"
    counts = "groups from a sample" if found.is_sampled else "groups guessed"
    batch = f"{found.rows:,.0f} rows over {found.seconds:,.4g} s"
    batch = f"batches of {batch}" if found.is_measured else f"batches assumed to have {batch}"
    lines = [
        f"weave      {counted(found.classes, 'class')} on {found.panes}:"
        f" {found.tree_ms:,.1f} ms a batch; by the paper {found.tree_operations:,.0f} operations/s",
        f"{INDENT}plan of {counted(found.trees, 'tree')}:"
        f" {found.plan_ms:,.1f} ms a batch; by the paper {found.plan_operations:,.0f} operations/s",
        f"{INDENT}{batch}; {counts}; {source}",
    ]
    if found.fed_by is not None:
        lines.append(f"{INDENT}fed by finer panes: the cells of node {found.fed_by}, not the rows")
    if found.apart is not None:
        lines.append(f"{INDENT}{found.apart}")
    if found.changed is not None:
        lines.append(f"{INDENT}last change {found.changed}")
    return lines
