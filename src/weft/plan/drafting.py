"""A recompute plan → what a query needs of a stream's shared network, and how it is finished.

A window that does not hop is a condition on event time: [SINCE t] is ts >= t, [FROM a TO b] is
ts >= a AND ts < b, and so is the horizon of a query that may not see everything; the clock's side of
them is the totals' own (see spark/shared.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlglot import exp

from weft.logical.aggregates import Aggregates, CannotShare, TypeOf
from weft.logical.panes import has_panes
from weft.logical.windows import EPOCH, MICROSECOND, Landmark, Snapshot, Window
from weft.optimizer.factors import factor
from weft.optimizer.need import Need
from weft.optimizer.nodes import AggregateClass, Finish
from weft.plan.recompute import RecomputePlan
from weft.plan.share import SharedQuery, share

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
    query = share(plan, type_of, aggregates, names)
    is_paned = has_panes(query.window)
    is_versioned = is_paned and emits_changes
    _check(query, plan, is_paned and not is_versioned)
    if not query.is_total:
        raise CannotShare(
            "an expression of it may fail on some row, which must not stop the others"
        )
    bounds = [] if is_paned else _time_bounds(query.window, horizon)
    tests = [test for test in (query.predicate, *bounds) if test is not None]
    predicate = factor(exp.and_(*tests) if tests else None, type_of)
    if predicate.may_raise:
        raise CannotShare("its WHERE may fail on some row, which must not stop the others")
    value = AggregateClass(
        stream_id,
        query.window if is_paned else None,
        query.dimensions,
        predicate,
        is_versioned,
    )
    if policy == "auto" and not query.is_repeatable:
        policy = "eager"  # merged once, and then the same for every reader
    finish = Finish(
        query.finish_duck, query.finish_spark, tuple(d.column for d in query.dimensions),
        query.statistics, query.is_global, query.finish.args.get("where") is not None,
        plan.limit, plan.offset, plan.output_window or (), 0, policy,
        query.definitions,
    )  # fmt: skip
    return Sharing(query, Need(value, query.statistics, policy == "eager"), finish)


def _check(query: SharedQuery, plan: RecomputePlan, is_closing: bool) -> None:
    if query.finish_duck is None:
        raise CannotShare("its SELECT list or HAVING has a meaning that only Spark gives it")
    if any(s.duck_merge is None for s in query.statistics):
        raise CannotShare("a statistic of it can only be merged by Spark")
    if not is_closing and (not query.is_row_local or plan.limit is not None or plan.offset):
        raise CannotShare("its answer is more than a row for each group, and changes as a whole")
    if not is_closing and not query.is_repeatable:
        raise CannotShare(
            "its sketches depend on the order of merging: what was told could not be taken back"
        )


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
