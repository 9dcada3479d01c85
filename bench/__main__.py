"""Run benchmarks by name, or all of them."""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path

NAMES = ("latency", "pipeline")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="weft bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"one of {', '.join(NAMES)}; all if none"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args(words)
    unknown = set(arguments.names) - set(NAMES)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    figures = {}
    for name in arguments.names or NAMES:
        figures[name] = importlib.import_module(f"bench.{name}").run()
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
