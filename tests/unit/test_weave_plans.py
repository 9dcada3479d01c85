"""Costs and algorithms by example: the paper's Examples 3 and 4, and what each algorithm is for."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from weft.optimizer.weave.baselines import (
    exhaustive,
    insert_then_weave,
    no_share,
    random_plan,
    shared,
)
from weft.optimizer.weave.cost import PaperCosts, SparkCosts, Stream, cells_of, load_of
from weft.optimizer.weave.counts import MeasuredCounts
from weft.optimizer.weave.density import edge_rate
from weft.optimizer.weave.factor import factored, with_base
from weft.optimizer.weave.greedy import weave_share
from weft.optimizer.weave.local import improved, local_search
from weft.optimizer.weave.plan import covers_once, merge_gain, plan_cost, plan_of, weaveability
from weft.optimizer.weave.textbook import VARIANTS, edge_count, weave_share_textbook, work_of
from weft.optimizer.weave.windows import Query

EXAMPLE_3 = [Query("a", 4, 16), Query("b", 5, 10), Query("c", 4, 8)]
SLOW = Stream(rate=1.2)
SLIDES = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60)


def drawn(seed: int, count: int, slides: tuple[int, ...] = SLIDES) -> list[Query]:
    draw = random.Random(seed)
    picked = [draw.choice(slides) for _ in range(count)]
    return [Query(f"q{i:03}", s, draw.randint(s, 10 * s)) for i, s in enumerate(picked)]


def test_weaveability_of_example_2() -> None:
    assert weaveability([Query("a", 9, 12)], [Query("b", 6, 10)]) == pytest.approx(2 / 8)


def test_perfectly_weaveable() -> None:
    assert weaveability([EXAMPLE_3[0]], [EXAMPLE_3[2]]) == 1


def test_example_3_costs() -> None:
    # the paper prints 11.6 for the unshared plan; Eq. 3 gives 3·1.2 + 1.0 + 0.4 + 0.5
    assert plan_cost(no_share(EXAMPLE_3), EXAMPLE_3, SLOW) == pytest.approx(5.5)
    assert plan_cost((("a", "c"), ("b",)), EXAMPLE_3, SLOW) == pytest.approx(4.3)
    assert plan_cost(shared(EXAMPLE_3), EXAMPLE_3, SLOW) == pytest.approx(4.4)


def test_example_3_plan() -> None:
    assert weave_share(EXAMPLE_3, SLOW) == (("a", "c"), ("b",))
    assert merge_gain([EXAMPLE_3[0]], [EXAMPLE_3[2]], SLOW) == pytest.approx(1.2)
    assert merge_gain([EXAMPLE_3[0], EXAMPLE_3[2]], [EXAMPLE_3[1]], SLOW) == pytest.approx(-0.1)


def test_example_4_counts() -> None:
    x, y = Query("x", 5, 7), Query("y", 3, 3)
    assert (x.fragments, y.fragments) == ((2, 3), (3,))
    assert edge_count([x, y]) == 6 + 5 - 2  # common at 12 and 15
    assert edge_rate([x, y]).value == pytest.approx(9 / 15)


@pytest.mark.parametrize("seed", range(6))
def test_counted_work_is_the_work_done(seed: int) -> None:
    queries, stream = drawn(seed, 9), Stream(rate=2.0)
    counted = work_of(queries, stream)
    plan = weave_share(queries, stream)
    for name, switches in VARIANTS.items():
        found, work = weave_share_textbook(queries, stream, switches=switches)
        assert found == plan
        assert counted[name] == work, name


def test_each_optimisation_saves_work() -> None:
    work = list(work_of(drawn(1, 60), Stream(rate=5.0)).values())
    steps = [before.comparisons / after.comparisons for before, after in pairwise(work)]
    assert all(step > 1.2 for step in steps)
    assert work[0].benefits > 5 * work[1].benefits == 5 * work[2].benefits


def test_groups_keep_apart_what_would_multiply() -> None:
    by_user = Query("u", 10, 20, dimensions=frozenset({"user"}))
    by_shop = Query("s", 10, 20, dimensions=frozenset({"shop"}))
    few = Stream(100, MeasuredCounts({"user": 2, "shop": 3}))
    many = Stream(100, MeasuredCounts({"user": 200, "shop": 300}))
    assert weave_share([by_user, by_shop], few) == (("s", "u"),)
    assert weave_share([by_user, by_shop], many) == (("s",), ("u",))


def test_signatures_multiply_the_cells() -> None:
    queries = [Query(str(i), 10, 20, predicate=f"p{i}") for i in range(3)]
    assert cells_of(queries, MeasuredCounts()) == 8
    nested = MeasuredCounts(signature_counts={frozenset({"p0", "p1", "p2"}): 4})
    assert cells_of(queries, nested) == 4


def test_measured_groups_bound_the_others() -> None:
    counts = MeasuredCounts(
        {"a": 50, "b": 40, "c": 10}, {frozenset("ab"): 60, frozenset("abc"): 90}
    )
    assert counts.groups(frozenset("ab")) == 60
    assert counts.groups(frozenset("ac")) == 90  # 500, but no more than the whole
    assert counts.groups(frozenset("abcd")) == 50 * 40 * 10 * 100


def test_the_paper_has_one_cell() -> None:
    load = load_of(EXAMPLE_3, 0.4, 1.0)
    assert PaperCosts().tree(load, Stream(7.0)) == pytest.approx(7.0 + 0.4 * load.overlap)


def test_spark_costs_grow_with_edges_and_cells() -> None:
    model, stream = SparkCosts(), Stream(1000.0, batch=10.0)
    costs = [
        model.tree(load_of(EXAMPLE_3, rate, cells), stream)
        for rate, cells in ((0.3, 1.0), (0.5, 1.0), (0.5, 100.0), (1.0, 100.0))
    ]
    assert costs == sorted(costs)


def test_the_pyramid_makes_sharing_pay_where_the_paper_splits() -> None:
    queries = [Query("fine", 1, 1000), Query("coarse", 1000, 1_000_007)]
    assert weave_share(queries, Stream(10.0)) == (("coarse",), ("fine",))
    assert weave_share(queries, Stream(10.0), SparkCosts()) == (("coarse", "fine"),)


def test_reads_weigh_the_assembly() -> None:
    eager, lazy = Query("e", 10, 95), Query("l", 10, 95, reads=0.0)
    assert plan_cost((("e",),), [eager], SLOW) > plan_cost((("l",),), [lazy], SLOW) == 1.2


@pytest.mark.parametrize("rate,count", [(200, 5), (300, 10), (400, 15)])
def test_optimal_where_the_paper_is(rate: int, count: int) -> None:
    queries, stream = drawn(count, count), Stream(float(rate))
    best = plan_cost(exhaustive(queries, stream), queries, stream)
    assert plan_cost(weave_share(queries, stream), queries, stream) == pytest.approx(best)


def test_improvement_is_never_worse_and_sometimes_better() -> None:
    better = 0
    for seed in range(8):
        queries, stream = drawn(seed, 40, tuple(range(1, 41))), Stream(5.0)
        before = plan_cost(weave_share(queries, stream), queries, stream)
        after = plan_cost(improved(queries, stream), queries, stream)
        assert after <= before * (1 + 1e-3)  # sampled edge rates may disagree a little
        better += after < before * 0.999
    assert better > 0


def test_local_search_from_both_starts() -> None:
    queries, stream = drawn(2, 30), Stream(5.0)
    for start in (no_share(queries), random_plan(queries, seed=1)):
        found = local_search(queries, stream, start=start, iterations=300)
        assert covers_once(found, queries)
        assert plan_cost(found, queries, stream) <= plan_cost(start, queries, stream)


def test_insert_then_weave_covers() -> None:
    queries = drawn(3, 30)
    assert covers_once(insert_then_weave(queries, Stream(5.0)), queries)


def test_a_base_pays_on_a_fast_stream() -> None:
    queries = drawn(4, 40)
    found = factored(queries, Stream(1000.0))
    assert found.has_base
    assert found.cost < plan_cost(weave_share(queries, Stream(1000.0)), queries, Stream(1000.0))
    # λ + Σ (f + E·Ω)
    assert found.cost == pytest.approx(1000 + plan_cost(found.plan, queries, Stream(found.feed)))


def test_a_base_does_not_pay_for_one_tree() -> None:
    queries = [Query("q", 1, 5), Query("r", 1, 7)]
    assert not factored(queries, Stream(50.0)).has_base
    assert with_base(queries, Stream(50.0)).has_base


def test_canonical_plans() -> None:
    assert plan_of([["b", "a"], [], ["A"]]) == (("A",), ("a", "b"))


def test_nothing_to_weave() -> None:
    assert weave_share([], SLOW) == improved([], SLOW) == insert_then_weave([], SLOW) == ()
    assert factored([], SLOW).cost == 0
