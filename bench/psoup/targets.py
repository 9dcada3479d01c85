"""The issue's bounds, beside what was measured."""

from __future__ import annotations

from bench.psoup.options import FULL
from bench.psoup.reading import TABLE_2
from bench.report import Target

SMALLER = "smaller than the target's"


def judge(figures: dict) -> list[Target]:
    return [
        *reading(figures),
        *arriving(figures),
        *matching(figures),
        *registering(figures),
        *ranked(figures),
    ]


def reading(figures: dict) -> list[Target]:
    points = figures.get("reading", {}).get("points", [])
    largest = max((p["x"] for p in points if p["experiment"] == "window"), default=0)
    why = "" if largest == max(FULL.windows) else SMALLER
    found = []
    for point in points:
        if (point["experiment"], point["kind"], point["x"]) == ("predicates", "interval", 1):
            found.append(Target(
                "read of a sliding window of 2^15 rows, partial", point["ms"]["partial"], 20.0,
                unit="ms", note="median, without any Spark job",
            ))  # fmt: skip
        if point["experiment"] == "window" and point["x"] == min(largest, TABLE_2):
            ms = point["ms"]
            best = min(ms["partial"], ms["complete"])
            for way in ("none, on Spark", "none"):
                found.append(Target(
                    f"{point['kind']}, 2^15 tuples: {way} over materialised", ms[way] / best, 10.0,
                    at_least=True, caveat=why,
                    note="the paper: one to two orders" if way != "none" else "none on DuckDB;"
                    " complete in the memory of the process that runs the pipeline",
                ))  # fmt: skip
    return found


def arriving(figures: dict) -> list[Target]:
    points = figures.get("arriving") or []
    if not points:
        return []
    leads = {p["queries"]: p["partial, indexed"] / p["partial, not indexed"] for p in points}
    count = 4_096 if 4_096 in leads else max(leads)
    growth = leads[max(leads)] / leads[min(leads)]
    why = "" if 4_096 in leads else SMALLER
    return [
        Target(f"arrival rate, indexed over not, {count:,} queries", leads[count], 10.0,
               at_least=True, caveat=why),
        Target(f"that lead, {max(leads):,} over {min(leads):,} queries", growth, 1.0,
               at_least=True, note="grows with the number of queries", caveat=why),
    ]  # fmt: skip


def matching(figures: dict) -> list[Target]:
    part = figures.get("matching")
    if not part:
        return []
    seconds = {int(count): value for count, value in part["seconds"].items()}
    why = "" if part["rows"] >= FULL.matched else SMALLER
    found = []
    if {128, 4_096} <= set(seconds):
        growth = seconds[4_096] / seconds[128]
        found.append(
            Target("cost of matching a row, 4,096 over 128 queries", growth, 2.0, caveat=why)
        )
    count = FULL.queries if FULL.queries in seconds else max(seconds)
    found.append(Target(
        f"{part['rows']:,} rows matched against {count:,} queries, over a plain pass",
        seconds[count] / part["plain_seconds"], 3.0, caveat=why,
        note="a pass that evaluates 10 of them and writes the rows",
    ))  # fmt: skip
    return found


def registering(figures: dict) -> list[Target]:
    part = figures.get("registering")
    if not part:
        return []
    is_full = part["rows"] >= FULL.matched and part["queries"] >= FULL.queries
    return [Target(
        f"{part['queries']:,} queries registered over {part['rows']:,} rows and readable, over a scan",
        part["readable_seconds"] / part["scan_seconds"], 5.0, caveat="" if is_full else SMALLER,
        note="one Spark pass over all columns of the rows",
    )]  # fmt: skip


def ranked(figures: dict) -> list[Target]:
    part = figures.get("ranked")
    if not part:
        return []
    first, last = part["points"][0], part["points"][-1]
    return [Target(
        f"MAX at any instant, {last['x']:,} over {first['x']:,} tuples", last["tree"] / first["tree"],
        4.0, note="grows with the logarithm: 20 bits over 8 are 2.5",
        caveat="" if part["rows"] >= FULL.retained else SMALLER,
    )]  # fmt: skip
