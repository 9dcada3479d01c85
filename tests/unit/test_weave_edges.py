"""Fragments, edges and edge rates: the paper's Example 2, and every route against brute force."""

from __future__ import annotations

import math
import random

import pytest

from weft.errors import InvalidWindow
from weft.optimizer.weave import density as routes
from weft.optimizer.weave.density import density, edge_rate, estimate, without_contained
from weft.optimizer.weave.space import PeriodSpace, SampleSpace, grown, rows_of, space_for
from weft.optimizer.weave.windows import (
    Query,
    composite_slide,
    cumulating,
    edges,
    in_ticks,
    meet,
)

A, B = Query("a", slide=9, length=12), Query("b", slide=6, length=10)


def brute_force(queries: list[Query]) -> float:
    """Windows laid out one by one over one period: the share of ticks where one starts or ends."""
    period = composite_slide(queries)
    found = set()
    for query in queries:
        for k in range(period // query.slide):
            start = query.offset + k * query.slide
            found |= {start % period, (start + query.length) % period}
    return len(found) / period


def drawn(seed: int, count: int, longest: int) -> list[Query]:
    draw = random.Random(seed)
    slides = [draw.randint(1, longest) for _ in range(count)]
    return [
        Query(str(i), s, draw.randint(1, 20 * s), draw.choice([0, 0, draw.randint(0, s)]))
        for i, s in enumerate(slides)
    ]


def test_example_2_fragments() -> None:
    assert A.fragments == (3, 6)
    assert B.fragments == (4, 2)
    assert A.edge_rate == pytest.approx(0.22, abs=0.005)
    assert B.edge_rate == pytest.approx(0.33, abs=0.005)


def test_example_2_shared() -> None:
    assert composite_slide([A, B]) == 18
    assert edges([A, B]) == (3, 4, 6, 9, 10, 12, 16, 18)
    assert edge_rate([A, B]).value == pytest.approx(8 / 18)
    # each of the two looks at the combined edges: 0.88 operations per second instead of 0.55
    assert 2 * edge_rate([A, B]).value == pytest.approx(0.888, abs=0.001)


def test_one_fragment_when_the_slide_divides_the_length() -> None:
    assert Query("q", 5, 10).fragments == (5,)
    assert Query("q", 5, 10).classes == ((5, 0),)


def test_half_a_slide_is_one_class() -> None:
    assert Query("q", 6, 9).classes == Query("r", 3, 3).classes == ((3, 0),)


def test_offsets_shift_the_edges() -> None:
    assert Query("q", 10, 13, offset=4).classes == ((10, 4), (10, 7))
    assert edges([Query("q", 10, 10, offset=4)]) == (4,)


def test_common_edges_by_remainders() -> None:
    found = {meet(a, b) for a in A.classes for b in B.classes}
    assert found == {None, (18, 0), (18, 12)}  # the paper's (12, 18)


def test_a_window_needs_a_tick() -> None:
    with pytest.raises(InvalidWindow):
        Query("q", 0, 10)


def test_ticks() -> None:
    assert in_ticks([(60_000_000, 300_000_000), (90_000_000, 0)]) == (30_000_000, [(2, 10), (3, 0)])


def test_cumulating_windows_are_half_as_long_on_average() -> None:
    found = cumulating("q", size=60, step=10)
    assert (found.slide, found.length) == (10, 40)


@pytest.mark.parametrize("seed", range(30))
def test_edge_rate_is_that_of_brute_force(seed: int) -> None:
    queries = drawn(seed, count=random.Random(seed).randint(1, 5), longest=14)
    assert edge_rate(queries).value == pytest.approx(brute_force(queries), abs=1e-12)


@pytest.mark.parametrize("route", ["thinned", "inclusion", "estimated"])
@pytest.mark.parametrize("seed", range(12))
def test_other_routes_agree(seed: int, route: str, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = drawn(seed, count=4, longest=40)
    monkeypatch.setattr(routes, "BITMAP_TICKS", 0 if route != "thinned" else 1 << 22)
    if route == "thinned":  # refuse the whole composite slide, but allow the shared one
        lcm = math.lcm(*without_contained({c for q in queries for c in q.classes}))
        monkeypatch.setattr(routes, "BITMAP_TICKS", max(1, lcm - 1))
    if route == "estimated":
        monkeypatch.setattr(routes, "INCLUSION_TERMS", 0)
    found = edge_rate(queries)
    assert abs(found.value - brute_force(queries)) <= found.error + 1e-9


def test_astronomic_composite_slides_are_quick_and_say_how_sure_they_are() -> None:
    draw = random.Random(7)
    slides = [draw.randint(1000, 100_000) for _ in range(400)]
    queries = [Query(str(i), s, draw.randint(s, 50 * s)) for i, s in enumerate(slides)]
    assert composite_slide(queries) > 10**200
    found = edge_rate(queries)
    assert found.route == "estimated"
    total = sum(query.edge_rate for query in queries)
    assert 0 < found.error < 0.05 * found.value
    assert max(q.edge_rate for q in queries) <= found.value <= total


def test_three_large_slides_are_exact() -> None:
    slides = (99_991, 99_989, 99_971)  # primes
    found = density([(s, 0) for s in slides])
    assert found.is_exact
    assert found.value == pytest.approx(1 - math.prod(1 - 1 / s for s in slides), rel=1e-9)


def test_the_estimate_is_the_same_every_time() -> None:
    residues = without_contained({c for q in drawn(3, 30, 90_000) for c in q.classes})
    assert estimate(residues) == estimate(residues)


def test_bitmaps_are_exact_within_one_period() -> None:
    queries = drawn(5, 5, 12)
    space = space_for(q.classes for q in queries)
    assert isinstance(space, PeriodSpace)
    rows = rows_of(space, [[q.classes for q in queries]])
    assert space.mass(rows)[0] / space.scale == pytest.approx(brute_force(queries))


def test_sampled_bitmaps_come_close() -> None:
    queries = drawn(11, 60, 50_000)
    space = space_for(q.classes for q in queries)
    assert isinstance(space, SampleSpace)
    for part in (queries, queries[:10], queries[20:50]):
        rows = rows_of(space, [[q.classes for q in part]])
        assert space.mass(rows)[0] == pytest.approx(edge_rate(part).value, rel=0.03)


def test_a_period_grows_with_a_query() -> None:
    trees = [[A.classes], [B.classes]]
    space = space_for([A.classes, B.classes])
    new = Query("n", 5, 8)
    wider, rows = grown(space, new.classes, trees, rows_of(space, trees))
    assert wider.period == 90
    assert (rows == rows_of(wider, trees)).all()


def test_samples_grow_with_a_query() -> None:
    queries = drawn(13, 60, 50_000)
    trees = [[q.classes for q in queries[:30]], [q.classes for q in queries[30:]]]
    space = space_for(q.classes for q in queries)
    new = Query("n", 31_337, 40_000)
    wider, rows = grown(space, new.classes, trees, rows_of(space, trees))
    assert (rows == rows_of(wider, trees)).all()
    own = rows_of(wider, [[new.classes]])
    assert wider.mass(own)[0] == pytest.approx(new.edge_rate, rel=0.05)


def test_a_period_that_grows_too_long_is_sampled() -> None:
    space = space_for([A.classes])
    rows = rows_of(space, [[A.classes]])
    sampled, rows = grown(space, Query("n", 1_000_003, 1_000_003).classes, [[A.classes]], rows)
    assert isinstance(sampled, SampleSpace)
    assert sampled.mass(rows)[0] == pytest.approx(A.edge_rate, rel=0.02)
