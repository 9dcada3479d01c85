"""The paper's gains, beside ours."""

from __future__ import annotations

import statistics

from bench.argus.options import PAPER
from bench.report import Target

GAINS = {"fed": 6236 / 662, "med": 938 / 316}  # Table 4: naive over incremental, in total
MOST = 10.0  # "up to 10 times"


def judge(figures: dict) -> list[Target]:
    """What the issue asks for. Fig 10 and 11 have no number to reach: they are shown, not judged."""
    return [target for part in figures["incremental"] for target in incremental_targets(part)]


def incremental_targets(part: dict) -> list[Target]:
    name, why = part["dataset"], caveat(part)
    low, high = halves(part)
    return [
        Target(
            f"{name}: naive over incremental, {part['queries']} queries in total",
            part["naive_seconds"] / part["incremental_seconds"],
            round(GAINS[name], 1),
            at_least=True,
            note="the paper's Table 4",
            caveat=why,
        ),
        Target(
            f"{name}: the same, the quarter with the largest aggregations",
            large_gain(part),
            MOST,
            at_least=True,
            note="a query's part of the shared time is an equal one",
            caveat=why,
        ),
        Target(
            f"{name}: gain of a query alone, larger over smaller half",
            high / low,
            1.0,
            at_least=True,
            note=f"grows with the aggregation size; {part['sharing'][-1]['sampled']} sampled",
            caveat=why,
        ),
    ]


def large_gain(part: dict) -> float:
    """Chosen by size, not by time: the best of hundreds of single timings would be luck."""
    found = part["per_query"]
    large = found[-max(1, len(found) // 4) :]
    return statistics.mean(q["naive_seconds"] for q in large) / large[0]["shared_seconds"]


def caveat(part: dict) -> str:
    found = []
    paper = PAPER[part["dataset"]]
    if part["history"] < paper.history or part["queries"] < paper.queries:
        found.append("smaller than the paper's")
    if part["is_recomputed"]:
        found.append("some queries were recomputed")
    return "; ".join(found)


def halves(part: dict) -> tuple[float, float]:
    """The mean gain of the sampled queries with small and with large aggregation sizes."""
    gains = [
        q["naive_seconds"] / q["alone_seconds"] for q in part["per_query"] if q["alone_seconds"]
    ]
    middle = max(1, len(gains) // 2)
    return statistics.mean(gains[:middle]), statistics.mean(gains[middle:] or gains)
