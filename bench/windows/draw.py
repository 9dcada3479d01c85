"""How the windows benchmark shows itself: a bar while it runs, then a table and a plot."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.plot import chart
from bench.report import draw_table
from bench.windows.spec import Spec

HEADS = ("run", "queries", "seconds", "rows/s", "reg. s", "read ms", "p95", "as")


class Bar:
    """Runs done of all, and the stage and rows of the one in hand."""

    def __init__(self, console: Console, runs: int) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._progress = Progress(*columns, TimeElapsedColumn(), console=console)
        self._all = self._progress.add_task("runs", total=runs)
        self._one = self._progress.add_task("", total=1)
        self._label, self._stage = "", ""

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.remove_task(self._one)
        self._progress.stop()

    def begin(self, spec: Spec) -> None:
        self._label, self._stage = spec.label, ""
        self._progress.reset(self._one, total=spec.rows, description=spec.label)

    def heard(self, stage: str, rows: int) -> None:
        if stage != self._stage:
            self._stage = stage
            self._progress.update(self._one, description=f"{self._label}: {stage}", completed=rows)
        else:
            self._progress.advance(self._one, rows)

    def end(self) -> None:
        self._progress.advance(self._all)


def draw(console: Console, figures: dict) -> None:
    if figures["runs"]:
        title = f"Windows: {figures['rows']:,} rows after a warm-up batch"
        draw_table(console, title, HEADS, [row(run) for run in figures["runs"]])
        console.print(chart(title, curves(figures["runs"]), x="queries", y="seconds"))
    if figures["classes"]:
        draw_table(console, "The same classes", HEADS, [row(run) for run in figures["classes"]])
    for run in figures["flat"]:
        title = f"Batch time, {run['queries']:,} queries, {run['answers']}"
        points = [(float(i + 2), taken) for i, taken in enumerate(run["batch_seconds"])]
        series = {"batch": points}
        console.print(chart(title, series, x="batch", y="seconds", log_x=False, log_y=False))


def row(run: dict) -> tuple:
    return (
        name_of(run) + (f", {run['classes']} classes" if run.get("classes") else ""),
        f"{run['queries']:,}" if run["queries"] else "",
        f"{run['seconds']:,.2f}",
        f"{run['rows_per_second']:,}",
        figure(run.get("registration_seconds")),
        figure(run.get("read_ms_median")),
        figure(run.get("read_ms_p95")),
        "; ".join(run.get("strategies", ())),
    )


def name_of(run: dict) -> str:
    parts = [run["engine"], run["answers"] if run["engine"] == "weft" else None]
    parts.append(run["mix"] if run["mix"] != "plain" else None)
    return " ".join(part for part in parts if part)


def figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"


def curves(runs: list[dict]) -> dict:
    """Seconds by number of queries; the limit as a line across."""
    found: dict[str, list] = {}
    for run in runs:
        if run["engine"] != "limit":
            found.setdefault(name_of(run), []).append((float(run["queries"]), run["seconds"]))
    most = max((x for points in found.values() for x, _ in points), default=1.0)
    for run in runs:
        if run["engine"] == "limit":
            found["limit"] = [(most ** (i / 40), run["seconds"]) for i in range(41)]
    return found
