"""The groups that rows touched since a query was evaluated: only those are computed again.

Compilers only; the law is in plan/touched.py. The keys travel by broadcast, so where very many rows
came or went, all groups are computed again instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.catalog.records import QueryRecord
from weft.logical.windows import bounds
from weft.plan.recompute import RecomputePlan
from weft.plan.touched import Touched, touched_groups
from weft.spark.rows import TICK, TIME, instant, overlapping, quote, read_rows
from weft.spark.world import World

MOST_ROWS = 200_000  # that came or went


@dataclass(frozen=True, slots=True, eq=False)
class Only:
    """Some groups of a query: a relation of their keys."""

    touched: Touched
    keys: DataFrame

    def rows(self, rows: DataFrame) -> DataFrame:
        """The rows of these groups that count."""
        if self.touched.where is not None:
            rows = rows.where(self.touched.where)
        return self._semi_join(rows, [F.expr(group) for group in self.touched.groups])

    def answers(self, answer: DataFrame) -> DataFrame:
        """The rows of an answer that are about these groups."""
        return self._semi_join(answer, [F.col(quote(name)) for name in self.touched.outputs])

    def _semi_join(self, rows: DataFrame, columns: list[F.Column]) -> DataFrame:
        pairs = zip(columns, self.touched.keys, strict=True)
        same = [column.eqNullSafe(F.col(key)) for column, key in pairs]
        return rows.join(F.broadcast(self.keys), reduce(lambda a, b: a & b, same), "left_semi")


def groups_touched(
    spark: SparkSession, world: World, plan: RecomputePlan, record: QueryRecord, clock: int
) -> Only | None:
    """The groups of rows that came or went since the last evaluation; None: take all groups."""
    found = touched_groups(plan)
    if isinstance(found, str) or record.error or record.clock is None:
        return None
    source = plan.sources[0].source
    state = world.streams[source.relation.name.lower()]
    segments = {s.path: s for s in state.segments if s.tick > record.evaluated_tick}
    is_changed = F.col(TICK) > record.evaluated_tick
    if not plan.is_per_window:  # rows that the window has reached, and rows that it has left
        old, new = bounds(source.window, record.clock), bounds(source.window, clock)
        stretches = [(old[1] + 1, new[1])]
        if old[0] is not None:
            stretches.append((old[0], new[0] - 1))
        for low, high in stretches:
            segments |= {s.path: s for s in overlapping(state.segments, low, high)}
            is_changed |= F.col(TIME).between(instant(low), instant(high))
    if sum(s.rows for s in segments.values()) > MOST_ROWS:
        return None
    rows = read_rows(spark, world, state, list(segments.values())).where(is_changed)
    if found.where is not None:
        rows = rows.where(found.where)
    pairs = zip(found.groups, found.keys, strict=True)
    return Only(found, rows.select(*[F.expr(g).alias(k) for g, k in pairs]).distinct())
