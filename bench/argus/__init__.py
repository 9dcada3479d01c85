"""The experiments of the ARGUS paper, section 4, on Weft."""

from __future__ import annotations

from pathlib import Path

from bench.argus import incremental, vertical
from bench.argus.data import DATASETS, load
from bench.argus.draw import draw
from bench.argus.options import PAPER, parse, sizes_for
from bench.argus.stage import ArgusStage, Stream
from bench.argus.targets import judge
from bench.report import machine, write_json
from bench.stage import Tell, play


def run(words: list[str]) -> dict:
    return play("argus", parse(words), experiments, judge, draw)


def experiments(arguments, folder: Path, tell: Tell) -> dict:
    figures: dict = {"machine": machine(), "incremental": [], "vertical": [], "origin": {}}
    stage = ArgusStage(folder)
    try:
        for name in [arguments.dataset] if arguments.dataset else list(PAPER):
            sizes = sizes_for(arguments, name)
            rows, origin = load(DATASETS[name], sizes.rows(), arguments.data)
            stream = Stream(DATASETS[name], rows, sizes.history)
            figures["origin"][name] = origin
            if arguments.only != "vertical":
                figures["incremental"].append(incremental.measure(stage, stream, sizes, tell))
            if arguments.only != "incremental" and name == "fed":
                figures["vertical"] = vertical.measure(stage, stream, sizes, tell)
            write_json(arguments.json, figures)  # what is measured is not lost
    finally:
        stage.close()
    return figures
