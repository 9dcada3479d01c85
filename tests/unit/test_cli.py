"""The command line against a small stand-in for the engine: what is asked of it, what is drawn."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import weft
from weft.delivery.cli import app
from weft.errors import UnknownName, WeftError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BATCH = SimpleNamespace(
    stream="trades",
    batch_id=7,
    rows=1000,
    late=2,
    rejected=0,
    ms=420.0,
    clock=NOON,
    queries=3,
    committed_at=NOON,
)


class FakeDatabase:
    """Knows one stream and one query, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_running = False
        self.is_closed = False
        self.batches = [BATCH]

    def __enter__(self) -> FakeDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closed = True

    def sql(self, text: str):
        self.asked.append(text)
        return self._answer(text)

    def _answer(self, text: str):
        if (at := text.find("prise")) >= 0:
            line = text.count("\n", 0, at) + 1
            column = at - text.rfind("\n", 0, at)
            raise UnknownName(
                'column "prise" does not exist in stream "trades"',
                detail="its columns are sym, price",
                hint='did you mean "price"?',
                code="WEFT_UNKNOWN_COLUMN",
                line=line,
                column=column,
            )
        if text.startswith("EXPLAIN"):
            return pa.table({"plan": ["fold trades", "  [pane 10 s]"]})
        if text.startswith(("SELECT", "SHOW", "DESCRIBE")):
            return pa.table({"sym": ["A", None], "avg": [1.5, 2.0], "ts": [NOON, NOON]})
        if text.startswith("CREATE CONTINUOUS"):
            return SimpleNamespace(name="hot")
        return None

    def names(self) -> dict[str, str]:
        return {"trades": "stream", "hot": "query"}

    def columns(self, name: str) -> list[str]:
        return {"trades": ["sym", "price"], "hot": ["sym", "avg"]}[name]

    def run(self, progress=lambda batch: None):
        for batch in self.batches:
            progress(batch)

    def start(self, trigger: str, progress=lambda batch: None) -> None:
        self.asked.append(f"start {trigger}")
        self.run(progress)

    def stop(self) -> None:
        self.asked.append("stop")

    def status(self):
        stream = SimpleNamespace(
            name="trades",
            source="push",
            clock=NOON,
            max_event_time=NOON,
            rows=5000,
            late=2,
            rejected=1,
            retain=timedelta(days=7),
        )
        query = SimpleNamespace(
            name="hot",
            strategy="shared",
            window="tumbling 1 h",
            clock=NOON,
            evaluations=4,
            rows_out=40,
            last_ms=12.0,
            error=None,
        )
        before = SimpleNamespace(**{**vars(BATCH), "committed_at": NOON - timedelta(seconds=2)})
        return SimpleNamespace(
            is_running=self.is_running, streams=[stream], queries=[query], batches=[before, BATCH]
        )


@pytest.fixture
def db(monkeypatch, tmp_path) -> FakeDatabase:
    fake = FakeDatabase()
    monkeypatch.setattr(weft, "connect", lambda *args, **options: fake, raising=False)
    monkeypatch.setenv("WEFT_WAREHOUSE", str(tmp_path))
    monkeypatch.delenv("WEFT_DEBUG", raising=False)
    return fake


def weft_command(*arguments: str, stdin: str = ""):
    return CliRunner().invoke(app, list(arguments), input=stdin)


def test_statements_are_executed_in_order_and_shown(db):
    done = weft_command("sql", "-c", "CREATE STREAM t (a INT)", "-c", "SELECT 1; SELECT 2")
    assert done.exit_code == 0, done.output
    assert db.asked == ["CREATE STREAM t (a INT)", "SELECT 1", "SELECT 2"]
    assert done.stdout.splitlines()[:5] == [
        "CREATE STREAM",
        "sym   avg  ts",
        "──────────────────────────────",
        "A     1.5  2026-01-01 12:00:00",
        "NULL    2  2026-01-01 12:00:00",
    ]
    assert db.is_closed


def test_a_created_query_is_named(db):
    done = weft_command("sql", "-c", "create continuous query hot as select 1")
    assert done.stdout == "CREATE CONTINUOUS QUERY\n"
    done = weft_command("sql", "-c", "CREATE CONTINUOUS QUERY hot AS SELECT 1")
    assert done.stdout == "CREATE CONTINUOUS QUERY hot\n"


def test_json_and_csv_hold_nothing_but_data(db):
    statements = ("-c", "INSERT INTO t VALUES (1)", "-c", "SELECT 1")
    rows = json.loads(weft_command("sql", "--format", "json", *statements).stdout)
    assert rows[1] == {"sym": None, "avg": 2.0, "ts": "2026-01-01T12:00:00Z"}
    text = weft_command("sql", "--format", "csv", *statements).stdout
    assert text.splitlines() == [
        "sym,avg,ts",
        "A,1.5,2026-01-01T12:00:00Z",
        ",2.0,2026-01-01T12:00:00Z",
    ]


def test_a_plan_is_printed_line_by_line_without_markup(db):
    assert weft_command("sql", "-c", "EXPLAIN hot").stdout == "fold trades\n  [pane 10 s]\n"


def test_an_error_points_into_the_file_and_stops_the_script(db, tmp_path):
    file = tmp_path / "make.sql"
    file.write_text("-- first\nSELECT 1; SELECT prise\nFROM trades;\nSELECT 3;\n")
    done = weft_command("sql", "-f", str(file))
    assert done.exit_code == 1
    assert done.stderr.splitlines() == [
        'error: column "prise" does not exist in stream "trades"',
        "  2 | SELECT 1; SELECT prise",
        "    |                  ^^^^^",
        "  detail: its columns are sym, price",
        '  hint:   did you mean "price"?',
        "  [WEFT_UNKNOWN_COLUMN, line 2, column 18]",
    ]
    assert "SELECT 3" not in db.asked


