"""The answer of a standing query at any instant, not only at those at which a batch evaluated it.

The same plan over the contents of its windows at that instant (UPA Definition 1), run on the
reading engine where every function in it means the same there; else Spark runs it. PSoup §1.1 calls
this browsing: rows at or before the clock are settled, so the answer at an earlier instant is too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.catalog.records import QueryRecord, StreamRecord, TableRecord
from weft.catalog.view import View
from weft.logical.relations import ARRIVAL
from weft.logical.windows import LastRows, bounds
from weft.plan.recompute import PlannedSource, RecomputePlan
from weft.results import answers, duck
from weft.results.duck import Reading
from weft.results.keeping import forgotten
from weft.results.pull import empty, table_sql
from weft.results.retained import refuse_pruned
from weft.results.rows import scan_rows

if TYPE_CHECKING:
    from weft.results.shared import SharedAnswer

FOREVER = 2**62

# Nodes that sqlglot renders for DuckDB with the meaning they have in Spark. Division is not among
# them (by zero: an error there, NULL here), nor is anything whose rounding or parsing may differ.
PORTABLE = (
    exp.Select, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered,
    exp.Limit, exp.Offset, exp.Distinct, exp.Union, exp.Intersect, exp.Except, exp.Subquery, exp.With,
    exp.CTE, exp.Table, exp.TableAlias, exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.Literal,
    exp.Boolean, exp.Null, exp.Paren, exp.Tuple, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT,
    exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Is, exp.In, exp.Between, exp.Exists, exp.Case,
    exp.If, exp.Coalesce, exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Count, exp.Sum, exp.Min, exp.Max,
    exp.Avg, exp.Filter, exp.Window, exp.WindowSpec, exp.RowNumber, exp.Greatest, exp.Like,
)  # fmt: skip


def is_portable(plan: RecomputePlan) -> bool:
    """Whether the reading engine gives the plan the meaning that Spark gives it."""
    for node in plan.tree.walk():
        is_greatest = isinstance(node, exp.Anonymous) and node.name.lower() == "greatest"
        if not (isinstance(node, PORTABLE) or is_greatest):
            return False
    return True


def standing_at(
    record: QueryRecord, plan: RecomputePlan, view: View, root: Path, micros: int
) -> Reading:
    """The answer at an instant, for DuckDB."""
    ctes, tables = [], {}
    for number, planned in enumerate(plan.sources):
        found = _contents(planned, record, view, root, micros).renamed(f"_of_{number}")
        ctes.append(f"{duck.name(planned.source.placeholder)} AS ({found.sql})")
        tables |= found.tables
    shown = ", ".join(duck.name(c.name) for c in record.columns)
    body = plan.tree.sql(dialect="duckdb")
    sql = f"WITH {', '.join(ctes)} SELECT {shown} FROM ({body}){answers.order_by(record)}"
    return Reading(sql, tables)


def refuse_gone(plan: RecomputePlan, view: View, micros: int) -> None:
    """An answer whose rows are no longer kept cannot be given."""
    for planned in plan.sources:
        record = view.find(planned.source.relation.name)
        low, _ = bounds(planned.source.window, micros)
        if isinstance(record, StreamRecord):
            refuse_pruned(record, low)
        cut = record.forgotten if isinstance(record, QueryRecord) else None
        if cut is not None and (low is None or low < cut):
            raise forgotten(record, "the windows of that instant are", "ask for a later instant")


def _contents(
    planned: PlannedSource, record: QueryRecord, view: View, root: Path, micros: int
) -> Reading:
    found = view.find(planned.source.relation.name)
    if isinstance(found, TableRecord):
        return Reading(_table(planned, found, view, root))
    if isinstance(found, QueryRecord):
        return _closed_windows(planned, found, view, root, micros)
    return Reading(_stream(planned, found, record, view, root, micros))


def _stream(
    planned: PlannedSource,
    found: StreamRecord,
    record: QueryRecord,
    view: View,
    root: Path,
    micros: int,
) -> str:
    columns = [duck.name(c.name) for c in found.definition.columns]
    if planned.shows_time:
        columns.append(f"_weft_time AS {ARRIVAL}")
    if planned.tick:
        columns.append(f"_weft_tick AS {planned.tick}")
    low, high = bounds(planned.source.window, micros)
    horizon = record.horizons.get(found.name.lower())
    if horizon is not None:
        low = horizon if low is None else max(low, horizon)
    segments = [
        s
        for s in view.segments(found.owner, "rows")
        if s.min_time <= high and (low is None or s.max_time >= low)
    ]
    if not segments:
        helpers = [f"NULL::TIMESTAMPTZ AS {ARRIVAL}"] if planned.shows_time else []
        helpers += [f"NULL::BIGINT AS {planned.tick}"] if planned.tick else []
        return f"SELECT {', '.join(['*', *helpers])} FROM ({empty(found.definition.columns)})"
    where = f"_weft_time <= {duck.instant(high)}"
    if low is not None:
        where += f" AND _weft_time >= {duck.instant(low)}"
    sql = f"SELECT {', '.join(columns)} FROM {scan_rows(found, segments, root)} WHERE {where}"
    if isinstance(planned.source.window, LastRows):
        newest = "_weft_time DESC, _weft_tick DESC, _weft_ord DESC"
        sql += f" ORDER BY {newest} LIMIT {planned.source.window.count}"
    return sql


def _table(planned: PlannedSource, found: TableRecord, view: View, root: Path) -> str:
    segments = view.segments(found.owner, "rows", "gone")
    if planned.validity is None:
        return table_sql(found, segments, root)
    start, end = planned.validity
    columns = ", ".join(duck.name(c.name) for c in found.definition.columns)
    rows = [str(root / s.path) for s in segments if s.part == "rows"]
    gone = [str(root / s.path) for s in segments if s.part == "gone"]
    if not rows:
        nothing = empty(found.definition.columns)
        return f"SELECT *, 0::BIGINT AS {start}, 0::BIGINT AS {end} FROM ({nothing})"
    if not gone:
        return f"SELECT {columns}, _weft_from AS {start}, {FOREVER} AS {end} FROM {duck.scan(rows)}"
    ends = f"coalesce(g._weft_to, {FOREVER})"
    return (
        f"SELECT {columns}, _weft_from AS {start}, {ends} AS {end} FROM {duck.scan(rows)} r"
        f" LEFT JOIN {duck.scan(gone)} g ON r._weft_row = g._weft_row"
    )


def _closed_windows(
    planned: PlannedSource, found: QueryRecord, view: View, root: Path, micros: int
) -> Reading:
    low, high = bounds(planned.source.window, micros)
    if not found.is_stored:
        from weft.results.shared import SharedAnswer  # NumPy is not needed to open a database

        return _assembled_windows(
            planned, SharedAnswer(view, found, root), low, min(high + 1, micros)
        )
    segments = view.segments(found.owner, "changes", "base")
    time = f"({answers.END} - INTERVAL 1 MICROSECOND)"
    where = f"{answers.END} <= {duck.instant(micros)} AND {time} <= {duck.instant(high)}"
    if low is not None:
        where += f" AND {time} >= {duck.instant(low)}"
    extra = f", {time} AS window_time" if planned.shows_time else ""
    return Reading(answers.windows(found, segments, root, where, extra))


def _assembled_windows(
    planned: PlannedSource, answer: SharedAnswer, low: int | None, upto: int
) -> Reading:
    """Closed windows of a shared query whose time, 1 µs before their end, is from `low` on."""
    found = answer.answers_of(answer.windows(low, upto), None)
    shown = ", ".join(answers.shown(answer.record))
    time = f"({answers.END} - INTERVAL 1 MICROSECOND)"
    extra = f", {time} AS window_time" if planned.shows_time else ""
    return Reading(f"SELECT {shown}{extra} FROM ({found.sql})", found.tables)
