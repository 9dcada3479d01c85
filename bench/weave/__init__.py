"""The weave optimiser on the paper's experiments (Weave Share §7, §8.4; parameters of Table 1).

Costs are aggregate operations per second by Eq. 3, so they do not depend on the machine; times are
processor time of this process.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.plot import chart, short
from bench.report import Target, draw_table, draw_targets, parser, write_json
from bench.weave import experiments as do
from bench.weave.engine import engine_speed

Row = dict[str, object]
Tick = Callable[[], None]

# What the text of the paper states, by (queries, rate, most overlap): per cent below Shared
STATED = {
    (250, 50, 50): "80",
    (250, 2_000, 50): "24",
    (250, 3_000, 50): "6",
    (1_000, 10_000, 50): "12 (Fig 8), 62 (Fig 6)",
    (2_000, 10_000, 50): "24",
    (2_000, 100_000, 200): "19",
    (2_000, 100_000, 2_000): "74",
    (2_000, 100_000, 50): "0, one tree",
    (2_000, 100_000, 100): "0, one tree",
}


@dataclass(frozen=True, slots=True)
class Size:
    """How much to run."""

    counts: tuple[int, ...]
    searched: int  # up to how many queries local search runs
    rates: tuple[int, ...]
    swept: tuple[int, ...]  # numbers of queries of the rate sweep
    overlaps: tuple[int, ...]
    overlap_rates: tuple[int, ...]
    overlapped: int
    skews: tuple[float, ...]
    skewed: tuple[int, ...]
    followed: tuple[int, int]
    optimised: int
    woven: int
    seeds: int
    referee: int


FULL = Size(
    counts=(50, 100, 250, 500, 1_000),
    searched=1_000,
    rates=(50, 300, 1_000, 2_000, 3_000, 10_000, 30_000, 100_000),
    swept=(250, 1_000, 2_000),
    overlaps=(50, 100, 200, 500, 1_000, 2_000),
    overlap_rates=(100, 1_000, 10_000, 100_000, 1_000_000),
    overlapped=2_000,
    skews=(0.0, 0.3, 0.6, 0.9, 1.2, 1.5, 1.8, 2.1, 2.4, 2.7, 3.0, 3.3),
    skewed=(100, 250, 500, 1_000),
    followed=(50, 300),
    optimised=250,
    woven=2_000,
    seeds=3,
    referee=20,
)
QUICK = Size(
    counts=(50, 100, 250),
    searched=250,
    rates=(50, 2_000, 3_000, 10_000),
    swept=(250,),
    overlaps=(50, 500),
    overlap_rates=(1_000, 100_000),
    overlapped=250,
    skews=(0.0, 0.9, 1.8, 3.3),
    skewed=(100,),
    followed=(50, 80),
    optimised=100,
    woven=500,
    seeds=1,
    referee=3,
)


def run(words: list[str]) -> list[dict]:
    """Run the experiments, draw them, return their rows."""
    arguments = options(words)
    size = QUICK if arguments.quick else FULL
    console = Console()
    names = arguments.only or list(EXPERIMENTS)
    found = []
    for name in names:
        with progress(console, name) as tick:
            rows = EXPERIMENTS[name][0](size, tick)
        found.append({"experiment": name, "rows": rows})
        EXPERIMENTS[name][1](console, rows)
    write_json(arguments.json, found)
    return found


def options(words: list[str]) -> argparse.Namespace:
    found = parser("weave", __doc__.splitlines()[0])
    found.add_argument("--quick", action="store_true", help="small sizes: half a minute")
    found.add_argument(
        "--only", action="append", choices=list(EXPERIMENTS), help="only this experiment (repeat)"
    )
    return found.parse_args(words)


@contextmanager
def progress(console: Console, name: str) -> Iterator[Tick]:
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(BarColumn(pulse_style="cyan"), *columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda: bar.advance(task)


def each(tick: Tick, rows: Iterator[Row]) -> list[Row]:
    found = []
    for row in rows:
        found.append(row)
        tick()
    return found


# What is run, by name: a function that measures and one that draws.


def run_policies(size: Size, tick: Tick) -> list[Row]:
    counts = [count for count in size.counts if count <= size.searched]
    return each(tick, (do.policies(c, rate, seed=1) for rate in (50, 300) for c in counts))


def draw_policies(console: Console, rows: list[Row]) -> None:
    names = ["No Share", "Random", "Shared", "Insert-then-Weave", "LS-NS 10x", "Weave Share"]
    names += ["Weave Share, improved", "with a base"]
    for figure, rate in ((4, 50), (5, 300)):
        some = [row for row in rows if row["rate"] == rate]
        title = f"Figure {figure}: cost by number of queries, {rate} rows/s"
        cells = [(row["queries"], *(f"{row[name]:,.0f}" for name in names)) for row in some]
        draw_table(console, title, ("queries", *names), cells)
        series = {name: [(row["queries"], row[name]) for row in some] for name in names}
        console.print(chart(title, series, x="queries", y="cost, operations/s"))
    timed = [name for name in names if f"{name} cpu s" in rows[0]]
    cells = [
        (f"{r['queries']} at {r['rate']}", *(f"{r[f'{name} cpu s']:.2f}" for name in timed))
        for r in rows
    ]
    draw_table(console, "Processor seconds to find the plan", ("queries, rate", *timed), cells)


def run_searches(size: Size, tick: Tick) -> list[Row]:
    return each(tick, iter(do.local_searches(min(250, size.searched), 50, seed=1)))


def draw_searches(console: Console, rows: list[Row]) -> None:
    cells = [(row["algorithm"], f"{row['cost']:,.0f}") for row in rows]
    draw_table(console, "Local search, 50 rows/s", ("algorithm", "cost"), cells)


def run_counts(size: Size, tick: Tick) -> list[Row]:
    seeds = range(1, size.seeds + 1)
    cases = [(count, rate) for rate in (50, 300, 10_000) for count in size.counts]
    return each(tick, (do.against_shared(count, rate, seeds) for count, rate in cases))


def run_rates(size: Size, tick: Tick) -> list[Row]:
    seeds = range(1, size.seeds + 1)
    cases = [(count, rate) for count in size.swept for rate in size.rates]
    return each(tick, (do.against_shared(count, rate, seeds) for count, rate in cases))


def run_overlaps(size: Size, tick: Tick) -> list[Row]:
    cases = [(rate, most) for rate in size.overlap_rates for most in size.overlaps]
    rows = (
        do.against_shared(size.overlapped, rate, range(1, 2), most_overlap=most)
        for rate, most in cases
    )
    return each(tick, rows)


def run_skews(size: Size, tick: Tick) -> list[Row]:
    seeds = range(1, size.seeds + 1)
    cases = [(count, skew) for count in size.skewed for skew in size.skews]
    rows = (
        do.against_shared(count, 100, seeds, most_overlap=10, skew=skew) for count, skew in cases
    )
    return each(tick, rows)


def draw_shared(
    title: str, x: str, by: str, *, log_x: bool = True, trees: str | None = None
) -> Callable[[Console, list[Row]], None]:
    """A table and a chart of costs normalised to Shared, and perhaps one of the number of trees."""

    def draw(console: Console, rows: list[Row]) -> None:
        heads = (by, x, "cost / Shared", "below %", "paper below %", "improved below %", "trees")
        cells = [
            (
                short(row[by]),
                short(row[x]),
                f"{row['normalised']:.3f}",
                f"{row['below shared %']:.1f}",
                STATED.get((row["queries"], row["rate"], row["most overlap"]))
                if row["skew"] == 0.6
                else None,
                f"{row['improved %']:.1f}",
                f"{row['trees']:.1f}",
            )
            for row in rows
        ]
        draw_table(console, title, heads, cells)
        for y, field in (("cost / Shared", "normalised"), (trees, "trees")):
            if y is None:
                continue
            series: dict[str, list] = {}
            for row in rows:
                point = (row[x], row[field])
                series.setdefault(f"{by} {short(row[by])}", []).append(point)
            name = title if field == "normalised" else f"Figure 7: {trees}"
            log_y = field == "trees"
            console.print(chart(name, series, x=x, y=y, log_x=log_x, log_y=log_y))

    return draw


def run_incremental(size: Size, tick: Tick) -> list[Row]:
    tolerances = [0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, math.inf]
    return do.incremental(*size.followed, 50, tolerances, tick)


def draw_incremental(console: Console, rows: list[Row]) -> None:
    title = "Figure 11: Incremental Weave Share (paper: the error stays below the tolerance)"
    cells = [
        (
            row["rule"],
            "∞" if row["tolerance"] is None else f"{row['tolerance']:.0%}",
            f"{row['comparisons']:,}",
            f"{row['error %']:.1f}",
            f"{row['largest error %']:.1f}",
            row["reconstructions"],
        )
        for row in rows
    ]
    heads = (
        "rule",
        "tolerance",
        "comparisons",
        "mean error %",
        "largest error %",
        "reconstructions",
    )
    draw_table(console, title, heads, cells)
    series: dict[str, list] = {}
    for row in rows:
        series.setdefault(row["rule"], []).append((row["comparisons"], row["error %"]))
    console.print(chart(title, series, x="comparisons", y="mean error %", log_y=False))


def run_optimisations(size: Size, tick: Tick) -> list[Row]:
    return each(tick, iter(do.optimisations(size.optimised)))


def draw_optimisations(console: Console, rows: list[Row]) -> None:
    title = "Figure 14: work of the optimiser (paper: each about 10×, together 1,000×)"
    heads = ("variant", "benefits", "comparisons", "× less than before", "× less than naive")
    cells = [
        (
            row["variant"],
            f"{row['benefits']:,}",
            f"{row['comparisons']:,}",
            f"{row['step']:.1f}",
            f"{row['together']:,.0f}",
        )
        for row in rows
    ]
    draw_table(console, title, heads, cells)
    series = {row["variant"]: [(i + 1, row["comparisons"])] for i, row in enumerate(rows)}
    console.print(chart(title, series, x="variant", y="comparisons", log_x=False))


def run_optimality(size: Size, tick: Tick) -> list[Row]:
    cases = ((200, 5), (300, 10), (400, 15))
    seeds = range(1, size.referee + 1)
    slow = [(50, 10), (20, 12)]  # where more than one tree pays, which the paper's cases may not
    return each(tick, (do.optimality(rate, count, seeds) for rate, count in (*cases, *slow)))


def draw_optimality(console: Console, rows: list[Row]) -> None:
    title = "Against exhaustive search (paper: optimal at 200/5, 300/10, 400/15; once 3 % off)"
    heads = tuple(rows[0])
    cells = [tuple(short(value) for value in row.values()) for row in rows]
    draw_table(console, title, heads, cells)


def run_models(size: Size, tick: Tick) -> list[Row]:
    count = 1_000 if size is FULL else 100
    return each(tick, (do.models(count, rate) for rate in (50, 1_000, 10_000, 100_000)))


def draw_models(console: Console, rows: list[Row]) -> None:
    title = "The paper's costs and Spark's (default parameters, one cell per pane)"
    cells = [tuple(short(value) for value in row.values()) for row in rows]
    draw_table(console, title, tuple(rows[0]), cells)


def run_speed(size: Size, tick: Tick) -> list[Row]:
    both = (row for any_slide in (False, True) for row in do.speed(size.woven, 50, any_slide))
    return each(tick, chain(both, engine_speed(size.woven, 25)))


def draw_speed(console: Console, rows: list[Row]) -> None:
    cells = [(r["slides"], f"{r['queries']:,}", r["what"], f"{r['cpu ms']:,.1f}") for r in rows]
    heads = ("slides", "queries", "what", "processor ms")
    draw_table(console, "Speed of the optimiser", heads, cells)
    named = {(row["slides"], row["what"]): row["cpu ms"] for row in rows}
    count = f"{rows[0]['queries']:,} queries"
    targets = []
    for slides in ("templates", "any integer"):
        took = named[slides, "… and improved"] / 1e3
        added = named[slides, "add one query, median"]
        targets.append(Target(f"{count}, {slides}: from scratch, improved", took, 10.0, unit="s"))
        targets.append(Target(f"{count}, {slides}: add one, median", added, 50.0, unit="ms"))
    for (slides, what), took in named.items():
        if what.startswith("engine: plan"):
            targets.append(Target(f"{slides}, {what}", took / 1e3, 10.0, unit="s"))
        elif what.startswith("engine"):
            targets.append(Target(f"{slides}, {what}", took, 50.0, unit="ms"))
    draw_targets(console, targets)


EXPERIMENTS = {
    "policies": (run_policies, draw_policies),
    "local-search": (run_searches, draw_searches),
    "counts": (
        run_counts,
        draw_shared(
            "Figure 6: cost normalised to Shared by number of queries",
            "queries",
            "rate",
            trees="number of trees",
        ),
    ),
    "rates": (
        run_rates,
        draw_shared("Figure 8: cost normalised to Shared by input rate", "rate", "queries"),
    ),
    "overlaps": (
        run_overlaps,
        draw_shared("Figure 9: by the largest overlap factor", "most overlap", "rate"),
    ),
    "skews": (
        run_skews,
        draw_shared("Figure 10: by the skew of the slides", "skew", "queries", log_x=False),
    ),
    "incremental": (run_incremental, draw_incremental),
    "optimisations": (run_optimisations, draw_optimisations),
    "exhaustive": (run_optimality, draw_optimality),
    "models": (run_models, draw_models),
    "speed": (run_speed, draw_speed),
}
