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
from datetime import UTC, datetime, timedelta
from select import select
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from weft.delivery.formats import printable, show_lag, show_time
from weft.logical.windows import duration
from weft.optimizer.described import counted

try:
    import termios
    import tty
except ImportError:  # not on this platform: Ctrl-C still works
    termios = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from weft.delivery.api import Database

NUMBERS = {"rows", "rows/s", "late", "rejected", "lag", "evals", "ms", "ago", "number", "evaluated"}
BARS = "▁▂▃▄▅▆▇█"
BATCHES_SHOWN, ERRORS_SHOWN, WIDEST = 6, 3, 40
NARROW, LOW, WIDTH_OF_A_LOG = 100, 30, 160


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
        if then is None or query.rows_out is None or seconds <= 0:
            return None
        return max(0, query.rows_out - then) / seconds


def show_once(db: Database, console: Console, place: str) -> None:
    if not console.is_terminal:
        console.width = max(console.width, WIDTH_OF_A_LOG)
    console.print(draw(Look(db.status(), place), console.width))


def show_live(db: Database, console: Console, place: str, interval: float) -> None:
    """Redraw every interval until q or Ctrl-C."""
    look = Look(db.status(), place)
    screen = Live(console=console, screen=True, auto_refresh=False)
    with keys(console) as is_asked_to_stop, screen as live:
        while True:
            live.update(draw(look, console.width, console.height), refresh=True)
            if is_asked_to_stop(interval):
                return
            look.before = None
            look = Look(db.status(), place, before=look)


def draw(look: Look, width: int, height: int | None = None) -> Group:
    """The whole view; on a small screen fewer columns, batches and queries."""
    is_narrow, is_low = width < NARROW, height is not None and height < LOW
    batches = _batches(look, BATCHES_SHOWN // 2 if is_low else BATCHES_SHOWN)
    room = None
    if height is not None:
        taken = 9 + len(look.status.streams) + (BATCHES_SHOWN // 2 if is_low else BATCHES_SHOWN)
        room = max(3, height - taken - 4)
    parts: list[RenderableType] = [_headline(look), Text(), _streams(look, is_narrow), Text()]
    return Group(*parts, _queries(look, is_narrow, room), Text(), batches)


def _headline(look: Look) -> Text:
    status = look.status
    state = ("running", "bold green") if status.is_running else ("not running", "bold yellow")
    streams, queries = len(status.streams), len(status.queries)
    counts = f"{counted(streams, 'stream')}, {counted(queries, 'query')}"
    moment = f"{look.now:%H:%M:%S} UTC"
    parts = [("weft top  ", "bold"), state, (f"  {counts}  {moment}  ", "dim"), (look.place, "dim")]
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _streams(look: Look, is_narrow: bool) -> Table:
    rates = stream_rates(look)
    rows = [
        {
            "streams": Text(printable(s.name)),
            "source": Text(_text(s.source)),
            "rows": f"{s.rows:,}",
            "rows/s": _rate(rates.get(s.name)),
            "late": _warning(s.late),
            "rejected": _warning(s.rejected, "red"),
            "clock": show_time(s.clock) if s.clock else "-",
            "lag": show_lag(s.clock, look.now),
            "retain": duration(s.retain)
            if isinstance(s.retain, timedelta)
            else _text(s.retain, "all"),
        }
        for s in sorted(look.status.streams, key=lambda s: s.name)
    ]
    return _table("streams", rows, without=("source", "retain") if is_narrow else ())


def _queries(look: Look, is_narrow: bool, room: int | None) -> Group:
    """The failing ones first, then the costliest."""
    queries = sorted(look.status.queries, key=lambda q: (not q.error, -(q.last_ms or 0), q.name))
    shown = queries[:room]
    rows = [
        {
            "queries": Text(printable(q.name), style="red" if q.error else ""),
            "strategy": Text(_strategy(q, is_narrow)),
            "window": Text(_text(q.window)),
            "rows": "-" if q.rows_out is None else f"{q.rows_out:,}",
            "rows/s": _rate(look.query_rate(q)),
            "evals": f"{q.evaluations:,}",
            "ms": "-" if q.last_ms is None else f"{q.last_ms:,.0f}",
            "clock": show_time(q.clock) if q.clock else "-",
        }
        for q in shown
    ]
    table = _table("queries", rows, without=("clock",) if is_narrow else ())
    rest = len(queries) - len(shown)
    more = [Text(f"and {rest:,} more", style="dim")] if rest else []
    return Group(table, *more, *(_failure(q) for q in queries[:ERRORS_SHOWN] if q.error))


def _strategy(query: Any, is_narrow: bool) -> str:
    text = _text(query.strategy)
    return text.partition(":")[0] if is_narrow else text


def _failure(query: Any) -> Text:
    text = f"{printable(query.name)}: {printable(str(query.error))}"
    return Text(text, style="red", no_wrap=True, overflow="ellipsis")


def _batches(look: Look, count: int) -> RenderableType:
    """The newest batches, and the durations of all that are known as a line of bars."""
    oldest_first = sorted(look.status.batches, key=lambda b: b.committed_at)
    rows = [
        {
            "batches": Text(printable(b.stream)),
            "number": f"{b.batch_id}",
            "rows": f"{b.rows:,}",
            "late": _warning(b.late),
            "rejected": _warning(b.rejected, "red"),
            "evaluated": f"{b.queries}",
            "ms": f"{b.ms:,.0f}",
            "ago": show_lag(b.committed_at, look.now),
        }
        for b in reversed(oldest_first[-count:])
    ]
    if not rows:
        return Text("no batch yet", style="dim")
    durations = [b.ms for b in oldest_first]
    line = [
        ("ms per batch  ", "dim"),
        (bars(durations), "cyan"),
        (f"  max {max(durations):,.0f}", "dim"),
    ]
    return Group(_table("batches", rows), Text.assemble(*line, no_wrap=True, overflow="ellipsis"))


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


def _table(title: str, rows: list[dict[str, Any]], without: tuple[str, ...] = ()) -> Table:
    """A table of rows by column name; the first column is called by the title."""
    names = [name for name in (rows[0] if rows else [title]) if name not in without]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold cyan")
    table.padding = (0, 1, 0, 0)
    for name in names:
        justify = "right" if name in NUMBERS else "left"
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis", max_width=WIDEST)
    for row in rows:
        table.add_row(*(row[name] for name in names))
    if not rows:
        table.add_row(Text("none", style="dim"))
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
