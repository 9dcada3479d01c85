"""The weaver: keeps each stream's plan near the cheapest as queries come and as the stream changes.

    registration   new classes are woven into the trees that stand (optimizer/weaving.py)
    look           between batches, with maintenance: sample the stream, fit the costs to what the
                   batches took, cost the plan; weave a fresh one in the background when the stream
                   or the queries changed; change to it once it has paid off (weave/adaptive.py)
    switch         between two batches, in one transaction: new nodes fold from the next tick on, old
                   ones stop, classes read on from the new ones. No row is folded twice

The background thread has values only: no catalog, no Spark. What it finds is used if the classes
are still the same when it is done.
"""

from __future__ import annotations

import json
import statistics
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from weft.catalog.records import StreamRecord
from weft.catalog.view import View
from weft.optimizer.costing import Placed, network_cost, tree_of, work_by_tree
from weft.optimizer.feeding import plan_cost
from weft.optimizer.fitting import Observation, fit
from weft.optimizer.lattice import PlannedNode
from weft.optimizer.measures import Measures
from weft.optimizer.network import Network
from weft.optimizer.placing import Placement, needs_of, switched
from weft.optimizer.planning import plan_nodes
from weft.optimizer.profile import Profile, load_profile
from weft.optimizer.weave.adaptive import Policy, weigh
from weft.optimizer.weave.batch import BatchCosts
from weft.optimizer.weaving import Weaving

if TYPE_CHECKING:
    from weft.engine.core import Engine
    from weft.spark.profiling import Seen

BATCHES = 16  # newest ones that say how many rows a batch has
PATIENCE = 16.0  # batches at the tolerance before the plan changes
SAMPLE_EVERY = 4  # looks between two samples
LEARN_FROM = 4  # batches, before costs are fitted to them
TRUST = 8.0  # batches that the costs so far are worth
COSTS = "costs"  # the fact that holds them
Plan = tuple[PlannedNode, ...]


@dataclass
class Watched:
    """What is remembered of a stream between two looks."""

    looks: int = 0
    batch_id: int = -1
    regret: float = 0.0
    classes: object = None  # for which the fresh plan was woven
    fresh: Plan | None = None
    fresh_for: Measures | None = None
    weaving: Future | None = None
    said: str = "not looked at yet"
    drifted: list[str] = field(default_factory=list)


