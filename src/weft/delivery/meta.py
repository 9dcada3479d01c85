"""The backslash commands: what psql users reach for, and \\run.

Each is a function of the session and the rest of its line, in one visible table.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from weft.delivery.formats import printable
from weft.errors import SyntaxProblem, WeftError, did_you_mean

if TYPE_CHECKING:
    from weft.delivery.session import Session


def execute_meta(session: Session, line: str) -> None:
    name, _, argument = line.rstrip("; \t").partition(" ")
    if name not in COMMANDS:
        raise SyntaxProblem(
            f"there is no command {printable(name)}",
            hint=did_you_mean(name, COMMANDS) or "type \\? for the list",
            line=1,
            column=1,
        )
    COMMANDS[name][0](session, argument.strip())


def describe(session: Session, name: str) -> None:
    if name:
        session.execute_sql(f"DESCRIBE {name}")
        return
    names = session.db.names()
    if not names:
        session.note("nothing is registered yet: start with CREATE STREAM")
        return
    import pyarrow as pa

    pairs = sorted(names.items(), key=lambda pair: (pair[1], pair[0]))
    session.show("", pa.table({"kind": [k for _, k in pairs], "name": [n for n, _ in pairs]}))


def show(what: str) -> Callable[[Session, str], None]:
    return lambda session, name: session.execute_sql(f"DESCRIBE {name}" if name else f"SHOW {what}")


def explain(session: Session, name: str) -> None:
    session.execute_sql(f"EXPLAIN {name}")


def run(session: Session, _: str) -> None:
    from weft.delivery.running import run_once

    run_once(session.db, session.err)


def start(session: Session, trigger: str) -> None:
    with session.err.status("starting Spark …"):
        session.db.start(trigger=trigger.strip("'\"") or "1 second")
    session.note("the pipeline runs in the background; \\stop ends it")


def stop(session: Session, _: str) -> None:
    with session.err.status("stopping after this batch …"):
        session.db.stop()
    session.note("stopped")


def timing(session: Session, word: str) -> None:
    session.is_timed = word == "on" if word in ("on", "off") else not session.is_timed
    session.note(f"timing is {'on' if session.is_timed else 'off'}")


def expanded(session: Session, word: str) -> None:
    session.is_expanded = word == "on" if word in ("on", "off") else not session.is_expanded
    session.note(f"expanded display is {'on' if session.is_expanded else 'off'}")


def limit(session: Session, number: str) -> None:
    if number and not number.isdecimal():
        raise SyntaxProblem(f"{printable(number)} is not a number of rows", hint="write \\limit 50")
    session.limit = int(number) if number and int(number) else None
    session.note(
        f"at most {session.limit} rows are shown" if session.limit else "all rows are shown"
    )


def include(session: Session, path: str) -> None:
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise WeftError(f"cannot read {path}", detail=error.strerror) from None
    if not session.attempt(text):
        raise WeftError(f"{path} was carried out only up to the error above")


def leave(session: Session, _: str) -> None:
    session.is_over = True


def show_help(session: Session, _: str) -> None:
    grid = Table.grid(padding=(0, 2))
    for name, (_function, argument, text) in COMMANDS.items():
        grid.add_row(f"[cyan]{name}[/cyan] [dim]{argument}[/dim]", text)
    session.out.print(grid)
    session.out.print("[dim]Statements end with a semicolon.[/dim]", highlight=False)


Command = tuple[Callable[["Session", str], None], str, str]

COMMANDS: dict[str, Command] = {
    "\\?": (show_help, "", "this list"),
    "\\d": (describe, "NAME", "everything that is registered, or one of them"),
    "\\ds": (show("STREAMS"), "NAME", "streams"),
    "\\dt": (show("TABLES"), "NAME", "tables"),
    "\\dq": (show("QUERIES"), "NAME", "continuous queries"),
    "\\explain": (explain, "NAME", "how a query is computed, and what it shares"),
    "\\run": (run, "", "process everything that is available now"),
    "\\start": (start, "'1 second'", "run the pipeline in the background"),
    "\\stop": (stop, "", "stop it"),
    "\\i": (include, "FILE", "execute the statements of a file"),
    "\\x": (expanded, "on | off", "one line per value, for wide answers"),
    "\\limit": (limit, "N", "show at most N rows; 0 for all"),
    "\\timing": (timing, "on | off", "show how long each statement takes"),
    "\\e": (lambda session, _: session.note("\\e needs a terminal"), "", "edit the last statement"),
    "\\q": (leave, "", "leave (or Ctrl-D)"),
}
