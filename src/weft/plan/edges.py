"""A window that slides: what of it panes cannot hold is read from the stream's rows, as partials.

Law: the answer at τ is the finish of the merge of the partials of the full panes inside (τ − r, τ]
with the rows at its two ragged edges, each folded by itself (a statistic's *lift*). So every part of
the query that looks at a row must mean the same to the reading engine: its WHERE, what it groups by,
the arguments and filters of its aggregates. If one does not, the query is recomputed.

Source: PSoup §6 (a window's aggregate from O(log n) nodes of a ranked tree); lift and combine as in
Scotty. Differs: PSoup's tree has the rows as its leaves; here leaves are panes, and rows are met only
at the edges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from weft.logical.aggregates import Aggregates, CannotShare, TypeOf
from weft.logical.aggregates.kinds import FLOATS
from weft.logical.statistics import Dimension, Lift, Statistic
from weft.logical.windows import Sliding
from weft.optimizer.factors import Predicate
from weft.optimizer.nodes import EdgeRows
from weft.plan.blocks import is_aggregated
from weft.plan.in_duck import RowSql
from weft.plan.order import detach_limit
from weft.plan.recompute import RecomputePlan
from weft.plan.share import SharedQuery
from weft.plan.terms import Types


def is_sliding(plan: RecomputePlan) -> bool:
    """Whether a plan is one SELECT over one window that slides."""
    windows = [planned.source.window for planned in plan.sources]
    return isinstance(plan.tree, exp.Select) and [type(w) for w in windows] == [Sliding]


def without_limit(plan: RecomputePlan) -> RecomputePlan:
    """The plan without its LIMIT: that applies to the answer at each instant."""
    if not is_aggregated(plan.tree):
        raise CannotShare("it selects rows, and does not aggregate them")
    tree = plan.tree.copy()
    limit, offset = detach_limit(tree)
    return replace(plan, tree=tree, limit=limit, offset=offset)


def edge_rows(
    query: SharedQuery, predicate: Predicate, plan: RecomputePlan, type_of: TypeOf,
    aggregates: Aggregates,
) -> EdgeRows:  # fmt: skip
    """How rows of the query become partials; CannotShare with the reason."""
    rows = _Rows(RowSql(Types(plan.sources[0], type_of, aggregates)))
    return EdgeRows(
        rows.where(predicate),
        (
            *((d.column, rows.dimension(d)) for d in query.dimensions),
            *((s.column, rows.statistic(s)) for s in query.statistics),
        ),
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Writes what a query says of a row; refuses what the reading engine would say otherwise."""

    sql: RowSql

    def where(self, predicate: Predicate) -> str:
        return self._portable(self.sql.where(predicate))

    def dimension(self, dimension: Dimension) -> str:
        text = self._expression(dimension.expression)
        return f"({text} + 0)" if dimension.type in FLOATS else text  # -0.0 is 0.0, as in groups

    def statistic(self, statistic: Statistic) -> str:
        lift: Lift | None = statistic.lift
        if lift is None:
            raise CannotShare(
                f"{statistic.key.split('(')[0]} of single rows is not known to DuckDB"
            )
        text = lift.template.format(*map(self._expression, lift.arguments))
        if lift.condition is None:
            return text
        return f"(CASE WHEN {self._expression(lift.condition)} THEN {text} END)"

    def _expression(self, text: str) -> str:
        return self._portable(self.sql.output(sqlglot.parse_one(text, dialect="spark")))

    def _portable(self, text: str) -> str:
        for found in self.sql.derived:
            shown = found.expression.replace("`", "")
            raise CannotShare(
                f"rows at the edges of a sliding window are read by DuckDB, which does not compute"
                f" {shown} exactly as Spark does"
            )
        return text
