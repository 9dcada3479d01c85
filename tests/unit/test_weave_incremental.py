"""Plans that follow their queries and their stream."""

from __future__ import annotations

import math
import random

import pytest

from weft.optimizer.weave.adaptive import Policy, Watch, adapt
from weft.optimizer.weave.cost import Stream
from weft.optimizer.weave.counts import MeasuredCounts
from weft.optimizer.weave.greedy import weave_share
from weft.optimizer.weave.incremental import Curve, IncrementalWeave
from weft.optimizer.weave.plan import covers_once, plan_cost
from weft.optimizer.weave.windows import Query

STREAM = Stream(5.0)
SLIDES = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60)


def drawn(seed: int, count: int, first: int = 0) -> list[Query]:
    draw = random.Random(seed)
    picked = [draw.choice(SLIDES) for _ in range(count)]
    return [Query(f"q{first + i:03}", s, draw.randint(s, 10 * s)) for i, s in enumerate(picked)]


def test_adding_keeps_the_cost_right() -> None:
    weave = IncrementalWeave(drawn(1, 20), STREAM, tolerance=math.inf)
    for query in drawn(2, 20, first=20):
        step = weave.add(query)
        everyone = list(weave.queries.values())
        assert covers_once(weave.plan, everyone)
        assert step.cost == pytest.approx(plan_cost(weave.plan, everyone, STREAM))


def test_deleting_down_to_nothing() -> None:
    queries = drawn(3, 15)
    weave = IncrementalWeave(queries, STREAM, tolerance=math.inf)
    for query in queries:
        step = weave.delete(query.id)
        left = list(weave.queries.values())
        assert covers_once(weave.plan, left)
        assert step.cost == pytest.approx(plan_cost(weave.plan, left, STREAM))
    assert weave.plan == ()
    assert weave.add(queries[0]).cost > 0


def test_a_new_slide_makes_room_for_itself() -> None:
    weave = IncrementalWeave(drawn(4, 10), STREAM, tolerance=math.inf)
    for slide in (7, 11, 99_991):  # the last one makes the composite slide intractable
        step = weave.add(Query(f"n{slide}", slide, 3 * slide + 1))
    everyone = list(weave.queries.values())
    assert covers_once(weave.plan, everyone)
    assert step.cost == pytest.approx(plan_cost(weave.plan, everyone, STREAM), rel=0.02)
    weave.delete("n7")
    assert covers_once(weave.plan, weave.queries.values())


def test_the_curve_extrapolates() -> None:
    curve = Curve().with_point(50, 100.0).with_point(100, 160.0)
    assert curve.slope == pytest.approx(1.2)
    assert curve.expected(110) == pytest.approx(172.0)
    assert Curve().with_point(10, 30.0).expected(12) == pytest.approx(36.0)


def test_a_new_point_close_by_keeps_the_slope_of_farther_ones() -> None:
    curve = Curve().with_point(50, 100.0).with_point(100, 160.0).with_point(101, 150.0)
    assert curve.slope == pytest.approx(50 / 51)


def test_a_query_is_not_expected_to_cost_more_than_the_average_one() -> None:
    assert Curve().with_point(50, 10.0).with_point(100, 160.0).slope == pytest.approx(1.6)


def test_the_curve_reaches_only_so_far() -> None:
    queries = drawn(1, 40)
    near = IncrementalWeave(queries[:20], STREAM, tolerance=0.2)
    far = IncrementalWeave(queries[:20], STREAM, tolerance=10.0, reach=math.inf)
    assert any(near.add(query).is_due for query in queries[20:25])
    assert not any(far.add(query).is_due for query in queries[20:])


def test_tolerance_zero_asks_for_reconstruction_and_infinity_never() -> None:
    eager = IncrementalWeave(drawn(5, 20), STREAM, tolerance=0.0)
    never = IncrementalWeave(drawn(5, 20), STREAM, tolerance=math.inf)
    asked = 0
    for query in drawn(6, 30, first=20):
        if eager.add(query).is_due:
            asked += 1
            eager.reconstruct()
        assert not never.add(query).is_due
    assert asked > 0
    assert eager.cost <= never.cost * 1.01


def test_a_plan_woven_elsewhere_is_adopted() -> None:
    weave = IncrementalWeave(drawn(7, 20), STREAM)
    plan = weave_share(list(weave.queries.values()), STREAM)  # of a snapshot
    weave.add(Query("late", 7, 14))
    weave.delete("q003")
    weave.adopt(plan)
    assert covers_once(weave.plan, weave.queries.values())


def test_a_name_twice_is_refused() -> None:
    weave = IncrementalWeave(drawn(8, 5), STREAM)
    with pytest.raises(ValueError, match="q000"):
        weave.add(Query("q000", 5, 5))


def look(queries: list[Query], rates: list[float], policy: Policy) -> list[str]:
    """The reasons of the changes while the rate goes through these values, one look per tick."""
    plan, watch, said = weave_share(queries, Stream(rates[0])), Watch(Stream(rates[0]), 0.0), []
    for now, rate in enumerate(rates, start=1):
        decision, watch = adapt(queries, plan, Stream(rate), watch, float(now), policy=policy)
        if decision.reweave:
            plan = decision.plan
            said.append(f"{now}: {decision.reason}")
    return said


def test_a_lasting_change_is_followed_once() -> None:
    said = look(drawn(9, 40), [1.0] * 5 + [500.0] * 40, Policy(patience=10))
    assert len(said) == 1
    assert "rows per tick 1 → 500" in said[0]
    assert "more than a fresh one" in said[0]


def test_noise_changes_nothing() -> None:
    draw = random.Random(1)
    rates = [100.0 * draw.uniform(0.93, 1.07) for _ in range(60)]
    assert look(drawn(9, 40), rates, Policy(patience=5)) == []


def test_a_spike_that_passes_changes_nothing() -> None:
    rates = ([20.0] * 10 + [40.0]) * 6
    assert look(drawn(9, 40), rates, Policy(patience=30)) == []


def test_swinging_rates_do_not_make_plans_flap() -> None:
    rates = [1.0, 500.0] * 60
    assert len(look(drawn(9, 40), rates, Policy(patience=60))) <= 4


def test_group_counts_are_watched_too() -> None:
    queries = [
        Query("u", 10, 20, dimensions=frozenset({"user"})),
        Query("s", 10, 20, dimensions=frozenset({"shop"})),
    ]
    before = Stream(100.0, MeasuredCounts({"user": 2, "shop": 3}))
    after = Stream(100.0, MeasuredCounts({"user": 200, "shop": 300}))
    plan, watch = weave_share(queries, before), Watch(before, 0.0)
    assert plan == (("s", "u"),)
    decision, watch = adapt(queries, plan, after, watch, 100.0, policy=Policy(patience=10))
    assert decision.reweave
    assert decision.plan == (("s",), ("u",))
    assert "cells of the tree of s 6 → 60,000" in decision.reason
