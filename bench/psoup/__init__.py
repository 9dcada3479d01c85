"""The experiments of the PSoup paper, section 5, on Weft."""

from __future__ import annotations

from pathlib import Path

from bench.psoup import arriving, matching, ranked, reading
from bench.psoup.draw import draw
from bench.psoup.options import FULL, QUICK, parse
from bench.psoup.stage import PSoupStage
from bench.psoup.targets import judge
from bench.report import machine, write_json
from bench.stage import Tell, play

EXPERIMENTS = {
    "reading": reading.measure,
    "arriving": arriving.measure,
    "matching": matching.matching,
    "registering": matching.registering,
    "ranked": ranked.measure,
}


def run(words: list[str]) -> dict:
    return play("psoup", parse(words), experiments, judge, draw)


def experiments(arguments, folder: Path, tell: Tell) -> dict:
    figures: dict = {"machine": machine()}
    sizes = QUICK if arguments.quick else FULL
    stage = PSoupStage(folder)
    try:
        for name in [arguments.only] if arguments.only else list(EXPERIMENTS):
            figures[name] = EXPERIMENTS[name](stage, sizes, tell)
            write_json(arguments.json, figures)  # what is measured is not lost
    finally:
        stage.close()
    return figures
