"""What the benchmarks share in how they report: JSON, tables, targets, the machine."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Target:
    """A bound that the project sets itself, and what was measured: None if this run did not."""

    what: str
    measured: float | None
    bound: float
    aim: float | None = None
    unit: str = "×"
    at_least: bool = False
    note: str = ""
    caveat: str = ""  # how the run differs from the target's; then there is no verdict

    @property
    def is_met(self) -> bool | None:
        if self.measured is None or self.caveat:
            return None
        if self.at_least:
            return self.measured >= self.bound
        return self.measured <= self.bound

    def to_json(self) -> dict:
        return {**asdict(self), "is_met": self.is_met}


def parser(name: str, about: str) -> argparse.ArgumentParser:
    """A parser of a benchmark's own words; every benchmark takes --json."""
    found = argparse.ArgumentParser(prog=f"weft bench {name}", description=about)
    found.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    return found


def write_json(path: Path | None, figures: Any) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def machine() -> dict:
    """What the figures depend on, apart from the code; no names of machines or folders."""
    from importlib.metadata import version

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(memory, 1),
        "python": platform.python_version(),
        "spark": version("pyspark"),
        "load_before": round(os.getloadavg()[0], 2),
    }  # fmt: skip


def draw_table(
    console: Console,
    title: str,
    heads: Iterable[str],
    rows: Iterable[tuple],
    is_wordy: bool = False,
) -> None:
    """A table whose first column is text and the others figures."""
    table = Table(title=title, title_justify="left")
    for i, head in enumerate(heads):
        table.add_column(head, justify="right" if i else "left", no_wrap=not i and not is_wordy)
    for row in rows:
        table.add_row(*["" if cell is None else str(cell) for cell in row])
    console.print(table)


def draw_targets(console: Console, targets: Iterable[Target]) -> None:
    rows = []
    for target in targets:
        sign = "≥" if target.at_least else "≤"
        aim = "" if target.aim is None else f"{sign} {target.aim:g}"
        measured = "not measured" if target.measured is None else _figure(target)
        bound = f"{sign} {target.bound:g} {target.unit}"
        remarks = "; ".join(part for part in (target.note, target.caveat) if part)
        rows.append((target.what, measured, bound, aim, _verdict(target), remarks))
    heads = ("target", "measured", "bound", "aim", "met", "note")
    draw_table(console, "Targets", heads, rows, is_wordy=True)


def _figure(target: Target) -> str:
    return f"{target.measured:,.2f} {target.unit}"


def _verdict(target: Target) -> str:
    return {True: "[green]yes[/]", False: "[red]no[/]", None: "[dim]–[/]"}[target.is_met]
