"""A recompute plan → what a query needs of a stream's shared network, and how it is finished.

A window that neither hops nor slides is a condition on event time: [SINCE t] is ts >= t, [FROM a TO b] is
ts >= a AND ts < b, and so is the horizon of a query that may not see everything; the clock's side of
them is the totals' own (see spark/shared.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from sqlglot import exp

from weft.logical.aggregates import Aggregates, CannotShare, TypeOf
from weft.logical.canonical import canonical, conjuncts
from weft.logical.panes import has_panes
from weft.logical.statistics import Statistic
from weft.logical.tried import NotTried, Tried, tried
from weft.logical.windows import EPOCH, MICROSECOND, Landmark, Snapshot, Window
from weft.optimizer.factors import factor, is_safe
from weft.optimizer.need import Need
from weft.optimizer.nodes import AggregateClass, Finish
from weft.plan.edges import edge_rows, is_sliding, without_limit
from weft.plan.recompute import RecomputePlan
from weft.plan.share import SharedQuery, share
from weft.plan.terms import failure

TIME = "_weft_time"


@dataclass(frozen=True, slots=True, eq=False)
class Sharing:
    """What one query shares."""

    query: SharedQuery
    need: Need
    finish: Finish


def draft(
    plan: RecomputePlan,
    stream_id: int,
    type_of: TypeOf,
    aggregates: Aggregates,
    names: tuple[str, ...],
    emits_changes: bool,
    horizon: int | None,
    policy: str,
) -> Sharing:
    """Decompose a plan, or raise CannotShare with the reason."""
    slides = is_sliding(plan)
    if slides:
        plan, emits_changes = without_limit(plan), False  # it always tells its changes
    query = share(plan, type_of, aggregates, names)
    is_paned = has_panes(query.window)
    on_spark = why_spark(query, plan, is_closing=is_paned and not emits_changes)
    if slides and (on_spark or not query.is_repeatable):
        raise CannotShare(on_spark or "its sketches depend on the order of merging")
    if not query.is_total:
        raise CannotShare(
            "an expression of it may fail on some row, which must not stop the others"
        )
    bounds = [] if is_paned else _time_bounds(query.window, horizon)
    where, failing = tried_where(query.where, type_of)
    statistics, failures = query.statistics, query.failures
    if failing is not None:
        statistics = tuple(sorted({*statistics, failing[0]}, key=lambda s: s.key))
        failures = (*failures, (failing[0].column, failing[1]))
    tests = [test for test in (where, *bounds) if test is not None]
    predicate = factor(exp.and_(*tests) if tests else None, type_of)
    if failing is not None:  # shown as it was asked
        asked = canonical(exp.and_(query.where, *bounds))
        predicate = replace(predicate, text=asked.sql(dialect="spark"))
    if slides and failures:
        raise CannotShare(
            f"{failures[0][1].partition(':')[0]} may fail on some row at the edges of a sliding window"
        )
    if predicate.may_raise:
        raise CannotShare("its WHERE may fail on some row, which must not stop the others")
    value = AggregateClass(
        stream_id,
        query.window if is_paned else None,
        query.dimensions,
        predicate,
        is_paned and emits_changes and on_spark is None,
    )
    edges = edge_rows(query, predicate, plan, type_of, aggregates) if slides else None
    finish = Finish(
        query.finish_duck, query.finish_spark, tuple(d.column for d in query.dimensions),
        statistics, query.is_global, query.finish.args.get("where") is not None,
        plan.limit, plan.offset, plan.output_window or (), 0, "auto",
        query.definitions, on_spark, tuple(dict(failures).items()), edges, query.is_repeatable,
    ).answering(policy)  # fmt: skip
    return Sharing(query, Need(value, statistics, finish.policy == "eager" and not slides), finish)


def tried_where(
    where: exp.Expression | None, type_of: TypeOf
) -> tuple[exp.Expression | None, tuple[Statistic, str] | None]:
    """A WHERE that may fail on a row, as one that keeps such rows, and what counts them.

    Conditions before the first that may fail stay as they are; that one and those after it, in the
    order in which they are written, become one: it holds, or it fails.
    """
    parts = [] if where is None else list(conjuncts(where))
    safe = [is_safe(canonical(part), type_of) for part in parts]
    if all(safe):
        return where, None
    first = safe.index(False)
    try:
        rest = [
            Tried(part) if is_fine else tried(part, type_of)
            for part, is_fine in zip(parts[first:], safe[first:], strict=True)
        ]
    except NotTried:
        return where, None  # the caller sees that it may raise
    fails = exp.or_(
        *(exp.and_(*(r.value for r in rest[:i]), r.fails) for i, r in enumerate(rest) if r.fails)
    )
    whole = Tried(
        exp.and_(*(r.value for r in rest)), fails, tuple(k for r in rest for k in r.kinds)
    )
    kept = exp.or_(exp.paren(whole.value), exp.paren(fails))
    counted = Tried(whole.value, canonical(fails), whole.kinds)
    return exp.and_(*parts[:first], kept), failure(counted, exp.and_(*parts[first:]), None)


def why_spark(query: SharedQuery, plan: RecomputePlan, is_closing: bool) -> str | None:
    """Why a query must be finished on Spark; None: DuckDB can finish it, after any evaluation."""
    if query.finish_duck is None:
        return query.obstacle
    if any(s.duck_merge is None for s in query.statistics):
        return "a statistic of it can only be merged by Spark"
    if not is_closing and (not query.is_row_local or plan.limit is not None or plan.offset):
        return "its answer is more than a row for each group, and changes as a whole"
    if not is_closing and not query.is_repeatable:
        return "its sketches depend on the order of merging, so what was told has to be kept"
    return None


def _time_bounds(window: Window, horizon: int | None) -> list[exp.Expression]:
    low, high = horizon, None
    if isinstance(window, Landmark):
        low = max(_micros(window.since), low if low is not None else _micros(window.since))
    if isinstance(window, Snapshot):
        start, high = _micros(window.start), _micros(window.end)
        low = start if low is None else max(start, low)
    time = exp.func("unix_micros", exp.column(TIME), dialect="spark")
    found = []
    if low is not None:
        found.append(exp.GTE(this=time, expression=exp.Literal.number(low)))
    if high is not None:
        found.append(exp.LT(this=time.copy(), expression=exp.Literal.number(high)))
    return found


def _micros(instant: datetime) -> int:
    return (instant - EPOCH) // MICROSECOND
