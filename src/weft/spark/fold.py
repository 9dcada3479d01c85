"""Fold: a batch's rows → the partials of every node, in one job.

    rows ──group by (pane, columns of each root)──▶ cells
    cells ──to the root's levels and its children──▶ group by (node, level, pane, columns)──▶ partials

Why: a row is read once, however many queries there are. The roots of one set of panes are the
grouping sets of one aggregation; what rolls up from them, to fewer columns and to wider panes, is a
second one over cells, which are few.
Source: ARGUS Algorithm 1, step 1, and §3.3 (vertical expansion); Weave Share's sub-aggregation, §3.2.
Compilers only: DataFrames in, a DataFrame out. The plan's shape depends on the panes in use; nodes
are rows of a constant array, and queries only add constants to the signature (see signature.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.logical.statistics import Statistic
from weft.optimizer.nodes import LiveNode, Node
from weft.spark.constants import with_constants
from weft.spark.rows import TIME, quote
from weft.spark.signature import with_signature

NODE, LEVEL, PANE, VERSION = "_weft_node", "_weft_level", "_weft_pane", "_weft_version"
SET, STEP = "_weft_set", "_weft_step"


def fold(rows: DataFrame, nodes: Sequence[LiveNode], evaluation: int) -> DataFrame | None:
    """The partials that rows add to nodes; None if there is no node.

    Every node's parent is among the nodes. The evaluation is the pane of nodes without panes and
    the version of every partial.
    """
    found = [_fold_family(rows, family, nodes, evaluation) for family in families(nodes)]
    return _union(found, evaluation) if found else None


def families(nodes: Sequence[LiveNode]) -> list[list[LiveNode]]:
    """Roots that are folded together: of the same panes, but those with states of no fixed width
    by themselves, since they make Spark sort the whole aggregation."""
    groups: dict[tuple, list[LiveNode]] = defaultdict(list)
    for live in nodes:
        if live.parent_id is None:
            is_heavy = not all(s.is_light for s in live.node.statistics)
            key = live.node.panes, live.node.apart, live.id if is_heavy else None
            groups[key].append(live)
    return list(groups.values())


def _fold_family(
    rows: DataFrame, roots: list[LiveNode], nodes: Sequence[LiveNode], evaluation: int
) -> DataFrame:
    columns = list(dict.fromkeys(name for r in roots for name in r.node.column_names()))
    statistics = {s.column: s for r in roots for s in r.node.statistics}
    cells = _cells(rows, roots, columns, statistics, evaluation)
    outputs = [(root, live) for root in roots for live in below(root, nodes)]
    if len(outputs) == 1 and len(roots[0].node.pyramid) == 1:
        return _placed(cells, roots[0])
    wide = cells.withColumn(STEP, F.explode(F.expr(_steps(outputs, columns))))
    masked = [F.when(F.col(f"{STEP}.{c}"), F.col(c)).alias(c) for c in columns]
    wide = wide.select(
        F.col(f"{STEP}.node").alias(NODE),
        F.col(f"{STEP}.level").alias(LEVEL),
        F.expr(_pane_sql(outputs)).alias(PANE),
        *masked,
        *statistics,
    )
    return _merge(wide, [NODE, LEVEL, PANE, *columns], statistics)


def _cells(
    rows: DataFrame,
    roots: list[LiveNode],
    columns: list[str],
    statistics: dict[str, Statistic],
    evaluation: int,
) -> DataFrame:
    """One row for each pane and value of a root's columns, marked with the root's grouping set."""
    atoms = {atom.column: atom for r in roots for atom in r.node.columns}
    signature = {atom.column: atom for r in roots for atom in r.node.signature()}
    rows = with_signature(rows, list(signature.values()))
    dimensions = {n: F.expr(a.expression) for n, a in atoms.items() if n not in signature}
    rows = _with_pane(rows.withColumns(dimensions), roots[0].node, evaluation)
    made = [F.expr(s.fold).alias(name) for name, s in statistics.items()]
    made = made or [F.count(F.lit(1)).alias("_weft_n")]  # groups without statistics
    sets = list(
        dict.fromkeys(root.node.column_names() for root in roots)
    )  # twice would count twice
    if len(sets) == 1:
        cells = rows.groupBy(PANE, *columns).agg(*made)
        return cells.withColumn(SET, F.lit(_set_of(roots[0].node, columns)).cast("bigint"))
    grouped = rows.groupingSets([[PANE, *names] for names in sets], PANE, *columns)
    return grouped.agg(F.grouping_id().alias(SET), *made)


def _set_of(node: Node, columns: list[str]) -> int:
    """Spark's grouping_id of a root: a bit for each column that it does not group by."""
    bits = ["0" if name in node.column_names() else "1" for name in columns]
    return int("0" + "".join(bits), 2)


