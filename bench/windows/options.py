"""The words of `weft bench windows`, and the runs that they ask for."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.report import parser
from bench.windows.spec import Spec

ABOUT = "Thousands of window aggregates over generated trades, against Spark's own streaming."
BOTH = {"answers": ("lazy", "eager"), "mix": ("plain", "mixed")}
CLASS_COUNTS = (1_000, 10_000)
FLAT_ROWS = 50_000  # rows of a batch where the number of batches matters, not their size


def parse(words: list[str]) -> argparse.Namespace:
    found = parser("windows", ABOUT)
    add = found.add_argument
    add("--rows", type=positive, default=2_000_000, metavar="R", help="timed rows (2,000,000)")
    add("--queries", type=counts, default=[1, 10, 100, 1000], metavar="N,N", help="1,10,100,1000")
    add(
        "--answers", choices=("lazy", "eager", "both"), default="lazy", help="when windows are made"
    )
    add(
        "--mix", choices=("plain", "mixed", "both"), default="plain", help="both: most queries only"
    )
    add("--against", choices=("spark", "none"), default="none", help="also run Spark's own queries")
    add("--batches", type=positive, metavar="N", help="instead: is a batch's time flat over N?")
    add("--classes", type=positive, metavar="N", help="instead: 10,000 queries of N classes")
    add("--all", action="store_true", help="everything that the targets need, in one run")
    add("--batch-rows", type=positive, metavar="R", help="rows of a batch (500,000; flat: 50,000)")
    add("--warm", type=positive, default=1, metavar="N", help="batches before the timed ones (1)")
    add("--repeat", type=positive, default=1, metavar="N", help="runs of each; the median counts")
    add("--native-max", type=positive, default=32, metavar="N", help="most native queries (32)")
    add("--timeout", type=float, default=3600, metavar="S", help="seconds for one run (3600)")
    add("--work", type=Path, metavar="DIR", help="keep the trades here for the next time")
    arguments = found.parse_args(words)
    if arguments.all:
        arguments.answers = arguments.mix = "both"
        arguments.against = "spark"
        arguments.batches = arguments.batches or 100
        arguments.classes = arguments.classes or 200
    return arguments


def positive(text: str) -> int:
    number = int(text.replace("_", "").replace(",", ""))
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above zero")
    return number


def counts(text: str) -> list[int]:
    """1,10,100 → [1, 10, 100], ascending, each once."""
    try:
        return sorted({positive(word) for word in text.split(",")})
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a list like 1,10,100") from None


def chosen(arguments: argparse.Namespace, name: str) -> tuple[str, ...]:
    value = getattr(arguments, name)
    return BOTH[name] if value == "both" else (value,)


def main_runs(arguments: argparse.Namespace, folder: Path) -> list[Spec]:
    """The limit, Weft by number of queries, and the native ones up to what is practical."""
    if (arguments.batches or arguments.classes) and not arguments.all:
        return []
    size = arguments.batch_rows or 500_000
    common = {
        "folder": str(folder),
        "rows": arguments.rows,
        "batch_rows": min(size, arguments.rows),
        "warm": arguments.warm,
    }
    mixes = chosen(arguments, "mix")
    found = [Spec("limit", 0, None, mixes[0], **common)]
    for mix in mixes:
        most = arguments.queries[-1:]  # of a second mix, the comparison at the most is enough
        for number in arguments.queries if mix == mixes[0] else most:
            for answers in chosen(arguments, "answers"):
                found.append(Spec("weft", number, answers, mix, **common))
    if arguments.against == "spark":
        for number in sorted({min(n, arguments.native_max) for n in arguments.queries}):
            found.append(Spec("spark", number, "eager", mixes[0], **common))
    return found


def flat_runs(arguments: argparse.Namespace, folder: Path) -> list[Spec]:
    """Many batches, of which the first is the one that warms up."""
    if not arguments.batches:
        return []
    size = arguments.batch_rows or FLAT_ROWS
    timed = max(1, arguments.batches - 1)
    return [
        Spec("weft", arguments.queries[-1], answers, "plain", str(folder), timed * size, size)
        for answers in chosen(arguments, "answers")
    ]


def class_runs(arguments: argparse.Namespace, folder: Path) -> list[Spec]:
    """Few and many queries of the same classes."""
    if not arguments.classes:
        return []
    size = min(arguments.batch_rows or 500_000, arguments.rows)
    place = (str(folder), arguments.rows, size, arguments.warm)
    return [
        Spec("weft", number, answers, "plain", *place, classes=arguments.classes)
        for answers in chosen(arguments, "answers")
        for number in CLASS_COUNTS
    ]
