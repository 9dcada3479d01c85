"""The experiments of the PSoup paper, section 5, on Weft."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bench.psoup import arriving, matching, reading
from bench.psoup.draw import draw
from bench.psoup.options import FULL, QUICK, parse
from bench.psoup.stage import Stage
from bench.psoup.targets import judge
from bench.report import draw_targets, machine, write_json

EXPERIMENTS = {
    "reading": reading.measure,
    "arriving": arriving.measure,
    "matching": matching.matching,
    "registering": matching.registering,
}


def run(words: list[str]) -> dict:
    arguments = parse(words)
    os.environ.setdefault("WEFT_DRIVER_MEMORY", "4g")
    console = Console()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(prefix="weft-psoup-") as folder,
        Progress(*columns, console=console) as progress,
    ):
        task = progress.add_task("starting Spark", total=None)
        figures = experiments(
            arguments, Path(folder), lambda what: progress.update(task, description=what)
        )
    verdicts = judge(figures)
    figures["targets"] = [target.to_json() for target in verdicts]
    write_json(arguments.json, figures)
    draw(console, figures)
    draw_targets(console, verdicts)
    return figures


def experiments(arguments, folder: Path, tell) -> dict:
    figures: dict = {"machine": machine()}
    sizes = QUICK if arguments.quick else FULL
    stage = Stage(folder)
    try:
        for name in [arguments.only] if arguments.only else list(EXPERIMENTS):
            figures[name] = EXPERIMENTS[name](stage, sizes, tell)
            write_json(arguments.json, figures)  # what is measured is not lost
    finally:
        stage.close()
    return figures
