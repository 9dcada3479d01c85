"""When has the stream changed enough to weave anew? Says whether and why, and does not flap.

A plan is woven for a rate and for group counts. As they drift, a fresh plan may be cheaper. Two
conditions must hold before the plan is changed:

    excess = cost / fresh cost − 1 > tolerance
    regret = Σ (cost − fresh cost)·time ≥ tolerance·patience·fresh cost

The first is the tolerance of Eq. 6. The second is the hysteresis: just above the tolerance it takes
`patience` ticks of it, ten times above a tenth of that, and a spike that passes costs nothing. The
regret is forgotten once the excess falls below half of the tolerance. Each change has been paid
for by regret since the one before, so the number of changes is bounded by the cost they saved.

A fresh plan is woven only when the measurements moved by more than `drift` from those of the last
one; in between it is kept. Source: beyond Weave Share, which varies queries but not the stream;
STREAM asks for such adaptivity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from weft.optimizer.weave.cost import CostModel, Stream, shape_of
from weft.optimizer.weave.counts import cells
from weft.optimizer.weave.greedy import weave_share
from weft.optimizer.weave.plan import PAPER, Plan, Weaver, by_id, covers_once, plan_cost
from weft.optimizer.weave.windows import Query


@dataclass(frozen=True, slots=True)
class Policy:
    """How eagerly plans follow the stream. The engine turns `tolerance`; tests turn the others."""

    tolerance: float = 0.2
    patience: float = 60.0  # ticks at the tolerance before a change
    drift: float = 0.1  # relative change of a measurement that makes a fresh plan worth weaving


@dataclass(frozen=True, slots=True)
class Watch:
    """What is remembered between two looks."""

    woven_for: Stream  # as it was measured when the current plan was woven
    looked_at: float  # the tick of the last look
    fresh_for: Stream | None = None
    fresh: Plan | None = None
    regret: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to change to `plan`, with the reason in words."""

    reweave: bool
    reason: str
    plan: Plan
    cost: float  # of the current plan, as the stream is now
    fresh_cost: float

    @property
    def excess(self) -> float:
        return self.cost / self.fresh_cost - 1


def adapt(
    queries: Iterable[Query],
    plan: Plan,
    measured: Stream,
    watch: Watch,
    now: float,
    *,
    model: CostModel = PAPER,
    policy: Policy = Policy(),
    weaver: Weaver = weave_share,
) -> tuple[Decision, Watch]:
    """Look at the stream at tick `now`; returns the decision, and the watch for the next look."""
    queries = tuple(queries)
    cost = plan_cost(plan, queries, measured, model)
    changes = drifts(queries, plan, watch.woven_for, measured)
    if max(size for size, _ in changes) <= policy.drift:
        calm = replace(watch, looked_at=now, regret=0.0)
        return Decision(False, "the stream is as it was", plan, cost, cost), calm
    watch = _with_fresh(queries, plan, measured, watch, model, policy, weaver)
    fresh_cost = min(cost, plan_cost(watch.fresh, queries, measured, model))
    spent = max(0.0, now - watch.looked_at)
    verdict, regret = weigh(cost, fresh_cost, watch.regret, spent, policy)
    what = "; ".join(text for size, text in changes if size > policy.drift)
    if verdict.is_due:
        why = f"{what}; {verdict.text}"
        return Decision(True, why, watch.fresh, cost, fresh_cost), Watch(measured, now)
    watch = replace(watch, looked_at=now, regret=regret)
    return Decision(False, f"{what}; {verdict.text}", plan, cost, fresh_cost), watch


@dataclass(frozen=True, slots=True)
class Verdict:
    is_due: bool
    text: str


def weigh(
    cost: float, fresh_cost: float, regret: float, elapsed: float, policy: Policy
) -> tuple[Verdict, float]:
    """Whether a plan that costs so much should give way to a fresh one; and the regret so far."""
    excess = cost / fresh_cost - 1
    regret += (cost - fresh_cost) * elapsed
    if excess < policy.tolerance / 2:
        regret = 0.0
    more = f"the plan costs {excess:.0%} more than a fresh one"
    if excess <= policy.tolerance:
        return Verdict(False, f"{more}, within the tolerance"), regret
    if regret < policy.tolerance * policy.patience * fresh_cost:
        return Verdict(False, f"{more}, but not for long yet"), regret
    return Verdict(True, more), 0.0


def _with_fresh(
    queries: tuple[Query, ...],
    plan: Plan,
    measured: Stream,
    watch: Watch,
    model: CostModel,
    policy: Policy,
    weaver: Weaver,
) -> Watch:
    if watch.fresh is not None and covers_once(watch.fresh, queries):
        moved = max(size for size, _ in drifts(queries, plan, watch.fresh_for, measured))
        if moved <= policy.drift:
            return watch
    fresh = weaver(queries, measured, model)
    return replace(watch, fresh=fresh, fresh_for=measured)


def drifts(
    queries: Iterable[Query], plan: Plan, before: Stream, now: Stream
) -> list[tuple[float, str]]:
    """How far the rate and the trees' cells moved, each with words for the log. Largest first."""
    named = by_id(queries)
    found = [_drift("rows per tick", before.rate, now.rate)]
    for tree in plan:
        shape = shape_of(named[id] for id in tree)
        label = f"cells of the tree of {tree[0]}"
        found.append(_drift(label, cells(before.counts, *shape), cells(now.counts, *shape)))
    return sorted(found, reverse=True)


def _drift(what: str, before: float, now: float) -> tuple[float, str]:
    """Relative change, the same up or down: 2 → 4 and 4 → 2 are both 1."""
    if before <= 0 or now <= 0:
        size = 0.0 if before == now else math.inf
    else:
        size = max(before, now) / min(before, now) - 1
    return size, f"{what} {before:,.6g} → {now:,.6g}"
