"""What is known of a stream and of this machine, from the catalog: rows, counts, costs, drift."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING

from weft.catalog.records import StreamRecord
from weft.catalog.view import View
from weft.optimizer.changing import placed
from weft.optimizer.costing import work_by_tree
from weft.optimizer.fitting import Observation
from weft.optimizer.measures import Measures
from weft.optimizer.profile import Profile, load_profile
from weft.optimizer.weave.batch import BatchCosts

if TYPE_CHECKING:
    from weft.spark.profiling import Seen

BATCHES = 16  # newest ones that say how many rows a batch has
COSTS = "costs"  # the fact that holds them


def observation(seen: Seen, measures: Measures) -> Observation:
    """A batch as an observation of costs: what its plan had to do, the partials as counted."""
    work: dict[str, float] = {"batch": 1.0, "brought": float(seen.rows)}
    as_it_was = replace(measures, rows=seen.rows, span=seen.span)
    for each in work_by_tree(placed(seen.network), as_it_was).values():
        for name, amount in each.items():
            work[name] = work.get(name, 0.0) + amount
    if work.get("cell"):
        scale = seen.partials / work["cell"]
        work["step"], work["cell"] = work["step"] * scale, float(seen.partials)
    return Observation(work, seen.ms)


def load_costs(view: View) -> BatchCosts:
    """What work costs on this machine: measured, or as shipped."""
    text = view.fact(COSTS)
    if text is None:
        return BatchCosts()
    known = {k: v for k, v in json.loads(text).items() if k in BatchCosts.names()}
    return BatchCosts(**known)


def load_measures(view: View, stream: StreamRecord) -> Measures:
    """What the catalog knows of a stream's batches."""
    profile, costs = load_profile(view.profile(stream.id)), load_costs(view)
    found = [b for b in view.stream_batches(stream.id, BATCHES) if b.rows]
    if not found:
        return Measures(profile=profile, costs=costs)
    rows = float(statistics.median(b.rows for b in found))
    return Measures(rows, _span(view, stream, found), profile, costs, is_measured=True)


def _span(view: View, stream: StreamRecord, found: list) -> float:
    """Event time that a batch covers: how far the clock moves with one."""
    clocks = [b.clock for b in found if b.clock is not None]
    if len(clocks) > 1 and clocks[0] > clocks[-1]:
        return (clocks[0] - clocks[-1]) / (len(clocks) - 1)
    times = [s for s in view.segments(stream.owner, "rows") if s.min_time is not None]
    if not times:
        return Measures().span
    return max(1.0, max(s.max_time for s in times) - min(s.min_time for s in times))


def drifts(before: Measures | None, now: Measures, least: float) -> list[str]:
    """In words, what moved by more than a share since a plan was woven."""
    if before is None:
        return []
    found = []
    for what, old, new, unit in (
        ("rows a batch", before.rows, now.rows, 1),
        ("event seconds a batch", before.span, now.span, 1e6),
    ):
        if max(old, new) > (1 + least) * min(old, new):
            found.append(f"{what} {old / unit:,.0f} → {new / unit:,.0f}")
    found += _grown(before.profile, now.profile, now.rows, least)
    if found == [] and _moved(before.costs, now.costs) > 2 * least:
        found.append("batches take another time than they took")
    return found


def _grown(before: Profile, now: Profile, rows: float, least: float) -> list[str]:
    fresh = [name for name in now.codes if name not in before.codes]
    if fresh:
        return [f"{len(fresh)} columns were measured for the first time"]
    found = []
    for key, (name, _) in now.expressions.items():
        if name in before.codes:
            old = before._sampled(frozenset([name])).at(rows)
            new = now._sampled(frozenset([name])).at(rows)
            if max(old, new) > (1 + 2 * least) * min(old, new):
                found.append(f"values of {key.split(' ', 1)[1]} {old:,.0f} → {new:,.0f}")
    return found


def _moved(before: BatchCosts, now: BatchCosts) -> float:
    """How far costs moved relative to each other: a machine that is slower in all changes nothing."""
    ratios = [getattr(now, n) / getattr(before, n) for n in BatchCosts.names()]
    middle = statistics.median(ratios)
    return max(max(r / middle, middle / r) for r in ratios) - 1