class Weaver:
    """One for each engine; its methods are called with the engine's lock held."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._watched: dict[int, Watched] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._measures: dict[int, Measures] = {}
        self.forced: str | None = None  # a plan for benchmarks and tests (see optimizer/weaving)
        self.policy = Policy(engine.settings.weave_tolerance, PATIENCE)

    def weaving(self, stream_id: int) -> Weaving:
        """How to plan a stream's network now."""
        if stream_id not in self._measures:
            with self._engine.catalog.read() as view:
                stream = next(s for s in view.streams() if s.id == stream_id)
                self._measures[stream_id] = load_measures(view, stream)
        return Weaving(self._measures[stream_id], self.policy.tolerance, self.forced)

    def forget(self) -> None:
        self._measures.clear()

    # looking, between batches

    def look(self) -> None:
        """Bring what is known of each stream up to date, and its plan if that pays."""
        self.forget()
        with self._engine.catalog.read() as view:
            streams = view.streams()
        for stream in streams:
            network = self._engine.batches.network(stream.id)
            if stream.batch_id >= 0 and any(n.node.panes for n in network.folding()):
                self._look_at(stream, network)

    def _look_at(self, stream: StreamRecord, network: Network) -> None:
        if self.forced is not None:
            return
        watched = self._watched.setdefault(stream.id, Watched())
        if watched.looks % SAMPLE_EVERY == 0 or not self._knows(stream.id, network):
            self._sample(stream)
        self._learn(stream)
        watched.looks += 1
        self._collect(watched)
        classes, weaving = _fingerprint(network), self.weaving(stream.id)
        if watched.classes != classes:
            watched.fresh, watched.regret = None, 0.0
        drifted = drifts(watched.fresh_for, weaving.measures, self.policy.drift)
        if (watched.fresh is None or drifted) and watched.weaving is None:
            watched.drifted = drifted or watched.drifted
            self._weave(watched, network, classes, weaving)
        if watched.fresh is not None:
            self._judge(stream, network, watched, weaving.measures)
        watched.batch_id = stream.batch_id

    def _knows(self, stream_id: int, network: Network) -> bool:
        from weft.spark.profiling import atoms_of

        return self.weaving(stream_id).measures.profile.knows(atoms_of(network.folding()))

    def _sample(self, stream: StreamRecord) -> None:
        profile = self._engine.batches.profile(stream.id)
        if profile is not None:
            with self._engine.catalog.write() as change:
                change.set_profile(stream.id, profile.dump())
            self._measures.pop(stream.id, None)

    def _learn(self, stream: StreamRecord) -> None:
        """Fit the costs to the batches since the last look."""
        seen = self._engine.batches.observed.take(stream.id)
        if len(seen) < LEARN_FROM:
            return
        measures = self.weaving(stream.id).measures
        with self._engine.catalog.write() as change:
            costs = fit([observation(each, measures) for each in seen], load_costs(change), TRUST)
            change.set_fact(COSTS, json.dumps(asdict(costs)))
        self.forget()

    def _weave(self, watched: Watched, network: Network, classes: object, weaving: Weaving) -> None:
        needs = list(needs_of(network).values())
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="weft-weave")
        watched.classes, watched.fresh_for = classes, weaving.measures
        watched.weaving = self._pool.submit(plan_nodes, needs, weaving)

    def _collect(self, watched: Watched, timeout: float = 0.0) -> None:
        if watched.weaving is None:
            return
        try:
            watched.fresh = watched.weaving.result(timeout)
        except TimeoutError:
            return
        watched.weaving = None

    def settle(self) -> None:
        """Wait for plans that are being woven, so that the next look has them."""
        for watched in self._watched.values():
            self._collect(watched, timeout=None)

    # deciding, and changing

    def _judge(
        self, stream: StreamRecord, network: Network, watched: Watched, measures: Measures
    ) -> None:
        cost = network_cost(placed(network), measures)
        fresh = min(cost, plan_cost(watched.fresh, measures))
        elapsed = max(0, stream.batch_id - watched.batch_id) if watched.batch_id >= 0 else 0
        verdict, watched.regret = weigh(cost, fresh, watched.regret, elapsed, self.policy)
        watched.said = verdict.text
        if verdict.is_due:
            why = "; ".join([*watched.drifted, verdict.text])
            self.switch(stream.id, watched.fresh, why)
            watched.regret, watched.drifted = 0.0, []

    def switch(self, stream_id: int, plan: Plan, why: str) -> bool:
        """Change to a plan between two batches. False: it is the one that stands."""
        batches = self._engine.batches
        network, tick = batches.network(stream_id), self._engine.become_writer().next()
        placement = switched(network, plan, tick)
        if not placement.moved and not placement.made and not placement.retired:
            return False
        measures = self.weaving(stream_id).measures
        row = {
            "stream_id": stream_id, "tick": tick, "what": _told(placement, network), "why": why,
            "ms_before": network_cost(placed(network), measures),
            "ms_after": plan_cost(plan, measures),
            "trees_before": trees_of([n.node for n in network.folding()]),
            "trees_after": trees_of([p.node for p in plan]),
        }  # fmt: skip
        batches.switch(stream_id, placement, tick, lambda change: change.add_weave(**row))
        return True

    def measure(self, stream_id: int) -> None:
        """Sample a stream now, and learn from its batches."""
        with self._engine.catalog.read() as view:
            stream = next(s for s in view.streams() if s.id == stream_id)
        self.forget()
        self._sample(stream)
        self._learn(stream)

    def cost(self, stream_id: int) -> float:
        """Milliseconds that a batch of the plan costs, by what is known now."""
        network = self._engine.batches.network(stream_id)
        return network_cost(placed(network), self.weaving(stream_id).measures)

    def force(self, stream_id: int, forced: str | None) -> bool:
        """Change to a forced plan, or back to the optimiser's."""
        self.forced = forced
        needs = list(needs_of(self._engine.batches.network(stream_id)).values())
        plan = plan_nodes(needs, self.weaving(stream_id))
        return self.switch(stream_id, plan, f"forced: {forced or 'by cost'}")

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


def observation(seen: Seen, measures: Measures) -> Observation:
    """A batch as an observation of costs: what its plan had to do, the partials as counted."""
    work: dict[str, float] = {"batch": 1.0}
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


def placed(network: Network) -> list[Placed]:
    """The nodes of a network that fold, with the eager classes that read them."""
    readers: dict[int, list] = {}
    for found in network.eager():
        readers.setdefault(found.open_route.node_id, []).append(found.value)
    return [
        Placed(n.id, n.node, n.parent_id, tuple(readers.get(n.id, ()))) for n in network.folding()
    ]


def trees_of(nodes: list) -> int:
    return len({tree_of(node) for node in nodes if node.panes is not None})


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


def _fingerprint(network: Network) -> object:
    return frozenset(
        (key, found.statistics, found.eager_from is not None)
        for key, found in network.classes.items()
    )


def _told(placement: Placement, network: Network) -> str:
    return (
        f"{len(placement.moved)} of {len(network.classes)} classes read on from"
        f" {len(placement.made)} new nodes; {len(placement.retired)} nodes fold no more"
    )