def test_a_file_that_cannot_be_read_is_an_error_of_ours(db):
    done = weft_command("sql", "-f", "nowhere.sql")
    assert done.exit_code == 1
    assert "cannot read nowhere.sql" in done.stderr
    assert "Traceback" not in done.output


def test_a_pipe_is_read_statement_by_statement(db):
    done = weft_command("sql", stdin="SELECT\n 1;\n\\run\n\\q\nSELECT 2;")
    assert done.exit_code == 0, done.output
    assert db.asked == ["SELECT\n 1"]
    assert "1,000 rows in 1 batch," in done.stderr


def test_an_error_in_a_pipe_names_the_line_of_the_pipe(db):
    done = weft_command("sql", stdin="SELECT 1;\n\nSELECT\n  prise;\nSELECT 2;\n")
    assert done.exit_code == 1
    assert "  4 |   prise;" in done.stderr
    assert "line 4, column 3" in done.stderr


def test_the_last_statement_of_a_pipe_needs_no_semicolon(db):
    weft_command("sql", stdin="SELECT 1;\nSELECT 2")
    assert db.asked == ["SELECT 1", "SELECT 2"]


def test_meta_commands(db):
    done = weft_command("sql", stdin="\\d\n\\dq\n\\d trades\n\\timing\nSELECT 1;\n\\x\nSELECT 1;\n")
    assert db.asked == ["SHOW QUERIES", "DESCRIBE trades", "SELECT 1", "SELECT 1"]
    assert "stream  trades" in done.stdout
    assert "Time: " in done.stdout
    assert "─[ row 1 ]" in done.stdout


def test_an_unknown_meta_command_is_refused_with_a_hint(db):
    done = weft_command("sql", "-c", "\\tming")
    assert done.exit_code == 1
    assert 'did you mean "\\timing"?' in done.stderr


def test_sql_run_processes_afterwards(db):
    done = weft_command("sql", "-c", "SELECT 1", "--run")
    assert "1,000 rows in 1 batch," in done.stderr


def test_run_once_logs_each_batch_and_a_summary(db):
    done = weft_command("run", "--once")
    assert done.exit_code == 0, done.output
    assert "stream=trades rows=1000 late=2 rejected=0 queries=3 ms=420" in done.stdout
    assert "1,000 rows in 1 batch," in done.stdout


def test_run_starts_with_the_trigger_and_stops_in_order(db):
    done = weft_command("run", "--trigger", "5 seconds")
    assert done.exit_code == 0, done.output
    assert db.asked == ["start 5 seconds", "stop"]
    assert "stopped: 1,000 rows" in done.stdout


def test_run_without_a_stream_says_so(db, monkeypatch):
    monkeypatch.setattr(db, "names", dict)
    done = weft_command("run")
    assert done.exit_code == 1
    assert "there is no stream to read" in done.stderr


def test_an_error_of_the_pipeline_is_drawn(db, monkeypatch):
    def fail(progress):
        raise WeftError("a segment is missing", hint="restore it", code="WEFT_STORAGE")

    monkeypatch.setattr(db, "run", fail)
    done = weft_command("run", "--once")
    assert done.exit_code == 1
    assert "error: a segment is missing" in done.stderr
    assert "[WEFT_STORAGE]" in done.stderr
    assert db.is_closed


def test_ctrl_c_ends_with_130(db, monkeypatch):
    def interrupted(progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(db, "run", interrupted)
    assert weft_command("run", "--once").exit_code == 130
    assert db.is_closed


@pytest.mark.parametrize("format", ["text", "json", "mermaid"])
def test_explain(db, format):
    done = weft_command("explain", "hot", "--format", format)
    assert done.stdout == "fold trades\n  [pane 10 s]\n"
    assert db.asked == [f"EXPLAIN FORMAT {format} hot"]


def test_explain_of_a_select_that_is_refused(db):
    done = weft_command("explain", "SELECT prise FROM trades")
    assert done.exit_code == 1
    assert "^^^^^" in done.stderr


def test_top_shows_streams_queries_and_batches(db):
    done = weft_command("top", "--once")
    assert done.exit_code == 0, done.output
    assert "not running" in done.stdout
    lines = done.stdout.splitlines()
    assert any("trades" in line and "5,000" in line and "7 d" in line for line in lines)
    assert any("hot" in line and "shared" in line and "tumbling 1 h" in line for line in lines)
    assert "ms per batch" in done.stdout


def test_top_gives_rates_while_it_runs(db):
    db.is_running = True
    done = weft_command("top", "--once")
    assert "not running" not in done.stdout
    assert any("trades" in line and " 500 " in line for line in done.stdout.splitlines())


@pytest.mark.parametrize("command", [["top", "--once"], ["run"], ["explain", "hot"]])
def test_a_missing_warehouse_is_not_made_by_reading(db, tmp_path, command):
    nowhere = tmp_path / "nowhere"
    done = weft_command(*command, "-w", str(nowhere))
    assert done.exit_code == 1
    assert "there is no warehouse" in done.stderr
    assert not nowhere.exists()


def test_help_does_not_load_the_engine():
    code = (
        "import sys; from weft.delivery import cli\n"
        "heavy = {'pyspark', 'pyarrow', 'duckdb', 'pandas', 'prompt_toolkit', 'sqlalchemy'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version_names_weft():
    assert f"weft {weft.__version__}" in weft_command("version").stdout


def test_the_command_is_installed():
    assert (Path(sys.executable).parent / "weft").exists()
