"""Fold: a batch's rows → the partials of every node, in one job.

    rows ──group by (pane, columns)──▶ cells of a node ──roll up──▶ cells of its children
                                            └──widen──▶ the levels above

Why: a row is read once, however many queries there are; a roll-up starts from its parent's cells.
Source: ARGUS Algorithm 1, step 1, and §3.3; Weave Share's sub-aggregation, §3.2.
Compilers only: DataFrames in, a DataFrame out. The plan's shape depends on the nodes, which are
few; queries only add constants to the signature (see signature.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.logical.statistics import Dimension
from weft.optimizer.nodes import LiveNode, Node
from weft.spark.rows import TIME
from weft.spark.signature import with_signature

NODE, LEVEL, PANE, VERSION = "_weft_node", "_weft_level", "_weft_pane", "_weft_version"


def fold(rows: DataFrame, nodes: Sequence[LiveNode], evaluation: int) -> DataFrame | None:
    """The partials that rows add to nodes; None if there is no node.

    Every node's parent is among the nodes. The evaluation is the pane of nodes without panes and
    the version of versioned ones.
    """
    cells: dict[int, DataFrame] = {}
    found = []
    for live in parents_first(nodes):
        if live.parent_id is None:
            cells[live.id] = from_rows(rows, live.node, evaluation)
        else:
            cells[live.id] = merged(cells[live.parent_id], live.node, [PANE])
        found += levels(cells[live.id], live)
    return _union(found, evaluation) if found else None


def filled(cells: DataFrame, live: LiveNode, evaluation: int) -> DataFrame:
    """The partials of one node whose cells are given."""
    return _union(levels(cells, live), evaluation)


def _union(found: list[DataFrame], evaluation: int) -> DataFrame:
    union = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), found)
    return union.withColumn(VERSION, F.lit(evaluation).cast("bigint"))


def parents_first(nodes: Sequence[LiveNode]) -> list[LiveNode]:
    rest, done, order = list(nodes), {None}, []
    while rest:
        ready = [n for n in rest if n.parent_id in done]
        order += ready
        done |= {n.id for n in ready}
        rest = [n for n in rest if n.id not in done]
    return order


def from_rows(rows: DataFrame, node: Node, evaluation: int) -> DataFrame:
    atoms = [atom for atom in node.columns if not isinstance(atom, Dimension)]
    rows = with_signature(rows, atoms)
    dimensions = [atom for atom in node.columns if isinstance(atom, Dimension)]
    rows = rows.withColumns({d.column: F.expr(d.expression) for d in dimensions})
    rows = rows.withColumn(PANE, pane_of(node, evaluation))
    grouped = rows.groupBy(PANE, *node.column_names())
    return _aggregate(grouped, {s.column: s.fold for s in node.statistics})


def pane_of(node: Node, evaluation: int) -> F.Column:
    if node.panes is None:
        return F.lit(evaluation).cast("bigint")
    width, micros = f"{node.panes.width}L", f"(unix_micros({TIME}) - {node.panes.offset}L)"
    return F.expr(
        f"({micros} - pmod({micros}, {width})) div {width}"
    )  # rounds down before 1970 too


def merged(cells: DataFrame, node: Node, keys: list[str]) -> DataFrame:
    """Cells merged by the node's columns and some keys."""
    grouped = cells.groupBy(*keys, *node.column_names())
    return _aggregate(grouped, {s.column: s.merged() for s in node.statistics})


def _aggregate(grouped, made: dict[str, str]) -> DataFrame:
    if not made:  # groups without statistics: SELECT k … GROUP BY k
        return grouped.agg(F.count(F.lit(1)).alias("_weft_n")).drop("_weft_n")
    return grouped.agg(*[F.expr(sql).alias(name) for name, sql in made.items()])


def levels(cells: DataFrame, live: LiveNode) -> list[DataFrame]:
    """The cells as partials of level 0, and merged to the levels above."""
    node = live.node
    found = [cells.withColumn(LEVEL, F.lit(0))]
    above = [(i, width) for i, width in enumerate(node.pyramid) if i > 0]
    if above:
        steps = F.array(*[F.struct(F.lit(i).alias("i"), F.lit(w).alias("w")) for i, w in above])
        wide = cells.withColumn("_weft_step", F.explode(steps))
        wide = wide.withColumn(LEVEL, F.col("_weft_step.i"))
        wide = wide.withColumn(PANE, F.expr(f"{PANE} - pmod({PANE}, _weft_step.w)"))
        found.append(merged(wide, node, [LEVEL, PANE]))
    return [part.withColumn(NODE, F.lit(live.id).cast("bigint")) for part in found]
