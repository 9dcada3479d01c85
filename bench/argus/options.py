"""The words of `weft bench argus`, and the sizes that they ask for."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from bench.report import parser

ABOUT = "The experiments of the ARGUS paper: incremental, shared, and vertically expanded."
EXPERIMENTS = ("incremental", "vertical")
HERE = Path("../shared/data")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large an experiment is; the paper's sizes are below."""

    history: int
    increment: int
    queries: int
    sample: int = 12  # queries that are measured by themselves
    steps: int = 4  # points of the curve over the number of queries
    repeat: int = 3
    increments: tuple[int, ...] = (1, 10, 100, 1_000, 10_000, 30_000)

    def rows(self) -> int:
        """What a stream must hold: the history, and the increments of the longer experiment."""
        even = self.increment * (self.repeat + 1)
        uneven = sum(self.increments) * self.repeat + self.increments[-1]
        return self.history + max(even, uneven)


PAPER = {"fed": Sizes(300_000, 4_000, 350), "med": Sizes(600_000, 4_000, 450)}
QUICK = Sizes(20_000, 1_000, 8, sample=2, steps=2, repeat=1, increments=(1, 100, 1_000))


def parse(words: list[str]) -> argparse.Namespace:
    found = parser("argus", ABOUT)
    add = found.add_argument
    add("--data", type=Path, default=HERE, metavar="DIR", help=f"bank and hospital data ({HERE})")
    add("--quick", action="store_true", help="small sizes, for a first look")
    add("--only", choices=EXPERIMENTS, help="one experiment; incremental has Fig 9 and 10")
    add("--dataset", choices=tuple(PAPER), help="one data set (vertical uses fed)")
    add("--queries", type=int, metavar="N", help="of each data set (350 and 450)")
    add("--sample", type=int, metavar="N", help="queries to measure by themselves (12)")
    add("--repeat", type=int, metavar="N", help="increments of each size; medians count (3)")
    return found.parse_args(words)


def sizes_for(arguments: argparse.Namespace, dataset: str) -> Sizes:
    sizes = QUICK if arguments.quick else PAPER[dataset]
    given = {name: getattr(arguments, name) for name in ("queries", "sample", "repeat")}
    return replace(sizes, **{name: value for name, value in given.items() if value})
