"""A recompute plan and a state of the world → the answer, as a DataFrame.

Only `windows_due` runs a (small) job: it lists the windows of a query that must be run window by
window. Everything else compiles.
"""

from __future__ import annotations

import itertools
import threading

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sqlglot import exp

from weft.logical.windows import Session
from weft.plan.lift import SESSION
from weft.plan.recompute import PlannedSource, RecomputePlan, Shape
from weft.spark.contents import Contents, Due, OneWindow
from weft.spark.groups import Only
from weft.spark.order import limited, ordered, sliced
from weft.spark.rows import END, NUMBER, START, instant
from weft.spark.world import World

_names = itertools.count()
_naming = threading.Lock()


class Evaluator:
    """Runs the plan of one query against one state of the world."""

    def __init__(
        self, spark: SparkSession, world: World, plan: RecomputePlan, horizons: dict[str, int]
    ) -> None:
        self._spark = spark
        self._plan = plan
        self._contents = Contents(spark, world, horizons)

    def analysed(self) -> DataFrame:
        """The answer's schema: the plan analysed over its sources, with nothing run."""
        due = Due(None, None)
        sources = {
            p: self._contents.due(p, due) if p.window else self._contents.at(p, 0)
            for p in self._plan.sources
        }
        return self._run(sources)

    def standing(self, now: int | None, only: Only | None = None) -> DataFrame:
        """The answer at an instant, or some groups of it."""
        return self._run({p: self._contents.at(p, now, only) for p in self._plan.sources})

    def windows(self, due: Due, only: Only | None = None) -> DataFrame | None:
        """The answers of all windows that fall due, or some groups of each; None when none do."""
        if self._plan.shape is Shape.ALL_WINDOWS:
            return self._all_windows(due, only)
        return self._each_window(due)

    def _all_windows(self, due: Due, only: Only | None) -> DataFrame:
        answer = self._run({p: self._contents.due(p, due, only) for p in self._plan.sources})
        for old, new in zip(self._plan.output_window, (START, END, NUMBER), strict=False):
            answer = answer.withColumnRenamed(old, new)
        if len(self._plan.output_window) < 3:
            answer = answer.withColumn(NUMBER, F.lit(0).cast("bigint"))
        if isinstance(self._plan.window, Session):
            answer = ending_session(answer, due)
        return limited(answer, self._plan.order, self._plan.limit, self._plan.offset)

    def _each_window(self, due: Due) -> DataFrame | None:
        found = {p: self._contents.due(p, due) for p in self._plan.sources if p.window}
        answers = []
        for window in self.windows_due(found):
            sources = {p: self._contents.one(rows, p, window) for p, rows in found.items()}
            for planned in self._plan.sources:
                if planned not in sources:
                    sources[planned] = self._contents.at(planned, window.end)
            answer = ordered(self._run(sources), self._plan.order)
            answer = sliced(answer, self._plan.limit, self._plan.offset)
            answer = answer.withColumn(START, instant(window.start))
            answer = answer.withColumn(END, instant(window.end))
            answers.append(answer.withColumn(NUMBER, F.lit(window.number).cast("bigint")))
        return union_all(answers)

    def windows_due(self, found: dict[PlannedSource, DataFrame]) -> list[OneWindow]:
        parts = [
            rows.select(
                F.unix_micros(p.window[0]),
                F.unix_micros(p.window[1]),
                F.col(p.window[2]) if len(p.window) > 2 else F.lit(0).cast("bigint"),
            )
            for p, rows in found.items()
        ]
        return sorted(OneWindow(*row) for row in union_all(parts).distinct().collect())

    def open_session_start(
        self, after: int | None, frontier: int | None, upto: int | None
    ) -> int | None:
        """The first instant of a session that is still open at `upto`: rows before it are done with."""
        due = Due(None, None, frontier=frontier)
        sources = {p: self._contents.due(p, due) for p in self._plan.sources}
        answer = union_all([self._run(sources, tree) for tree in session_blocks(self._plan.tree)])
        still_open = answer if upto is None else answer.where(F.col(END) >= instant(upto))
        return still_open.agg(F.unix_micros(F.min(START)).alias("low")).collect()[0].low

    def _run(
        self, sources: dict[PlannedSource, DataFrame], tree: exp.Query | None = None
    ) -> DataFrame:
        """Run the tree over the given sources, each under a name of its own."""
        with _naming:
            run = next(_names)
        names = {}
        for planned, rows in sources.items():
            name = f"weft_run_{run}_{planned.source.placeholder}"
            rows.createOrReplaceTempView(name)
            names[planned.source.placeholder] = name
        try:
            return self._spark.sql(render(tree or self._plan.tree, names))
        finally:
            for name in names.values():
                self._spark.catalog.dropTempView(name)


def render(tree: exp.Query, names: dict[str, str]) -> str:
    """Spark SQL text with the placeholders replaced."""

    def rename(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Table) and node.name in names:
            node.set("this", exp.to_identifier(names[node.name], quoted=True))
        return node

    return tree.copy().transform(rename).sql(dialect="spark")


def session_blocks(tree: exp.Query) -> list[exp.Select]:
    """Each block that makes sessions, by itself: every session shows, whatever the query keeps."""
    found = []
    for select in tree.find_all(exp.Select):
        group = select.args.get("group")
        if group and any(e.name.lower() == "session_window" for e in group.expressions):
            block = select.copy()
            for clause in ("having", "distinct", "qualify", "order", "limit", "offset"):
                block.set(clause, None)
            if not block.args.get("with_") and tree.args.get("with_"):
                block.set("with_", tree.args["with_"].copy())
            names = zip((START, END), SESSION, strict=True)
            shown = [exp.alias_(field.copy(), name, quoted=True) for name, field in names]
            block.set("expressions", shown)
            found.append(block)
    return found


def ending_session(answer: DataFrame, due: Due) -> DataFrame:
    """A session closes when the clock passes its end: a row exactly at the end would extend it."""
    if due.after is not None:
        answer = answer.where(F.col(END) >= instant(due.after))
    if due.upto is not None:
        answer = answer.where(F.col(END) < instant(due.upto))
    return answer


def union_all(parts: list[DataFrame]) -> DataFrame | None:
    """One DataFrame of many, as a balanced tree so that the plan stays shallow."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        rest = [parts[-1]] if len(parts) % 2 else []
        parts = [a.unionAll(b) for a, b in pairs] + rest
    return parts[0] if parts else None
