"""The command `weft`.

Only Typer and Rich are imported here; Spark, Arrow and the engine wait until a command needs them,
so that `weft --help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from weft import __version__
from weft.delivery.session import ROWS_ON_SCREEN, Format, Session, is_debugging
from weft.errors import WeftError

if TYPE_CHECKING:
    from weft.delivery.api import Database


class WeftGroup(TyperGroup):
    """Draws errors for people: no traceback unless WEFT_DEBUG is set."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except WeftError as error:
            if is_debugging():
                raise
            from weft.delivery.problems import draw_problem

            draw_problem(Console(stderr=True), error)
            raise typer.Exit(1) from None


app = typer.Typer(
    cls=WeftGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Standing SQL queries over streams, woven into one pipeline on Apache Spark.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Warehouse = Annotated[
    Path,
    typer.Option(
        "--warehouse",
        "-w",
        envvar="WEFT_WAREHOUSE",
        metavar="DIR",
        help="The folder that holds everything.",
    ),
]
Catalog = Annotated[
    str | None,
    typer.Option(
        envvar="WEFT_CATALOG",
        metavar="URL",
        help="A catalog server, as postgresql://...; SQLite otherwise.",
    ),
]
HERE = Path("warehouse")


class PlanFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    MERMAID = "mermaid"


@contextmanager
def database(
    warehouse: Path, catalog: str | None, *, must_exist: bool = False
) -> Iterator[Database]:
    if must_exist and not warehouse.is_dir():
        raise WeftError(
            f"there is no warehouse at {warehouse}",
            hint="give --warehouse DIR or set WEFT_WAREHOUSE; `weft sql` makes a new one",
            code="WEFT_NO_WAREHOUSE",
        )
    import weft

    with weft.connect(warehouse, catalog=catalog) as db:
        yield db


@app.command()
def sql(
    command: Annotated[
        list[str] | None,
        typer.Option("--command", "-c", metavar="SQL", help="Execute this; may be repeated."),
    ] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(
            "--file", "-f", metavar="FILE", help="Execute this file (- is stdin), before any -c."
        ),
    ] = None,
    format: Annotated[Format, typer.Option(help="How answers are written.")] = Format.TABLE,
    run: Annotated[
        bool, typer.Option("--run", help="Afterwards, process everything that is available.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help=f"Show at most N rows; 0 for all. On a terminal {ROWS_ON_SCREEN}.",
        ),
    ] = None,
    expanded: Annotated[
        bool, typer.Option("--expanded", "-x", help="One line per value, for wide answers.")
    ] = False,
    warehouse: Warehouse = HERE,
    catalog: Catalog = None,
) -> None:
    r"""Execute statements, or open an interactive shell.

    The shell's meta-commands work here too: weft sql -f make.sql -c '\run' -c 'SELECT * FROM hot'
    """
    texts = [read(path) for path in file or []] + list(command or [])
    with database(warehouse, catalog) as db:
        session = Session(db, format=format, is_expanded=expanded)
        session.limit = (
            (ROWS_ON_SCREEN if session.out.is_terminal else None)
            if limit is None
            else (limit or None)
        )
        is_fine = all(session.attempt(text) for text in texts)
        if is_fine and run:
            from weft.delivery.running import run_once

            run_once(db, session.err)
        if is_fine and not texts and not session.is_over:
            is_fine = converse(session, str(warehouse), has_run=run)
    if not is_fine:
        raise typer.Exit(1)


def converse(session: Session, place: str, *, has_run: bool) -> bool:
    """The shell, or the statements of a pipe."""
    from weft.delivery.shell import Shell, read_statements

    if sys.stdin.isatty():
        Shell(session, place).run()
        return True
    return has_run or read_statements(session, sys.stdin)


