"""The same as the engine does it: classes by panes and kinds, at the prices of a batch, into nodes.

`plan_nodes` weaves a network from scratch, `place` finds a place for one more query in a network
that stands. Neither reads a row or asks Spark; a placement is what a registration then carries out.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

from sqlglot import parse_one

from bench.weave.workload import drawn
from weft.logical.statistics import Dimension, Statistic
from weft.logical.windows import Hopping
from weft.optimizer.factors import EVERYTHING, Predicate, factor
from weft.optimizer.measures import Measures
from weft.optimizer.need import Need
from weft.optimizer.network import Network
from weft.optimizer.nodes import AggregateClass, LiveClass
from weft.optimizer.placing import Placement, place
from weft.optimizer.planning import plan_nodes
from weft.optimizer.weaving import Weaving

Row = dict[str, object]
DIMENSIONS = tuple(Dimension(name, "string", name) for name in ("sym", "user", "venue", "kind"))
CASES = ("lengths of any slides", "lengths of whole slides")


def statistic(text: str) -> Statistic:
    return Statistic(text, "double", text, "sum({})", "sum({})")


def predicate(text: str) -> Predicate:
    return factor(parse_one(text, dialect="spark"), lambda _: "int")


STATISTICS = tuple(statistic(f"{name}({of})") for name in ("sum", "max") for of in ("price", "qty"))
PREDICATES = (
    EVERYTHING,
    *(predicate(f"qty > {constant}") for constant in range(20)),
    *(predicate(f"price % {constant} = 0") for constant in range(2, 12)),
)


def asked(count: int, is_whole: bool, seed: int = 1) -> list[Need]:
    """Slides of any whole second up to 100,000; up to three dimensions, one of 31 predicates."""
    dice = random.Random(seed)
    found: dict[str, Need] = {}
    for query in drawn(count, seed=seed, any_slide=True):
        length = query.slide * round(query.overlap) if is_whole else query.length
        window = Hopping(timedelta(seconds=length), timedelta(seconds=query.slide))
        by = tuple(sorted(dice.sample(DIMENSIONS, dice.randint(0, 3)), key=lambda d: d.column))
        value = AggregateClass(1, window, by, dice.choice(PREDICATES), False)
        need = Need(value, (dice.choice(STATISTICS),))
        found[need.key] = need
    return list(found.values())


def engine_speed(count: int, added: int) -> Iterator[Row]:
    """Processor time of a plan from scratch, and of placing one query, by what it brings."""
    weaving = Weaving(Measures(is_measured=True))
    for is_whole, case in enumerate(CASES):
        needs = asked(count, bool(is_whole))
        base = {"slides": case, "queries": len(needs)}
        began = time.process_time()
        plan_nodes(needs, weaving)
        took = time.process_time() - began
        yield {**base, "what": "engine: plan from scratch", "cpu ms": 1e3 * took}
        network = settled(place(Network(1), needs, 1, True, weaving))
        for what, new in NEW.items():
            times = []
            for i, need in enumerate(random.Random(2).sample(needs, added)):
                began = time.process_time()
                found = place(network, [new(need, i)], 2, True, weaving)
                times.append(time.process_time() - began)
                assert bool(found.made) == (what != FAMILIAR), what
            name = f"engine: place one query {what}, median"
            yield {**base, "what": name, "cpu ms": 1e3 * statistics.median(times)}


def _with_window(need: Need, ms: int) -> Need:
    window = Hopping(timedelta(milliseconds=ms), timedelta(milliseconds=ms))
    return replace(need, value=replace(need.value, window=window))


def _with_dimension(need: Need, i: int) -> Need:
    dimension = Dimension(f"column{i}", "string", f"column{i}")
    return replace(need, value=replace(need.value, dimensions=(dimension,)))


def _with_statistic(need: Need, i: int) -> Need:
    return replace(_longer(need), statistics=(statistic(f"sum(column{i})"),))


def _longer(need: Need) -> Need:
    window = need.value.window
    return replace(need, value=replace(need.value, window=Hopping(window.slide * 3, window.slide)))


FAMILIAR = "that a node suits"
NEW: dict[str, Callable[[Need, int], Need]] = {
    FAMILIAR: lambda need, i: _longer(need),
    "with a new statistic": _with_statistic,
    "with new dimensions": _with_dimension,
    "with finer panes": lambda need, i: _with_window(need, 707 + 100 * i),
}


def settled(placement: Placement) -> Network:
    """The network as a first registration leaves it."""
    nodes = {-node.id: node for node in placement.made}
    nodes = {
        id: replace(node, id=id, parent_id=None if node.parent_id is None else -node.parent_id)
        for id, node in nodes.items()
    }
    classes = {}
    for i, need in enumerate(placement.needs, 1):
        route = placement.routes[need.key]
        route = replace(route, node_id=-route.node_id)
        kept = frozenset(need.statistics)
        classes[need.key] = LiveClass(i, need.value, (route,), None, kept)
    return Network(1, nodes, classes)
