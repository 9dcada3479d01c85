"""Vertical expansion against none (Fig 11), over increments from one row to many.

*With*: A and B stand in one warehouse, where B can be derived from A. *Without*: A and B stand in
warehouses of their own, and the time is the sum of both, less one batch without a query: they would
share a batch's fixed cost. IBT is the time of the increment, ITT that of one of its rows.

Two queries in one batch also gain because they overlap on the cores, derived or not. So the same
is measured with C, which cannot be derived from A, in B's place: only what B gains beyond C is
vertical expansion.

All warehouses are open at once and take turns, increment by increment: machines and compilers
drift, and a difference of times that were taken minutes apart means nothing.
"""

from __future__ import annotations

import random
import statistics
from contextlib import ExitStack
from functools import partial

from bench.argus.options import Sizes
from bench.argus.queries import CONTROL, PAIRS, SEED
from bench.argus.stage import ArgusStage, Stream, over
from bench.stage import Tell

Round = dict[str, float]  # seconds of one increment in each warehouse


def measure(stage: ArgusStage, stream: Stream, sizes: Sizes, tell: Tell) -> list[dict]:
    found = []
    for name, (a, b) in PAIRS.items():
        casts = {"none": [], "a": [a], "b": [b], "c": [CONTROL], "ab": [a, b], "ac": [a, CONTROL]}
        rounds, strategies = take_turns(stage, stream, casts, sizes, partial(tell, name))
        groups = {"a": a, "b": b, "c": CONTROL}
        found.append(
            {
                "pair": name,
                **{f"groups_{key}": groups_of(stream, sql) for key, sql in groups.items()},
                "strategies": strategies,
                "points": [point(size, rounds[size]) for size in sizes.increments],
            }
        )
    return found


def groups_of(stream: Stream, sql: str) -> int:
    duck = over(stream.dataset.name, stream.past())
    return duck.execute(f"SELECT count(*) FROM ({sql})").fetchone()[0]


def take_turns(
    stage: ArgusStage, stream: Stream, casts: dict[str, list[str]], sizes: Sizes, tell
) -> tuple[dict[int, list[Round]], list[str]]:
    """Rounds of each size, in each of which every warehouse has its turn, in a changing order."""
    dice = random.Random(SEED)
    rounds: dict[int, list[Round]] = {size: [] for size in sizes.increments}
    with ExitStack() as stack:
        open_ones = {}
        for name, queries in casts.items():
            tell()
            open_ones[name] = stack.enter_context(stage.standing(stream, queries))
            open_ones[name].increment(max(1, sizes.increments[-1] // 10))  # warms up
        for size in [size for _ in range(sizes.repeat) for size in sizes.increments]:
            tell()
            order = dice.sample(list(open_ones), len(open_ones))
            rounds[size].append({name: open_ones[name].increment(size) for name in order})
        for name, queries in casts.items():
            open_ones[name].check(list(range(len(queries))))
        strategies = [open_ones["ab"].strategy(i) for i in range(2)]
    return rounds, strategies


def point(size: int, rounds: list[Round]) -> dict:
    """Medians over the rounds; what is added, subtracted or divided comes from one round."""
    seconds = {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}
    without = statistics.median(r["a"] + r["b"] - r["none"] for r in rounds)
    gains = [(r["a"] + r["b"] - r["none"]) / r["ab"] for r in rounds]
    controls = [(r["a"] + r["c"] - r["none"]) / r["ac"] for r in rounds]
    return {
        "increment": size,
        "with_seconds": round(seconds["ab"], 4),
        "without_seconds": round(without, 4),
        "gain": round(statistics.median(gains), 3),
        "control_gain": round(statistics.median(controls), 3),
        "floor_seconds": round(seconds["none"], 4),
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
        "with_row_ms": round(seconds["ab"] / size * 1000, 4),
        "without_row_ms": round(without / size * 1000, 4),
    }
