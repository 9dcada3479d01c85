"""The experiments of the ARGUS paper, section 4, on Weft."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bench.argus import incremental, vertical
from bench.argus.data import DATASETS, load
from bench.argus.draw import draw
from bench.argus.options import PAPER, parse, sizes_for
from bench.argus.stage import Stage, Stream
from bench.argus.targets import judge
from bench.report import draw_targets, machine, write_json


def run(words: list[str]) -> dict:
    arguments = parse(words)
    os.environ.setdefault("WEFT_DRIVER_MEMORY", "4g")
    console = Console()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(prefix="weft-argus-") as folder,
        Progress(*columns, console=console) as progress,
    ):
        figures = experiments(arguments, Path(folder), Bar(progress))
    verdicts = judge(figures)
    figures["targets"] = [target.to_json() for target in verdicts]
    write_json(arguments.json, figures)
    draw(console, figures)
    if verdicts:
        draw_targets(console, verdicts)
    return figures


class Bar:
    """Says what is being done, and how many steps are behind."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("starting Spark", total=None)
        self._done = 0

    def tell(self, what: str) -> None:
        self._done += 1
        self._progress.update(self._task, description=f"step {self._done}: {what}")


def experiments(arguments, folder: Path, bar: Bar) -> dict:
    figures: dict = {"machine": machine(), "incremental": [], "vertical": [], "origin": {}}
    stage = Stage(folder)
    try:
        for name in [arguments.dataset] if arguments.dataset else list(PAPER):
            sizes = sizes_for(arguments, name)
            rows, origin = load(DATASETS[name], sizes.rows(), arguments.data)
            stream = Stream(DATASETS[name], rows, sizes.history)
            figures["origin"][name] = origin
            if arguments.only != "vertical":
                figures["incremental"].append(incremental.measure(stage, stream, sizes, bar.tell))
            if arguments.only != "incremental" and name == "fed":
                figures["vertical"] = vertical.measure(stage, stream, sizes, bar.tell)
            write_json(arguments.json, figures)  # what is measured is not lost
    finally:
        stage.close()
    return figures
