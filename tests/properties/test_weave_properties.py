"""Laws of the weave optimiser, over workloads that nobody chose."""

from __future__ import annotations

import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.optimizer.weave.baselines import (
    exhaustive,
    insert_then_weave,
    no_share,
    random_plan,
    shared,
)
from weft.optimizer.weave.cost import CostModel, PaperCosts, SparkCosts, Stream
from weft.optimizer.weave.counts import MeasuredCounts
from weft.optimizer.weave.density import edge_rate
from weft.optimizer.weave.greedy import weave_share
from weft.optimizer.weave.incremental import IncrementalWeave
from weft.optimizer.weave.local import improved, local_search
from weft.optimizer.weave.plan import Plan, covers_once, plan_cost
from weft.optimizer.weave.textbook import VARIANTS, edge_count, weave_share_textbook
from weft.optimizer.weave.windows import Query, composite_slide, edges

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SLIDES = st.sampled_from([1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 20, 24, 30, 60, 120])
NO_NAMES = frozenset[str]()
COUNTS = MeasuredCounts({"a": 3, "b": 5}, {frozenset("ab"): 11})


@st.composite
def windows(draw: st.DrawFn, most: int = 8, is_plain: bool = False) -> list[Query]:
    found = []
    for i in range(draw(st.integers(1, most))):
        slide = draw(SLIDES)
        found.append(
            Query(
                f"q{i:02}",
                slide,
                draw(st.integers(slide, 12 * slide)),
                0 if is_plain else draw(st.integers(0, slide - 1)),
                NO_NAMES if is_plain else draw(st.sets(st.sampled_from("ab")).map(frozenset)),
                None if is_plain else draw(st.sampled_from([None, None, "p"])),
            )
        )
    return found


RATES = st.floats(0.1, 500.0)
STREAMS = st.builds(Stream, RATES, st.just(COUNTS), st.floats(1, 100))
MODELS = st.sampled_from([PaperCosts(), SparkCosts(), SparkCosts(per_tree=1e-4, node=1e-5)])


def algorithms(queries: list[Query], stream: Stream, model: CostModel) -> dict[str, Plan]:
    start = random_plan(queries, seed=len(queries))
    return {
        "no share": no_share(queries),
        "shared": shared(queries),
        "random": start,
        "insert then weave": insert_then_weave(queries, stream, model),
        "local search": local_search(queries, stream, model, start=start, iterations=50),
        "weave share": weave_share(queries, stream, model),
        "improved": improved(queries, stream, model),
    }


@FEW
@given(windows(), STREAMS, MODELS)
def test_plans_cover_every_query_once_and_none_beats_exhaustive(queries, stream, model) -> None:
    best = exhaustive(queries, stream, model)
    assert covers_once(best, queries)
    least = plan_cost(best, queries, stream, model)
    for name, plan in algorithms(queries, stream, model).items():
        assert covers_once(plan, queries), name
        assert plan_cost(plan, queries, stream, model) >= least * (1 - 1e-9), name


@FEW
@given(windows(most=30), STREAMS, MODELS)
def test_weave_share_is_no_worse_than_no_share_and_shared(queries, stream, model) -> None:
    found = plan_cost(weave_share(queries, stream, model), queries, stream, model)
    better = plan_cost(improved(queries, stream, model), queries, stream, model)
    for other in (no_share(queries), shared(queries)):
        # Spark costs bundle equal edges before weaving: see forest, "up to the pyramid's levels"
        assert found <= plan_cost(other, queries, stream, model) * (1 + 1e-9)
    assert better <= found * (1 + 1e-9)


@FEW
@given(windows(most=7), RATES)
def test_optimisations_change_the_work_and_not_the_plan(queries, rate) -> None:
    stream = Stream(rate)
    plan = weave_share(queries, stream)
    benefits, comparisons = [], []
    for switches in VARIANTS.values():
        found, work = weave_share_textbook(queries, stream, switches=switches)
        assert found == plan
        benefits.append(work.benefits)
        comparisons.append(work.comparisons)
    assert benefits == sorted(benefits, reverse=True)
    assert comparisons == sorted(comparisons, reverse=True)


@FEW
@given(windows(most=6))
def test_edge_counting_is_exact(queries) -> None:
    period = composite_slide(queries)
    assert len(edges(queries)) == edge_count(queries)
    assert math.isclose(edge_rate(queries).value, edge_count(queries) / period, rel_tol=1e-12)


@FEW
@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=40), st.randoms())
def test_any_slides_are_counted_in_time_and_in_bounds(slides, random) -> None:
    queries = [Query(str(i), s, random.randint(s, 20 * s)) for i, s in enumerate(slides)]
    found = edge_rate(queries)
    assert max(q.edge_rate for q in queries) <= found.value + found.error + 1e-12
    assert found.value - found.error <= min(1.0, sum(q.edge_rate for q in queries)) + 1e-12


@FEW
@given(windows(most=12), st.lists(st.integers(0, 11), max_size=8), STREAMS, st.floats(0, 1))
def test_incremental_stays_within_its_tolerance(queries, deleted, stream, tolerance) -> None:
    weave = IncrementalWeave(queries[:1], stream, tolerance=tolerance)
    changes = [(weave.add, query) for query in queries[1:]]
    known = [query.id for query in queries]
    changes += [(weave.delete, known[i]) for i in dict.fromkeys(deleted) if i < len(known)]
    for change, what in changes:
        step = change(what)
        everyone = list(weave.queries.values())
        assert covers_once(weave.plan, everyone)
        if step.is_due:
            step = weave.reconstruct()
            assert not step.is_due  # a fresh plan lies on the curve
        if everyone:
            assert step.deviation <= tolerance + 1e-9
            assert math.isclose(step.cost, plan_cost(weave.plan, everyone, stream), rel_tol=1e-9)


@FEW
@given(windows(most=20, is_plain=True), STREAMS, st.randoms())
def test_the_order_of_the_queries_does_not_change_the_cost_of_a_plan(
    queries, stream, random
) -> None:
    plan = weave_share(queries, stream)
    shuffled = list(queries)
    random.shuffle(shuffled)
    assert plan_cost(plan, shuffled, stream) == plan_cost(plan, queries, stream)
