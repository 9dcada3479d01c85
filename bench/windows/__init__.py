"""Thousands of window aggregates: Weft against Spark's own streaming queries, and the limit.

Every run has a process of its own, and the same Parquet files. It begins with a warm-up batch,
which is not timed; what is timed is the processing of the rest, from the call to its return.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from rich.console import Console

from bench.report import draw_targets, machine, write_json
from bench.windows.draw import Bar, draw
from bench.windows.options import class_runs, flat_runs, main_runs, parse
from bench.windows.runs import RunFailed, measure
from bench.windows.spec import Spec
from bench.windows.targets import flatness, judge
from bench.windows.trades import write


def run(words: list[str]) -> dict:
    """→ the JSON of the issue, and more."""
    arguments = parse(words)
    console = Console()
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as temporary:
        folder = (arguments.work or Path(temporary)).absolute()
        figures = experiments(arguments, folder, console)
    write_json(arguments.json, figures)
    draw(console, figures)
    verdicts = judge(figures["runs"], figures["flat"], figures["classes"])
    draw_targets(console, verdicts)
    for failure in figures["failed"]:
        console.print(f"[red]{failure}[/]", highlight=False)
    figures["targets"] = [target.to_json() for target in verdicts]
    write_json(arguments.json, figures)
    return figures


def experiments(arguments, folder: Path, console: Console) -> dict:
    before = machine()
    parts = {
        "runs": main_runs(arguments, folder),
        "flat": flat_runs(arguments, folder),
        "classes": class_runs(arguments, folder),
    }
    figures: dict = {"rows": arguments.rows, **{name: [] for name in parts}, "failed": []}
    with Bar(console, sum(len(specs) for specs in parts.values())) as bar:
        for name, specs in parts.items():
            for spec in specs:
                take(figures, name, spec, arguments, bar)
                write_json(arguments.json, figures)  # what is measured is not lost
    return {**figures, "machine": before}


def take(figures: dict, name: str, spec: Spec, arguments, bar: Bar) -> None:
    """Measure one run; a run that fails is told at the end, and the others go on."""
    bar.begin(spec)
    write(spec.trades, lambda rows: bar.heard("writing trades", rows))
    try:
        found = measure(spec, arguments.repeat, arguments.timeout, bar.heard)
    except RunFailed as problem:
        figures["failed"].append(str(problem))
    else:
        if name == "flat":
            found["batches"] = arguments.batches
            found["flatness"] = flatness(found["batch_seconds"])
        figures[name].append(found)
    bar.end()
