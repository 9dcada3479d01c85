"""`weft top`: what the pipeline does now, from any process and without Spark.

Everything shown is read from the catalog. Rates are rows of the newest batches over the time
between their commits; a query's rate is the growth of its answer between two looks.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from select import select
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from weft.delivery.formats import printable, show_lag, show_time
from weft.logical.windows import duration

try:
    import termios
    import tty
except ImportError:  # not on this platform: Ctrl-C still works
    termios = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from weft.engine import Database

NUMBERS = {
    "rows",
    "rows/s",
    "late",
    "rejected",
    "lag",
    "evaluations",
    "ms",
    "ago",
    "batch",
    "queries",
}
BARS = "▁▂▃▄▅▆▇█"
BATCHES_SHOWN, ERRORS_SHOWN = 6, 3
WIDTH_OF_A_LOG = 160
LEFT_FOR_QUERIES = 17  # lines of a screen that other parts need, besides streams and batches


@dataclass
class Look:
    """One look at the status, and what the one before it said of each query."""

    status: Any
    place: str
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    before: Look | None = None

    def query_rate(self, query: Any) -> float | None:
        if self.before is None:
            return None
        then = {q.name: q.rows_out for q in self.before.status.queries}.get(query.name)
        seconds = (self.now - self.before.now).total_seconds()
        return None if then is None or seconds <= 0 else max(0, query.rows_out - then) / seconds


def show_once(db: Database, console: Console, place: str) -> None:
    if not console.is_terminal:
        console.width = max(console.width, WIDTH_OF_A_LOG)
    console.print(draw(Look(db.status(), place), height=None))


def show_live(db: Database, console: Console, place: str, interval: float) -> None:
    """Redraw every interval until q or Ctrl-C."""
    look = Look(db.status(), place)
    with (
        keys(console) as is_asked_to_stop,
        Live(console=console, screen=True, auto_refresh=False) as live,
    ):
        while True:
            live.update(draw(look, height=console.height), refresh=True)
            if is_asked_to_stop(interval):
                return
            look.before = None
            look = Look(db.status(), place, before=look)


def draw(look: Look, height: int | None) -> Group:
    status = look.status
    room = None
    if height is not None:
        room = max(3, height - LEFT_FOR_QUERIES - len(status.streams) - BATCHES_SHOWN)
    parts: list[RenderableType] = [_headline(look), Text(), _streams(look), Text()]
    parts.append(_queries(look, room))
    if status.batches:
        parts += [Text(), _batches(look)]
    return Group(*parts)


def _headline(look: Look) -> Text:
    status = look.status
    state = ("running", "bold green") if status.is_running else ("not running", "bold yellow")
    counts = f"{len(status.streams)} streams, {len(status.queries)} queries"
    moment = f"{look.now:%H:%M:%S} UTC"
    parts = [("weft top  ", "bold"), state, (f"  {counts}  {moment}  ", "dim"), (look.place, "dim")]
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _streams(look: Look) -> Table:
    table = _table(
        "streams", ("source", "rows", "rows/s", "late", "rejected", "clock", "lag", "retain")
    )
    rates = stream_rates(look)
    for s in sorted(look.status.streams, key=lambda s: s.name):
        table.add_row(
            Text(printable(s.name)),
            Text(s.source),
            f"{s.rows:,}",
            _rate(rates.get(s.name)),
            _warning(s.late),
            _warning(s.rejected, "red"),
            show_time(s.clock) if s.clock else "-",
            show_lag(s.clock, look.now),
            duration(s.retain)
            if s.retain is not None and hasattr(s.retain, "days")
            else _text(s.retain, "all"),
        )
    return table


def _queries(look: Look, room: int | None) -> Group:
    """The failing ones first, then the costliest."""
    columns = ("strategy", "window", "rows", "rows/s", "evaluations", "ms", "clock")
    table = _table("queries", columns)
    queries = sorted(look.status.queries, key=lambda q: (not q.error, -(q.last_ms or 0), q.name))
    shown = queries if room is None else queries[:room]
    for q in shown:
        table.add_row(
            Text(printable(q.name), style="red" if q.error else ""),
            Text(_text(q.strategy)),
            Text(_text(q.window)),
            f"{q.rows_out:,}",
            _rate(look.query_rate(q)),
            f"{q.evaluations:,}",
            "-" if q.last_ms is None else f"{q.last_ms:,.0f}",
            show_time(q.clock) if q.clock else "-",
        )
    rest = len(queries) - len(shown)
    more = [Text(f"and {rest:,} more", style="dim")] if rest else []
    return Group(table, *more, *(_failure(q) for q in queries[:ERRORS_SHOWN] if q.error))


def _failure(query: Any) -> Text:
    text = f"{printable(query.name)}: {printable(str(query.error))}"
    return Text(text, style="red", no_wrap=True, overflow="ellipsis")


def _batches(look: Look) -> Group:
    """The newest batches, and the durations of all that are known as a line of bars."""
    oldest_first = sorted(look.status.batches, key=lambda b: b.committed_at)
    table = _table("batches", ("batch", "rows", "late", "rejected", "queries", "ms", "ago"))
    for b in reversed(oldest_first[-BATCHES_SHOWN:]):
        table.add_row(
            Text(printable(b.stream)),
            f"{b.batch_id}",
            f"{b.rows:,}",
            _warning(b.late),
            _warning(b.rejected, "red"),
            f"{b.queries}",
            f"{b.ms:,.0f}",
            show_lag(b.committed_at, look.now),
        )
    durations = [b.ms for b in oldest_first]
    line = Text.assemble(
        ("ms per batch  ", "dim"),
        (bars(durations), "cyan"),
        (f"  max {max(durations):,.0f}", "dim"),
    )
    return Group(table, line)


def stream_rates(look: Look) -> dict[str, float]:
    """Rows per second by stream, nothing when the newest commit is old or the only one."""
    commits = defaultdict(list)
    for b in sorted(look.status.batches, key=lambda b: b.committed_at):
        commits[b.stream].append(b)
    rates = {}
    for stream, batches in commits.items():
        span = (batches[-1].committed_at - batches[0].committed_at).total_seconds()
        if look.status.is_running and span > 0:
            rates[stream] = sum(b.rows for b in batches[1:]) / span
    return rates


def bars(values: list[float]) -> str:
    top = max([*values, 1e-9])
    return "".join(BARS[min(len(BARS) - 1, int(v / top * len(BARS)))] for v in values)


def _table(title: str, columns: tuple[str, ...]) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold cyan", expand=False
    )
    table.add_column(title, no_wrap=True, overflow="ellipsis", max_width=32)
    for name in columns:
        justify = "right" if name in NUMBERS else "left"
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis")
    return table


def _rate(value: float | None) -> str:
    return (
        "-" if value is None else f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"
    )


def _warning(count: int, style: str = "yellow") -> Text:
    return Text(f"{count:,}", style=style if count else "")


def _text(value: Any, otherwise: str = "-") -> str:
    return otherwise if value is None else printable(str(value))


@contextmanager
def keys(console: Console) -> Iterator[Callable[[float], bool]]:
    """A function that waits a while and says whether q was pressed meanwhile."""
    if not (console.is_terminal and sys.stdin.isatty() and termios):
        yield lambda seconds: bool(time.sleep(seconds))
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield (
            lambda seconds: (
                bool(select([sys.stdin], [], [], seconds)[0]) and sys.stdin.read(1) in "qQ\x1b"
            )
        )
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
