"""Run a benchmark: each is a module with `run(words)`, which knows its own options."""

from __future__ import annotations

import argparse
import importlib
import sys

from rich.console import Console

from bench.report import parser, write_json

BENCHMARKS = {
    "latency": "import, command line and reads: is it quick? (half a minute)",
    "pipeline": "what a batch costs on the recompute path (half a minute)",
    "windows": "thousands of window aggregates, against Spark's own streaming (minutes)",
    "weave": "which queries share a tree, and what it saves (minutes)",
    "plans": "real batches under the chosen plan and under three others (minutes)",
    "argus": "the experiments of the ARGUS paper (minutes)",
    "psoup": "the experiments of the PSoup paper (minutes)",
}


def main(words: list[str] | None = None) -> None:
    """`NAME [options]`; several names with --json alone; nothing or --help lists them."""
    names, options = split(sys.argv[1:] if words is None else words)
    if not names:
        listing(options)
    elif len(names) == 1:
        load(names[0]).run(options)
    else:
        arguments = parser("NAME NAME", "Several benchmarks, one after the other.")
        path = arguments.parse_args(options).json
        write_json(path, {name: load(name).run([]) for name in names})


def split(words: list[str]) -> tuple[list[str], list[str]]:
    """The names that come first, and the words that follow them."""
    at = next((i for i, word in enumerate(words) if word not in BENCHMARKS), len(words))
    return words[:at], words[at:]


def listing(words: list[str]) -> None:
    """Say what there is; refuse any other word."""
    if words and words[0] not in ("-h", "--help"):
        found = argparse.ArgumentParser(prog="weft bench", usage="weft bench NAME [options]")
        found.error(f"no benchmark {words[0]}; there are {', '.join(BENCHMARKS)}")
    console = Console()
    console.print("weft bench NAME \\[options]; weft bench NAME --help for its options\n")
    for name, about in BENCHMARKS.items():
        console.print(f"  [bold]{name:10}[/]{about}", highlight=False)


def load(name: str):
    return importlib.import_module(f"bench.{name}")


if __name__ == "__main__":
    main()
