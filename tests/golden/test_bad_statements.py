"""Bad statements and the errors a user sees, as one readable file.

`WEFT_GOLDEN=write pytest tests/golden` (or `make golden`) rewrites the errors; the statements stay.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft.errors import SqlError
from weft.logical.relations import ARRIVAL, Column, Kind, Relation
from weft.sql.bind import bind
from weft.sql.parse import parse
from weft.sql.statements import CreateQuery, Explain, Select, Statement

GOLDEN = Path(__file__).with_name("bad_statements.txt")
ARROW = "---->"


def columns(text: str) -> tuple[Column, ...]:
    return tuple(Column(*part.split(" ", 1)) for part in text.split(", "))


class FixedNames:
    """The few names that the bad statements may use."""

    relations = (
        Relation(
            Kind.STREAM, "trades", columns("sym STRING, price DOUBLE, qty INT, ts TIMESTAMP"), "ts"
        ),
        Relation(
            Kind.STREAM, "quotes", columns("sym STRING, bid DOUBLE, ask DOUBLE, at TIMESTAMP"), "at"
        ),
        Relation(Kind.STREAM, "ticks", columns("value STRING"), ARRIVAL),
        Relation(Kind.TABLE, "symbols", columns("sym STRING, company STRING")),
        Relation(Kind.TABLE, "fx", columns("ccy STRING, rate DOUBLE"), is_retroactive=True),
        Relation(
            Kind.QUERY,
            "hot",
            columns("window_start TIMESTAMP, window_end TIMESTAMP, sym STRING, n BIGINT"),
            is_per_window=True,
        ),
        Relation(Kind.QUERY, "latest", columns("sym STRING, price DOUBLE")),
    )

    def find(self, name: str) -> Relation | None:
        return next((r for r in self.relations if r.name.lower() == name.lower()), None)

    def all(self) -> list[str]:
        return [relation.name for relation in self.relations]


def cases() -> list[tuple[str, str]]:
    """(statement, expected error) pairs; blocks are separated by empty lines."""
    pairs = []
    for block in GOLDEN.read_text("utf-8").strip().split("\n\n"):
        statement, _, expected = block.partition(f"\n{ARROW}")
        pairs.append((statement, expected.strip("\n")))
    return pairs


def check(statement: Statement) -> None:
    select = statement if isinstance(statement, Select) else getattr(statement, "select", None)
    if select is not None:
        emit = getattr(statement, "emit", None)
        bind(select, FixedNames(), emit, is_standing=isinstance(statement, CreateQuery | Explain))


def error_of(text: str) -> str:
    try:
        for statement in parse(text):
            check(statement)
    except SqlError as error:
        return str(error)
    return "accepted"


def write() -> None:
    blocks = [f"{statement}\n{ARROW}\n{error_of(statement)}" for statement, _ in cases()]
    GOLDEN.write_text("\n\n".join(blocks) + "\n", "utf-8")


if os.environ.get("WEFT_GOLDEN") == "write":
    write()


@pytest.mark.parametrize(("statement", "expected"), cases(), ids=lambda text: text[:60])
def test_bad_statement(statement: str, expected: str) -> None:
    assert error_of(statement) == expected


@pytest.mark.parametrize("statement", [statement for statement, _ in cases()], ids=lambda t: t[:60])
def test_every_error_helps(statement: str) -> None:
    """Each has a position, and a detail or a hint."""
    with pytest.raises(SqlError) as raised:
        for parsed in parse(statement):
            check(parsed)
    error = raised.value
    assert error.line is not None
    assert error.column is not None
    assert error.detail or error.hint
    assert "\x1b" not in str(error)


def test_there_are_many() -> None:
    assert len(cases()) >= 70
