"""Where experiments play that repeat a paper's: one warm Spark session, and warehouses on it that come
and go; what is being done is told meanwhile, and figures, targets and plots come at the end."""

from __future__ import annotations

import itertools
import os
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import weft
from bench.report import Target, draw_targets, write_json

Tell = Callable[[str], None]


class Stage:
    """Keeps one warehouse open, so that the session and its compiled code outlive each run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._anchor = weft.connect(folder / "anchor")
        self.spark = self._anchor.spark
        self._numbers = itertools.count()

    def close(self) -> None:
        self._anchor.close()

    def fresh(self, name: str) -> Path:
        return self._folder / f"{name}-{next(self._numbers)}"  # safe with several threads


def play(
    name: str,
    arguments: Namespace,
    experiments: Callable[[Namespace, Path, Tell], dict],
    judge: Callable[[dict], list[Target]],
    draw: Callable[[Console, dict], None],
) -> dict:
    """Run experiments in a folder of their own, and report them."""
    os.environ.setdefault("WEFT_DRIVER_MEMORY", "4g")
    console = Console()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(prefix=f"weft-{name}-") as folder,
        Progress(*columns, console=console) as progress,
    ):
        task, steps = progress.add_task("starting Spark", total=None), itertools.count(1)

        def tell(what: str) -> None:
            progress.update(task, description=f"step {next(steps)}: {what}")

        figures = experiments(arguments, Path(folder), tell)
    verdicts = judge(figures)
    figures["targets"] = [target.to_json() for target in verdicts]
    write_json(arguments.json, figures)
    draw(console, figures)
    if verdicts:
        draw_targets(console, verdicts)
    return figures
