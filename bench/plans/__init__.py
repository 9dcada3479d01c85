"""Real batches of the engine under four plans: the chosen one, No Share, Shared, and Weave Share by
the paper's costs.

Each plan has a warehouse of its own, all in one process and one Spark session, and they take turns
batch by batch in another order each time, so that what disturbs one disturbs all and ratios mean
something. A batch's time is the engine's own, from its first look at the catalog to its commit;
beside it stands the processor time of Spark's JVM. Warm-up batches are not counted, and after them
the chosen plan is woven anew from what they showed. First, costs are calibrated, as a user would.

No Share and the two weaves fold trees apart even where their panes are equal, as in the paper.
Where two plans come to the same nodes they run the same jobs, and what their times differ in is
noise: their batches are counted together, for the least of several medians of the same thing is
always less than one of them.
"""

from __future__ import annotations

import hashlib
import os
import re
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

import weft
from bench.plans.workloads import COLUMNS, WORKLOADS, Workload, batch
from bench.report import machine, parser, write_json

PLANS = {"chosen": None, "no share": "none", "shared": "shared", "paper": "paper"}
BOUND = 1.05  # chosen over the best of the others


def run(words: list[str]) -> dict:
    arguments = parse(words)
    console = Console()
    with (
        tempfile.TemporaryDirectory(prefix="weft-plans-") as folder,
        weft.connect(Path(folder) / "session") as db,
    ):
        spark = db._engine.spark
        costs = calibrated(db, arguments, console)
        figures = {"machine": machine(), "rows": arguments.rows, "batches": arguments.batches}
        figures |= {"costs": costs, "workloads": []}
        for workload in chosen_workloads(arguments.only):
            found = measured(spark, Path(folder), workload, arguments, costs, console)
            figures["workloads"].append(found)
            write_json(arguments.json, figures)
    figures["targets"] = judge(figures["workloads"])
    write_json(arguments.json, figures)
    draw(console, figures)
    return figures


def parse(words: list[str]):
    found = parser("plans", "The chosen plan against three others, in real batches.")
    found.add_argument("--rows", type=int, default=200_000, help="of a batch; some have fewer")
    found.add_argument("--batches", type=int, default=7, help="that are counted")
    found.add_argument("--warm", type=int, default=3, help="batches before those")
    found.add_argument("--only", help="workloads whose names contain this")
    found.add_argument("--calibrate", type=int, default=40_000, metavar="ROWS",
                       help="rows of calibrating batches; 0: costs as shipped")  # fmt: skip
    return found.parse_args(words)


def chosen_workloads(only: str | None) -> list[Workload]:
    return [each for each in WORKLOADS if only is None or only in each.name]


def calibrated(db: weft.Database, arguments, console: Console) -> str | None:
    if not arguments.calibrate:
        return None
    from weft.delivery.calibrate import calibrate

    calibrate(db, arguments.calibrate, lambda text: console.print(f"calibrating: {text}"))
    with db._engine.catalog.read() as view:
        return view.fact("costs")


def measured(spark, folder: Path, workload: Workload, arguments, costs, console: Console) -> dict:
    """Times of each plan for one workload."""
    console.print(f"[bold]{workload.name}[/]: {workload.about}", highlight=False)
    open_ones = {
        plan: opened(
            spark, folder / re.sub(r"\W+", "_", f"{workload.name} {plan}"), workload, forced, costs
        )
        for plan, forced in PLANS.items()
    }
    times = {plan: [] for plan in PLANS}
    cpu = {plan: [] for plan in PLANS}
    try:
        for number in range(arguments.warm + arguments.batches):
            if number == arguments.warm:
                weave_anew(open_ones)
                for db in open_ones.values():  # each meets its plan once before it counts
                    step(spark, db, batch(workload, number, arguments.rows))
            rows = batch(workload, number + (number >= arguments.warm), arguments.rows)
            order = list(PLANS)[number % len(PLANS) :] + list(PLANS)[: number % len(PLANS)]
            for plan in order:
                ms, processor = step(spark, open_ones[plan], rows)
                if number >= arguments.warm:
                    times[plan].append(ms)
                    cpu[plan].append(processor)
        plans = {plan: described(db) for plan, db in open_ones.items()}
    finally:
        for db in open_ones.values():
            db.close()
    return figure(workload, times, cpu, plans)


def opened(spark, path: Path, workload: Workload, forced: str | None, costs) -> weft.Database:
    path.mkdir(parents=True)
    db = weft.connect(path, spark=spark)
    db._engine.become_writer()
    if costs is not None:
        with db._engine.catalog.write() as change:
            change.set_fact("costs", costs)
    db._engine.weaver.forced = forced
    db.sql(f"CREATE STREAM s ({COLUMNS}, WATERMARK FOR ts AS ts)")
    db.sql(workload.script())
    return db