def read(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WeftError(
            f"cannot read {path}", detail=getattr(error, "strerror", None) or str(error)
        ) from None


@app.command()
def run(
    once: Annotated[
        bool, typer.Option("--once", help="Process what is available now, then end.")
    ] = False,
    trigger: Annotated[
        str, typer.Option(metavar="INTERVAL", help="How often to look for new rows.")
    ] = "1 second",
    warehouse: Warehouse = HERE,
    catalog: Catalog = None,
) -> None:
    """Run the pipeline until Ctrl-C or SIGTERM."""
    from weft.delivery.running import run_on, run_once

    console = Console()
    with database(warehouse, catalog, must_exist=True) as db:
        if "stream" not in {str(kind).lower() for kind in db.names().values()}:
            raise WeftError(
                "there is no stream to read", hint="make one: weft sql -c 'CREATE STREAM ...'"
            )
        if once:
            run_once(db, console)
        else:
            run_on(db, console, trigger)


@app.command()
def explain(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A continuous query, or a SELECT in quotes.")
    ],
    format: Annotated[PlanFormat, typer.Option(help="How the plan is written.")] = PlanFormat.TEXT,
    warehouse: Warehouse = HERE,
    catalog: Catalog = None,
) -> None:
    """Show how a query is computed, what it shares, and why."""
    with database(warehouse, catalog, must_exist=True) as db:
        if not Session(db).attempt(f"EXPLAIN FORMAT {format} {name}"):
            raise typer.Exit(1)


@app.command()
def top(
    once: Annotated[bool, typer.Option("--once", help="Print one look and end.")] = False,
    interval: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Between two looks.")
    ] = 1.0,
    warehouse: Warehouse = HERE,
    catalog: Catalog = None,
) -> None:
    """Watch streams, queries and batches, from any process."""
    from weft.delivery import top as view

    console = Console()
    with database(warehouse, catalog, must_exist=True) as db:
        if once or not console.is_terminal:
            view.show_once(db, console, str(warehouse))
        else:
            view.show_live(db, console, str(warehouse), interval)


@app.command()
def calibrate(
    rows: Annotated[
        int, typer.Option(min=1000, metavar="N", help="Rows of the largest batches.")
    ] = 200_000,
    warehouse: Warehouse = HERE,
    catalog: Catalog = None,
) -> None:
    """Measure what work costs on this machine, for the weave optimiser (a minute or two)."""
    from rich.table import Table

    console = Console()
    with database(warehouse, catalog) as db:
        from weft.delivery import calibrate as measuring

        with console.status("starting Spark") as status:
            found = measuring.calibrate(db, rows, status.update)
        table = Table("what", "as shipped", "before", "measured")
        for line in measuring.lines(found):
            table.add_row(*line)
        console.print(table)
        low, high = found.spread()
        console.print(
            f"{len(found.observations)} batches; median error {measuring.median_error(found):.0%},"
            f" most within {low:.2f} to {high:.2f} of what they took",
            highlight=False,
        )


@app.command()
def demo(
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the warehouse in this folder.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Less data, for a first look.")] = False,
) -> None:
    """Show what Weft does on real data; ends by itself."""
    from weft.delivery import demo as story

    story.run(keep=keep, quick=quick)


@app.command(
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "help_option_names": [],  # a benchmark has options, and help, of its own
    }
)
def bench(ctx: typer.Context) -> None:
    """Run benchmarks, from a clone of the repository: weft bench latency --json FILE."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        from bench.__main__ import main as run_benchmarks
    except ModuleNotFoundError:
        raise WeftError(
            "there are no benchmarks here",
            hint="run it in a clone of the repository, where the folder bench/ is",
            code="WEFT_NO_BENCH",
        ) from None
    run_benchmarks(ctx.args)


@app.command()
def version() -> None:
    """Say which versions are in use."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    typer.echo(f"weft {__version__}")
    typer.echo(f"python {sys.version.split()[0]}")
    for package in ("pyspark", "sqlglot", "duckdb", "pyarrow"):
        try:
            typer.echo(f"{package} {version_of(package)}")
        except PackageNotFoundError:
            typer.echo(f"{package} is not installed")


def main() -> None:
    """The entry point: also faults that are not ours end in one line."""
    try:
        app(prog_name="weft")
    except Exception as error:
        if is_debugging():
            raise
        from weft.delivery.problems import draw_fault

        draw_fault(Console(stderr=True), error)
        sys.exit(1)
