"""`weft run`: drive the pipeline and show how it goes.

On a terminal, a live board; in a log, one line per batch.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from weft.delivery.formats import show_lag, show_time

if TYPE_CHECKING:
    from weft.delivery.api import Database

RATE_SECONDS = 10.0


@dataclass
class StreamTally:
    rows: int = 0
    late: int = 0
    rejected: int = 0
    batches: int = 0
    ms: float = 0.0
    clock: datetime | None = None


@dataclass
class Board:
    """What has been processed since we started. Batches report from the engine's thread."""

    console: Console
    state: str = "starting Spark"
    streams: dict[str, StreamTally] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)
    recent: deque[tuple[float, int]] = field(default_factory=deque)
    queries: int = 0
    spinner: Spinner = field(default_factory=lambda: Spinner("dots"))

    def add(self, batch: Any) -> None:
        tally = self.streams.setdefault(batch.stream, StreamTally())
        tally.rows += batch.rows
        tally.late += batch.late
        tally.rejected += batch.rejected
        tally.batches += 1
        tally.ms, tally.clock = batch.ms, batch.clock
        self.queries = batch.queries
        self.recent.append((time.monotonic(), batch.rows))
        if self.state.startswith("starting"):
            self.state = "running"
        if not self.console.is_terminal:
            self.console.print(log_line(batch), highlight=False, soft_wrap=True, markup=False)

    def total(self, what: str) -> int:
        return sum(getattr(tally, what) for tally in list(self.streams.values()))

    def rate(self) -> float:
        """Rows per second over the last seconds."""
        now = time.monotonic()
        while self.recent and now - self.recent[0][0] > RATE_SECONDS:
            self.recent.popleft()
        span = min(RATE_SECONDS, max(now - self.started, 0.001))
        return sum(rows for _, rows in list(self.recent)) / span

    def summary(self) -> str:
        text = (
            f"{plural(self.total('rows'), 'row')} in {plural(self.total('batches'), 'batch', 'es')}, "
            f"{time.monotonic() - self.started:,.1f} s"
        )
        for what in ("late", "rejected"):
            if count := self.total(what):
                text += f", {count:,} {what}"
        return text

    def __rich__(self) -> Group:
        line = f"{self.state}"
        if self.streams:
            line += (
                f"  {self.total('rows'):,} rows  {self.rate():,.0f} rows/s  {self.queries} queries"
            )
        else:
            line += f" … {time.monotonic() - self.started:.0f} s"
        self.spinner.update(text=Text(line))
        parts: list[Any] = [self.spinner]
        if self.streams:
            parts.append(self._table())
        return Group(*parts)

    def _table(self) -> Table:
        table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
        table.add_column("stream", style="cyan")
        for name in ("rows", "late", "rejected", "batches", "last ms"):
            table.add_column(name, justify="right")
        table.add_column("clock")
        table.add_column("lag", justify="right")
        for name, tally in sorted(self.streams.items()):
            table.add_row(
                Text(name),
                f"{tally.rows:,}",
                f"{tally.late:,}",
                f"{tally.rejected:,}",
                f"{tally.batches:,}",
                f"{tally.ms:,.0f}",
                show_time(tally.clock) if tally.clock else "-",
                show_lag(tally.clock, datetime.now(UTC)),
            )
        return table

    @contextmanager
    def shown(self) -> Iterator[None]:
        if not self.console.is_terminal:
            yield
            return
        with Live(self, console=self.console, refresh_per_second=8, transient=True):
            yield


def plural(count: int, noun: str, ending: str = "s") -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else ending)


def log_line(batch: Any) -> str:
    clock = show_time(batch.clock) if batch.clock else "-"
    return (
        f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} stream={batch.stream} rows={batch.rows} "
        f"late={batch.late} rejected={batch.rejected} queries={batch.queries} "
        f"ms={batch.ms:.0f} clock={clock.replace(' ', 'T')}"
    )


def run_once(db: Database, console: Console) -> None:
    """Process everything that is available now."""
    board = Board(console)
    with board.shown():
        db.run(progress=board.add)
    text = board.summary() if board.streams else "nothing new to process"
    console.print(Text(text, style="dim"))


def run_on(db: Database, console: Console, trigger: str) -> None:
    """Run until Ctrl-C or SIGTERM, then finish the batch in hand; a second Ctrl-C leaves at once."""
    board = Board(console)
    with board.shown():
        with terminate_as_interrupt():
            db.start(trigger=trigger, progress=board.add)
        board.state = "running (Ctrl-C stops)"
        with stop_signal() as stop:
            while not stop.wait(0.2) and db.is_running:
                pass
        board.state = "stopping after this batch"
        db.stop()
    console.print(Text(f"stopped: {board.summary()}", style="dim"))


@contextmanager
def stop_signal() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set. The handlers go in after Spark has set its own."""
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """While Spark starts there is no batch to finish: SIGTERM just unwinds, as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
