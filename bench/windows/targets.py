"""The targets of the benchmark, from the figures of one invocation."""

from __future__ import annotations

import statistics

from bench.report import Target

NATIVE = 32  # native queries of the target
SPAN = 10  # batches that a median is taken over


def find(runs: list[dict], **wanted) -> list[dict]:
    """Runs with these values, by number of queries."""
    found = [run for run in runs if all(run.get(key) == value for key, value in wanted.items())]
    return sorted(found, key=lambda run: run["queries"])


def ratio(over: dict | None, under: dict | None, key: str = "seconds") -> float | None:
    if not over or not under or not under.get(key) or over.get(key) is None:
        return None
    return over[key] / under[key]


def flatness(batch_seconds: list[float]) -> dict:
    """How batch time goes from the 3rd batch on; `batch_seconds` begins with the 2nd.

    `ratio`: the last ten against the first ten. `growth`: the most that any ten stand above
    an earlier ten, which a compiler that warms up in the first batches cannot hide.
    """
    taken = batch_seconds[1:]
    span = max(1, min(SPAN, len(taken) // 2))
    medians = [statistics.median(taken[i : i + span]) for i in range(max(1, len(taken) - span + 1))]
    growth, least = 1.0, medians[0]
    for value in medians:
        least = min(least, value)
        growth = max(growth, value / least)
    return {
        "ratio": round(medians[-1] / medians[0], 3),
        "growth": round(growth, 3),
        "median_of": span,
        "slowest_seconds": round(max(taken), 3),
    }


def judge(runs: list[dict], flat: list[dict], classes: list[dict]) -> list[Target]:
    """One after the other, as the issue lists them."""
    return [
        *lazy_targets(runs),
        *native_targets(runs),
        *flat_targets(flat),
        *class_targets(classes),
        *mix_targets(runs),
    ]


def lazy_targets(runs: list[dict]) -> list[Target]:
    lazy = find(runs, engine="weft", answers="lazy", mix="plain")
    one = next((run for run in lazy if run["queries"] == 1), None)
    most = lazy[-1] if len(lazy) > 1 else None
    reads = next((r["read_ms_median_500_groups"] for r in lazy[-1:]), None)
    what = f"lazy: {most['queries'] if most else 1000:,} queries over 1"
    return [
        Target(what, ratio(most, one), 1.3, 1.1, caveat=caveat(most, one, queries=1000)),
        Target(
            "lazy: median read of a 500-group window",
            reads,
            30,
            unit="ms",
            caveat=caveat(*lazy[-1:], queries=1000),
        ),
    ]


def caveat(*runs: dict | None, queries: int = 1, rows: int = 2_000_000) -> str:
    """How the runs differ from what the target is set for: no verdict is given then."""
    there = [run for run in runs if run is not None]
    found = []
    if there and max(run["queries"] for run in there) < queries:
        found.append(f"the target's is {queries:,} queries")
    if any(run["rows"] < rows for run in there):
        found.append(f"the target's is {rows:,} rows")
    for run in there:
        others = set(run.get("strategies", {})) - {f"shared, {run['answers']}"}
        found += [f"queries ran as: {other}" for other in sorted(others)]
    return "; ".join(dict.fromkeys(found))


def native_targets(runs: list[dict]) -> list[Target]:
    native = find(runs, engine="spark")
    most = native[-1] if native else None
    eager = find(runs, engine="weft", answers="eager", mix=most["mix"] if most else "plain")
    over = eager[-1] if eager else None
    unequal = "" if most is None or most["queries"] >= NATIVE else f"the target's is {NATIVE}"
    names = (f"{over['queries']:,}" if over else "1,000", most["queries"] if most else 32)
    found = [
        Target(
            f"eager: {names[0]} queries over {names[1]} native ones",
            ratio(over, most), 0.2, 0.1, caveat=unequal or caveat(over, most, queries=1000),
        )
    ]  # fmt: skip
    one = next((run for run in native if run["queries"] == 1), None)
    for answers in ("lazy", "eager"):
        ours = find(runs, engine="weft", answers=answers, queries=1, mix=(one or {}).get("mix"))
        measured = ratio(ours[0] if ours else None, one)
        why = caveat(ours[0] if ours else None, one)
        found.append(
            Target(f"{answers}: 1 query over 1 native one", measured, 1.5, 1.0, caveat=why)
        )
    return found


def flat_targets(flat: list[dict]) -> list[Target]:
    if not flat:
        return [Target("batch time from the 3rd to the 100th batch", None, 1.2)]
    return [
        Target(
            f"{run['answers']}: batch time from the 3rd to the {run['batches']}th batch",
            run["flatness"]["ratio"],
            1.2,
            note=f"growth {run['flatness']['growth']:.2f}",
            caveat="the target's is 100 batches"
            if run["batches"] < 100
            else caveat(run, queries=1000, rows=0),
        )
        for run in flat
    ]


def class_targets(classes: list[dict]) -> list[Target]:
    what = "10,000 queries over 1,000 of the same classes"
    found = []
    for answers in ("lazy", "eager"):
        both = find(classes, answers=answers)
        if len(both) == 2:
            found.append(
                Target(f"{answers}: {what}", ratio(both[1], both[0]), 1.2, caveat=caveat(*both))
            )
    return found or [Target(what, None, 1.2)]


def mix_targets(runs: list[dict]) -> list[Target]:
    found = []
    for answers in ("lazy", "eager"):
        mixed = find(runs, engine="weft", answers=answers, mix="mixed")
        plain = find(runs, engine="weft", answers=answers, mix="plain")
        if mixed and plain and mixed[-1]["queries"] == plain[-1]["queries"]:
            measured = ratio(mixed[-1], plain[-1])
            why = caveat(mixed[-1], plain[-1], queries=1000)
            found.append(Target(f"{answers}: mixed over plain", measured, 2.0, caveat=why))
    return found or [Target("mixed over plain", None, 2.0)]
