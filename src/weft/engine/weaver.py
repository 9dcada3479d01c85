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
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from weft.catalog.records import StreamRecord
from weft.engine.measuring import COSTS, drifts, load_costs, load_measures, observation
from weft.errors import WeftError
from weft.optimizer.changing import logged, placed
from weft.optimizer.costing import network_cost
from weft.optimizer.feeding import plan_cost
from weft.optimizer.fitting import fit
from weft.optimizer.lattice import PlannedNode
from weft.optimizer.measures import Measures
from weft.optimizer.network import Network
from weft.optimizer.placing import needs_of, switched
from weft.optimizer.planning import plan_nodes
from weft.optimizer.weave.adaptive import Policy, weigh
from weft.optimizer.weaving import Weaving

if TYPE_CHECKING:
    from weft.engine.core import Engine

PATIENCE = 16.0  # batches at the tolerance before the plan changes
SAMPLE_EVERY = 4  # looks between two samples
LEARN_FROM = 4  # batches, before costs are fitted to them
TRUST = 8.0  # batches that the costs so far are worth
Plan = tuple[PlannedNode, ...]


@dataclass
class Watched:
    """What is remembered of a stream between two looks."""

    looks: int = 0
    batch_id: int = -1
    looked: object = None  # the batch and the classes of the last look
    regret: float = 0.0
    classes: object = None  # for which the fresh plan was woven
    fresh: Plan | None = None
    fresh_for: Measures | None = None
    weaving: Future | None = None
    said: str = "not looked at yet"
    stands_for: Measures | None = None  # as it was when the plan that stands was chosen


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
        if watched.looked == (stream.batch_id, _fingerprint(network)) and watched.weaving is None:
            return  # nothing came since the last look
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
            self._weave(watched, network, classes, weaving)
        if watched.fresh is not None:
            self._judge(stream, network, watched, weaving.measures)
        watched.batch_id = stream.batch_id
        watched.looked = (stream.batch_id, classes)

    def _knows(self, stream_id: int, network: Network) -> bool:
        from weft.spark.profiling import atoms_of

        return self.weaving(stream_id).measures.profile.knows(atoms_of(network.folding()))

    def _sample(self, stream: StreamRecord) -> None:
        try:
            profile = self._engine.batches.profile(stream.id)
        except WeftError:  # a damaged file stops those who need it, not those who count
            return
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

    def _collect(self, watched: Watched) -> None:
        if watched.weaving is not None and watched.weaving.done():
            watched.fresh, watched.weaving = watched.weaving.result(), None

    def settle(self) -> None:
        """Wait for plans that are being woven, so that the next look has them."""
        wait([w.weaving for w in self._watched.values() if w.weaving is not None])

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
            changes = drifts(watched.stands_for, measures, self.policy.drift)
            changes = changes or ["it was measured for the first time, or queries came and went"]
            self.switch(stream.id, watched.fresh, "; ".join([*changes, verdict.text]))
            watched.regret, watched.stands_for = 0.0, measures
        elif watched.stands_for is None and watched.batch_id >= 0:
            watched.stands_for = measures

    def switch(self, stream_id: int, plan: Plan, why: str) -> bool:
        """Change to a plan between two batches. False: it is the one that stands."""
        batches = self._engine.batches
        network, tick = batches.network(stream_id), self._engine.become_writer().next()
        placement = switched(network, plan, tick)
        if not placement.moved and not placement.made and not placement.retired:
            return False
        row = logged(network, placement, self.weaving(stream_id).measures, tick, why)
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


def _fingerprint(network: Network) -> object:
    return frozenset(
        (key, found.statistics, found.eager_from is not None)
        for key, found in network.classes.items()
    )