def _with_pane(rows: DataFrame, node: Node, evaluation: int) -> DataFrame:
    if node.panes is None:
        return with_constants(rows, **{PANE: evaluation})
    width, micros = f"{node.panes.width}L", f"(unix_micros({TIME}) - {node.panes.offset}L)"
    pane = f"({micros} - pmod({micros}, {width})) div {width}"  # rounds down before 1970 too
    return rows.withColumn(PANE, F.expr(pane))


def below(root: LiveNode, nodes: Sequence[LiveNode]) -> list[LiveNode]:
    """A root and everything that is computed from it."""
    found = [root]
    for live in found:
        found += [n for n in nodes if n.parent_id == live.id]
    return found


def _steps(outputs: list[tuple[LiveNode, LiveNode]], columns: list[str]) -> str:
    """For each grouping set, an array of what its cells contribute to: node, level, columns kept.

    As one text, which Spark parses in a moment: as expressions, each literal was a trip to the JVM.
    """
    by_set: dict[int, list[str]] = defaultdict(list)
    for root, live in outputs:
        names = live.node.column_names()
        kept = "".join(f", {str(c in names).lower()} AS {quote(c)}" for c in columns)
        for level, width in enumerate(live.node.pyramid):
            step = f"{live.id}L AS node, {level} AS level, {width}L AS width"
            step += f", {_coarser(root.node, live.node)}{kept}"
            by_set[_set_of(root.node, columns)].append(f"struct({step})")
    cases = (f"WHEN {SET} = {number} THEN array({', '.join(s)})" for number, s in by_set.items())
    return f"CASE {' '.join(cases)} END"


def _coarser(root: Node, node: Node) -> str:
    """How a pane of the root becomes one of a node with wider panes (a factor window)."""
    if root.panes is None:
        shift, ratio = 0, 1
    else:
        shift = (node.panes.offset - root.panes.offset) // root.panes.width
        ratio = node.panes.width // root.panes.width
    return f"{shift}L AS shift, {ratio}L AS ratio"


def _pane_sql(outputs: list[tuple[LiveNode, LiveNode]]) -> str:
    pane = PANE
    if any(root.node.panes != live.node.panes for root, live in outputs):
        shifted = f"({PANE} - {STEP}.shift)"
        pane = f"(({shifted} - pmod({shifted}, {STEP}.ratio)) div {STEP}.ratio)"
    return f"{pane} - pmod({pane}, {STEP}.width)"


def merged(cells: DataFrame, node: Node, keys: list[str]) -> DataFrame:
    """Cells merged by the node's columns and some keys."""
    statistics = {s.column: s for s in node.statistics}
    return _merge(cells, [*keys, *node.column_names()], statistics)


def _merge(cells: DataFrame, keys: list[str], statistics: dict[str, Statistic]) -> DataFrame:
    grouped = cells.groupBy(*keys)
    if not statistics:
        return grouped.agg(F.count(F.lit(1)).alias("_weft_n")).drop("_weft_n")
    return grouped.agg(*[F.expr(s.merged()).alias(name) for name, s in statistics.items()])


def _placed(cells: DataFrame, live: LiveNode) -> DataFrame:
    """Cells as partials of level 0 of a node."""
    node = F.lit(live.id).cast("bigint")
    return cells.drop(SET, "_weft_n").withColumn(NODE, node).withColumn(LEVEL, F.lit(0))


def filled(cells: DataFrame, live: LiveNode, evaluation: int) -> DataFrame:
    """The partials of one node whose cells are given."""
    found = [_placed(cells, live)]
    above = [(i, width) for i, width in enumerate(live.node.pyramid) if i > 0]
    if above:
        steps = F.array(*[F.struct(F.lit(i).alias("i"), F.lit(w).alias("w")) for i, w in above])
        wide = cells.withColumn(STEP, F.explode(steps)).withColumn(LEVEL, F.col(f"{STEP}.i"))
        wide = wide.withColumn(PANE, F.expr(f"{PANE} - pmod({PANE}, {STEP}.w)"))
        higher = merged(wide, live.node, [LEVEL, PANE])
        found.append(higher.withColumn(NODE, F.lit(live.id).cast("bigint")))
    return _union(found, evaluation)


def _union(found: list[DataFrame], evaluation: int) -> DataFrame:
    union = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), found)
    return with_constants(union, **{VERSION: evaluation})