def weave_anew(open_ones: dict[str, weft.Database]) -> None:
    """Plans by what the warm-up showed: the chosen one, and the paper's, which needs rates too."""
    for plan, db in open_ones.items():
        engine = db._engine
        with engine.lock, engine.catalog.read() as view:
            (stream,) = view.streams()
        with engine.lock:
            engine.weaver.measure(stream.id)
            if plan in ("chosen", "paper"):
                engine.weaver.force(stream.id, PLANS[plan])


def step(spark, db: weft.Database, rows) -> tuple[float, float]:
    """One batch: (milliseconds by the engine, milliseconds of the JVM's processors)."""
    db.push("s", rows)
    before = processor_ms(spark)
    db.run()
    spent = processor_ms(spark) - before
    with db._engine.catalog.read() as view:
        return float(view.batches(1)[0].ms), spent


def processor_ms(spark) -> float:
    """Processor time of Spark's JVM so far, as the kernel counts it."""
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def described(db: weft.Database) -> dict:
    engine = db._engine
    network = engine.batches.network(1)
    folding = [n for n in network.folding() if n.node.panes is not None]
    trees = len({(n.node.panes, n.node.apart) for n in folding})
    return {
        "trees": trees,
        "nodes": len(folding),
        "runs": hashlib.sha1(
            repr((trees, sorted(_run(network, n) for n in folding))).encode()
        ).hexdigest(),
        "fed": sum(_is_fed(network, n) for n in folding),
        "partials": sum(n.cells for n in folding),
        "predicted_ms": engine.weaver.cost(1),
    }


def _run(network, live) -> str:
    """What a batch does for a node, whatever its number and that of its tree."""
    parent = network.nodes.get(live.parent_id)
    above = "" if parent is None else _run(network, parent)
    return f"{replace(live.node, apart=0)} of {above}"


def _is_fed(network, live) -> bool:
    parent = network.nodes.get(live.parent_id)
    return parent is not None and parent.node.panes != live.node.panes


def figure(workload: Workload, times: dict, cpu: dict, plans: dict) -> dict:
    middle = {plan: statistics.median(found) for plan, found in times.items()}
    processor = {plan: statistics.median(found) for plan, found in cpu.items()}
    same = [p for p in PLANS if plans[p]["runs"] == plans["chosen"]["runs"]]
    others = [middle[plan] for plan in PLANS if plan != "chosen"]
    return {
        "workload": workload.name, "about": workload.about, "queries": len(workload.selects),
        "ms": middle, "cpu_ms": processor, "all_ms": times, "all_cpu_ms": cpu, "plans": plans,
        "same": same, "ratio_alone": middle["chosen"] / min(others), "ratio": over_best(times, same), "cpu_ratio": over_best(cpu, same),
    }  # fmt: skip


def over_best(found: dict[str, list[float]], same: list[str]) -> float:
    """The chosen plan's median over the least of all plans', those that run the same as one."""
    chosen = statistics.median([value for plan in same for value in found[plan]])
    others = [statistics.median(found[plan]) for plan in PLANS if plan not in same]
    if len(same) > 1:
        others.append(chosen)
    return chosen / min(others)


def judge(found: list[dict]) -> dict:
    return {
        "bound": BOUND,
        "within": [each["workload"] for each in found if each["ratio"] <= BOUND],
        "beyond": [each["workload"] for each in found if each["ratio"] > BOUND],
        "within_alone": [each["workload"] for each in found if each["ratio_alone"] <= BOUND],
        "better_than": {
            plan: [
                e["workload"]
                for e in found
                if plan not in e["same"] and e["ms"]["chosen"] < e["ms"][plan] / BOUND
            ]
            for plan in PLANS
            if plan != "chosen"
        },
    }


def draw(console: Console, figures: dict) -> None:
    table = Table("workload", *PLANS, "chosen / best", "alone", "by processor time", "trees")
    for each in figures["workloads"]:
        table.add_row(
            each["workload"],
            *(
                f"{each['ms'][plan]:,.0f} ms{' =' if plan in each['same'][1:] else ''}"
                for plan in PLANS
            ),
            f"{each['ratio']:.2f}",
            f"{each['ratio_alone']:.2f}",
            f"{each['cpu_ratio']:.2f}",
            " / ".join(str(each["plans"][plan]["trees"]) for plan in PLANS),
        )
    console.print(table)
    console.print(
        "= the same jobs as the chosen plan's: counted together, but under 'alone', where the least"
        " of equal ones, which is their noise, counts as the best"
    )
    targets = figures["targets"]
    console.print(
        f"within {BOUND}: {len(targets['within'])} of {len(figures['workloads'])}"
        f" (alone: {len(targets['within_alone'])}); better than "
        + ", ".join(f"{plan} on {len(found)}" for plan, found in targets["better_than"].items()),
        highlight=False,
    )
