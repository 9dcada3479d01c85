"""Vertical expansion against none (Fig 11), over increments from one row to many.

*With*: A and B stand in one warehouse, where B can be derived from A. *Without*: A and B stand in
warehouses of their own, and the time is the sum of both, less one batch without a query: they would
share a batch's fixed cost. IBT is the time of the increment, ITT that of one of its rows.

Two queries in one batch also gain because they overlap on the cores, derived or not. So the same
is measured with C, which cannot be derived from A, in B's place: only what B gains beyond C is
vertical expansion.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

from bench.argus.options import Sizes
from bench.argus.queries import CONTROL, PAIRS
from bench.argus.stage import Stage, Stream, over

Tell = Callable[[str], None]
Times = dict[int, float]  # by the size of the increment


def measure(stage: Stage, stream: Stream, sizes: Sizes, tell: Tell) -> list[dict]:
    def timed(what: str, *queries: str) -> tuple[Times, list[str]]:
        tell(f"vertical: {what}")
        return over_increments(stage, stream, list(queries), sizes)

    floor, _ = timed("no query")
    of_c, _ = timed("C", CONTROL)
    found = []
    for name, (a, b) in PAIRS.items():
        of_a, _ = timed(f"A of {name}", a)
        of_b, _ = timed(f"B of {name}", b)
        with_b, strategies = timed(f"A and B of {name}", a, b)
        with_c, _ = timed(f"A and C of {name}", a, CONTROL)
        groups = {"a": a, "b": b, "c": CONTROL}
        found.append(
            {
                "pair": name,
                **{f"groups_{key}": groups_of(stream, sql) for key, sql in groups.items()},
                "strategies": strategies,
                "points": [
                    point(n, floor, of_a, of_b, of_c, with_b, with_c) for n in sizes.increments
                ],
            }
        )
    return found


def groups_of(stream: Stream, sql: str) -> int:
    duck = over(stream.dataset.name, stream.past())
    return duck.execute(f"SELECT count(*) FROM ({sql})").fetchone()[0]


def point(
    size: int, floor: Times, of_a: Times, of_b: Times, of_c: Times, with_b: Times, with_c: Times
) -> dict:
    without = of_a[size] + of_b[size] - floor[size]
    without_c = of_a[size] + of_c[size] - floor[size]
    return {
        "increment": size,
        "with_seconds": round(with_b[size], 4),
        "without_seconds": round(without, 4),
        "gain": round(without / with_b[size], 3),
        "control_gain": round(without_c / with_c[size], 3),
        "a_seconds": round(of_a[size], 4),
        "b_seconds": round(of_b[size], 4),
        "c_seconds": round(of_c[size], 4),
        "a_and_c_seconds": round(with_c[size], 4),
        "floor_seconds": round(floor[size], 4),
        "with_row_ms": round(with_b[size] / size * 1000, 4),
        "without_row_ms": round(without / size * 1000, 4),
    }


def over_increments(
    stage: Stage, stream: Stream, queries: list[str], sizes: Sizes
) -> tuple[Times, list[str]]:
    """The median time of an increment of each size. The sizes take turns, so that what drifts
    drifts for all of them alike."""
    with stage.standing(stream, queries) as standing:
        standing.increment(max(1, sizes.increments[-1] // 10))  # warms up
        taken: dict[int, list[float]] = {size: [] for size in sizes.increments}
        for _ in range(sizes.repeat):
            for size in sizes.increments:
                taken[size].append(standing.increment(size))
        standing.check(list(range(len(queries))))
        strategies = [standing.strategy(i) for i in range(len(queries))]
    return {size: statistics.median(times) for size, times in taken.items()}, strategies
