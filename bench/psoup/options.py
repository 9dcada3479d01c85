"""The words of `weft bench psoup`, and the sizes that they ask for."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from bench.report import parser

ABOUT = "The experiments of the PSoup paper: selections by the thousand, read under three policies."
EXPERIMENTS = ("reading", "arriving", "matching", "registering", "ranked")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the experiments are; FULL has the paper's Table 1 and the issue's targets."""

    windows: tuple[int, ...]  # tuples
    predicates: tuple[int, ...] = (1, 2, 4)
    per_point: int = 8  # queries of a window size, kind and policy
    repeat: int = 5  # reads of each query, after as many batches
    on_spark: int = 3  # queries that are also run from scratch on Spark
    arrivals: tuple[int, ...] = tuple(2**n for n in range(7, 15))  # numbers of queries
    batch: int = 200_000  # rows of a batch, with partial materialisation
    unindexed: int = 20_000  # rows, where each predicate is evaluated by itself
    complete: int = 10_000  # rows of a batch, with complete materialisation
    most_complete: int = 4_096  # queries
    matched: int = 1_000_000
    queries: int = 1_000
    retained: int = 2**21  # rows that windows of any size are taken of
    ranked: tuple[int, ...] = tuple(2**n for n in range(8, 21, 2))  # sizes of windows, in tuples
    instants: int = 20  # reads of each


FULL = Sizes(tuple(2**n for n in range(7, 17)))
QUICK = Sizes(
    (2**7, 2**10, 2**13), per_point=2, repeat=2, on_spark=1, arrivals=(16, 128), batch=20_000,
    unindexed=2_000, complete=2_000, most_complete=128, matched=50_000, queries=50, retained=2**16,
    ranked=(2**8, 2**12), instants=3,
)  # fmt: skip


def parse(words: list[str]) -> argparse.Namespace:
    found = parser("psoup", ABOUT)
    found.add_argument("--quick", action="store_true", help="small sizes, for a first look")
    found.add_argument("--only", choices=EXPERIMENTS, help="one experiment")
    return found.parse_args(words)
