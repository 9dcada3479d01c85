"""The shell's parts: cutting text into statements, drawing tables, completion, keys."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console
from test_cli import FakeDatabase

from weft.delivery.completion import WeftCompleter, WeftLexer
from weft.delivery.formats import show_lag, show_value, to_csv, to_json
from weft.delivery.problems import problem
from weft.delivery.session import Session, tag
from weft.delivery.shell import Shell
from weft.delivery.split import Piece, is_complete, split
from weft.delivery.tables import draw
from weft.errors import SqlError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def drawn(table: pa.Table, width: int = 80, is_terminal: bool = False, **options) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=is_terminal, color_system=None)
    draw(console, table, **options)
    return out.getvalue().splitlines()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  -- nothing\n /* at all */ ;;", []),
        ("SELECT 1", [Piece("SELECT 1", 1, 1, is_ended=False)]),
        ("SELECT ';' ; SELECT 2;", [Piece("SELECT ';'", 1, 1), Piece("SELECT 2", 1, 14)]),
        (
            "SELECT `a;b`, \"c;d\", 'it\\'s;' -- ;\n;",
            [Piece("SELECT `a;b`, \"c;d\", 'it\\'s;' -- ;")],
        ),
        ("\\d x\nSELECT 1 - 2 / 3;", [Piece("\\d x"), Piece("SELECT 1 - 2 / 3", 2, 1)]),
        ("a [RANGE 1 HOUR];", [Piece("a [RANGE 1 HOUR]")]),
    ],
)
def test_split(text, expected):
    assert split(text) == expected


@pytest.mark.parametrize("text", ["", "SELECT 1;", "SELECT ';';  ", "\\d trades", "-- a note"])
def test_complete(text):
    assert is_complete(text)


@pytest.mark.parametrize(
    "text", ["SELECT 1", "SELECT ';", "SELECT 1; /* ;", "SELECT 1; SELECT 2", '";']
)
def test_not_complete(text):
    assert not is_complete(text)


def test_an_error_moves_with_its_piece():
    error = Piece("x", line=3, column=10).place(SqlError("no", line=1, column=2))
    assert (error.line, error.column) == (3, 11)
    error = Piece("x", line=3, column=10).place(SqlError("no", line=2, column=2))
    assert (error.line, error.column) == (4, 2)


@pytest.mark.parametrize("line", [0, 1, 2, 99])
@pytest.mark.parametrize("column", [0, 1, 8, 999, None])
def test_an_error_with_any_position_can_be_drawn(line, column):
    out = Console(file=io.StringIO(), width=40)
    out.print(problem(SqlError("no", line=line, column=column), "SELECT\t" + "x, " * 200))
    assert "error: no" in out.file.getvalue()


def test_numbers_go_right_and_the_rest_left():
    assert drawn(pa.table({"name": ["a", "bb"], "n": [1, 200], "x": [0.1 + 0.2, None]})) == [
        "name    n     x",
        "───────────────",
        "a       1   0.3",
        "bb    200  NULL",
        "(2 rows)",
    ]


def test_timestamps_of_a_column_agree_on_their_precision():
    half = NOON + timedelta(milliseconds=500)
    lines = drawn(pa.table({"ts": [NOON, half]}))
    assert lines[2:4] == ["2026-01-01 12:00:00.000", "2026-01-01 12:00:00.500"]


def test_long_answers_say_how_many_rows_there_are():
    lines = drawn(pa.table({"n": range(1000)}), limit=2)
    assert lines[2:] == ["0", "1", "(1,000 rows, the first 2 shown)"]


def test_wide_answers_keep_both_ends_and_name_what_is_hidden():
    table = pa.table({f"column_{i}": ["some text"] for i in range(10)})
    lines = drawn(table, width=50, is_terminal=True)
    assert lines[0].split() == ["column_0", "column_1", "…", "column_8", "column_9"]
    assert "6 columns do not fit (column_2, column_3" in lines[-1]
    assert all(len(line) <= 50 for line in lines[:-1])


def test_long_texts_are_cut_before_columns_are_hidden():
    table = pa.table({"name": ["a"], "n": [1], "statement": ["SELECT " * 30]})
    lines = drawn(table, width=40, is_terminal=True)
    assert lines[0].split() == ["name", "n", "statement"]
    assert lines[2].endswith("…")
    assert len(lines[2]) == 40


def test_a_pipe_gets_every_column_whole():
    lines = drawn(pa.table({"a": ["x" * 200], "b": ["y" * 200]}))
    assert lines[2] == "x" * 200 + "  " + "y" * 200


def test_an_answer_cannot_drive_the_terminal():
    lines = drawn(pa.table({"a": ["\x1b[2Jgone\nnext", "[red]not markup[/red]"]}))
    assert lines[2:4] == ["\\x1b[2Jgone\\nnext", "[red]not markup[/red]"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "true"),
        (1 / 3, "0.3333333333"),
        (1e300, "1e+300"),
        (b"\x01\xff", "\\x01ff"),
        (timedelta(minutes=90), "1 h 30 min"),
        ([1, None], "[1, NULL]"),
        ({"a": [NOON]}, "{a: [2026-01-01 12:00:00]}"),
    ],
)
def test_values_as_people_read_them(value, text):
    assert show_value(value) == text


def test_json_and_csv_keep_every_digit():
    exact = Decimal("12345678901234567890.123456789")
    table = pa.table({"d": [exact, Decimal("1.5").quantize(exact)], "f": [0.1 + 0.2, float("nan")]})
    rows = json.loads(to_json(table))
    assert rows == [{"d": str(exact), "f": 0.1 + 0.2}, {"d": 1.5, "f": "nan"}]
    assert to_csv(table).splitlines()[1] == "12345678901234567890.123456789,0.30000000000000004"
    assert to_json(table.slice(0, 0)) == "[]"


def test_lag():
    assert show_lag(None, NOON) == "-"
    assert show_lag(NOON - timedelta(seconds=3.21), NOON) == "3.2 s"
    assert show_lag(NOON - timedelta(minutes=12), NOON) == "12 min"
    assert show_lag(NOON.replace(tzinfo=None), NOON + timedelta(days=40)) == "40 d"


def test_tags():
    assert tag("create or replace continuous query hot as select", "hot").endswith("QUERY hot")
    assert tag("INSERT INTO t VALUES (1)") == "INSERT INTO"
    assert tag("whatever") == "OK"


def completions(text: str) -> list[str]:
    completer = WeftCompleter(FakeDatabase())
    completer.refresh()
    found = completer.get_completions(Document(text), CompleteEvent())
    return [completion.text for completion in found]


def test_completion():
    assert "CONTINUOUS" in completions("CREATE CONT")
    assert "continuous" in completions("create cont")
    assert "trades" in completions("SELECT * FROM tr")
    assert completions("SELECT trades.") == ["sym", "price"]
    assert "price" in completions("SELECT * FROM trades WHERE pr")
    assert "price" not in completions("SELECT pr")
    assert completions("\\tim") == ["\\timing"]
    assert completions("SELECT ") == []


def test_words_of_weft_are_coloured():
    kinds = {
        value: str(kind) for kind, value in WeftLexer().get_tokens("CREATE STREAM t RETAIN sum(x)")
    }
    assert kinds["STREAM"] == kinds["RETAIN"] == "Token.Keyword"
    assert kinds["sum"] == "Token.Name.Function"


def typed(keys: str, monkeypatch, tmp_path) -> tuple[FakeDatabase, str]:
    """Type into the shell as a person does; give the engine and what was printed."""
    monkeypatch.setenv("WEFT_HISTORY", str(tmp_path / "history"))
    out = Console(file=io.StringIO(), width=100)
    session = Session(FakeDatabase(), out=out, err=out)
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text(keys)
        Shell(session, "warehouse").run()
    return session.db, out.file.getvalue()


def test_a_statement_may_take_several_lines(monkeypatch, tmp_path):
    db, _ = typed("SELECT\r1;\r\\q\r", monkeypatch, tmp_path)
    assert db.asked == ["SELECT\n1"]
    assert "+SELECT" in (tmp_path / "history").read_text()


def test_ctrl_c_clears_and_ctrl_d_leaves(monkeypatch, tmp_path):
    db, _ = typed("SELECT 1\x03SELECT 2;\r\x04", monkeypatch, tmp_path)
    assert db.asked == ["SELECT 2"]


def test_the_shell_survives_an_error(monkeypatch, tmp_path):
    db, text = typed("SELECT prise;\rSELECT 2;\rquit\r", monkeypatch, tmp_path)
    assert db.asked == ["SELECT prise", "SELECT 2"]
    assert "^^^^^" in text


def test_the_shell_survives_a_fault_of_ours(monkeypatch, tmp_path):
    def fault(self, text):
        raise RuntimeError("oops")

    monkeypatch.setattr(FakeDatabase, "_answer", fault)
    _, text = typed("SELECT 1;\rexit;\r", monkeypatch, tmp_path)
    assert "RuntimeError: oops" in text
