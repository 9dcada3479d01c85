"""Two processes on one warehouse: one writes, any number read, and a kill leaves the lock free."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import weft

SETUP = """
CREATE STREAM s (id INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS);
CREATE CONTINUOUS QUERY closed AS
  SELECT count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS];
CREATE CONTINUOUS QUERY total AS SELECT count(*) AS n FROM s [SINCE '2026-01-01'];
"""
# pushes a row a moment; says so after each, when the row is durable
WRITER = """
import sys, weft
db = weft.connect(sys.argv[1])
if "s" not in db.names():
    db.sql(sys.argv[2])
db.start(trigger="100 milliseconds")
n = db.sql("SELECT count(*) AS n FROM s").column("n")[0].as_py()
while True:
    db.push("s", [{"id": n, "ts": f"2026-01-01T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z"}])
    n += 1
    if n % 5 == 0:
        db.run()
    print(n, flush=True)
"""
READER = """
import json, sys, weft
with weft.connect(sys.argv[1]) as db:
    status = db.status()
    total = db.query("total")
    changes = list(total.subscribe())
    found = {
        "results": total.results().to_pylist(),
        "history": db.query("closed").history().num_rows,
        "pull": db.sql("SELECT count(*) AS n, count(DISTINCT id) AS ids FROM s").to_pylist()[0],
        "names": sorted(db.sql("SHOW QUERIES").column("name").to_pylist()),
        "changes": [[c.kind, c.row["n"]] for c in changes],
        "is_running": status.is_running,
        "rows": status.streams[0].rows,
        "explain": len(total.explain()),
        "spark": "pyspark" in sys.modules,
    }
print(json.dumps(found))
"""
INTRUDER = """
import json, sys, weft
errors = []
for work in (
    lambda db: db.push("s", [{"id": -1, "ts": "2026-01-01T00:00:00Z"}]),
    lambda db: db.run(),
    lambda db: db.start(),
    lambda db: db.advance("s", "2027-01-01T00:00:00Z"),
    lambda db: db.sql("CREATE TABLE t (a INT)"),
    lambda db: db.sql("DROP QUERY total"),
    lambda db: db.sql("CREATE CONTINUOUS QUERY q AS SELECT id FROM s [RANGE 1 HOUR]"),
):
    with weft.connect(sys.argv[1]) as db:
        try:
            work(db)
            errors.append(None)
        except weft.WeftError as error:
            errors.append([type(error).__name__, error.code, str(error)])
print(json.dumps(errors))
"""


def run(script: str, *arguments: str) -> object:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def start_writer(folder: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), SETUP],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # so that Spark's JVM can be killed with it
    )


def kill(writer: subprocess.Popen) -> int:
    """kill -9 to the writer and its JVM; returns how many rows it had said were durable."""
    os.killpg(writer.pid, signal.SIGKILL)
    writer.wait()
    return int([0, *writer.stdout.read().split()][-1])


def wait_for(writer: subprocess.Popen, count: int) -> None:
    while int(writer.stdout.readline() or sys.maxsize) < count:
        pass
    assert writer.poll() is None


@pytest.fixture
def writer(tmp_path: Path):
    process = start_writer(tmp_path)
    yield process
    if process.poll() is None:
        kill(process)


def test_one_writer_many_readers_and_a_kill(writer: subprocess.Popen, tmp_path: Path, spark):
    wait_for(writer, 10)

    # readers: no Spark, no lock, one consistent look each
    for _ in range(3):
        found = run(READER, str(tmp_path))
        assert not found["spark"]
        assert found["is_running"]
        assert found["names"] == ["closed", "total"]
        assert found["pull"]["n"] == found["pull"]["ids"] >= 5
        assert found["rows"] >= 5
        assert found["explain"] > 0
        assert_unbroken(found["changes"])

    # a second writer: refused, and told by whom
    errors = run(INTRUDER, str(tmp_path))
    for name, code, text in errors:
        assert (name, code) == ("WarehouseBusy", "WEFT_WAREHOUSE_BUSY")
        assert f"process {writer.pid} " in text
        assert "hint" in text

    said = kill(writer)

    # readers go on after the kill, and nobody seems to be running
    found = run(READER, str(tmp_path))
    assert not found["is_running"]
    assert found["pull"]["n"] == found["pull"]["ids"]
    assert not found["spark"]

    # the lock is free; what was durable is there, each row once, and nothing of the intruder
    with weft.connect(tmp_path, spark=spark) as db:
        db.run()
        ids = db.sql("SELECT id FROM s").column("id").to_pylist()
        assert sorted(ids) == list(range(len(ids)))
        assert said <= len(ids) <= said + 1
        assert db.query("total").results().to_pylist() == [{"n": len(ids)}]
        assert db.query("closed").history().num_rows == (len(ids) - 1) // 10
        assert sorted(db.names()) == ["closed", "s", "total"]


def assert_unbroken(changes: list) -> None:
    """Each count is taken back before the next one comes."""
    current = None
    for kind, value in changes:
        if kind == "insert":
            assert current is None
            current = value
        else:
            assert current == value
            current = None


def test_killed_again_and_again(tmp_path: Path, spark):
    """Whole processes, Spark's JVM included: nothing of them lives on."""
    said = 0
    for rows in (3, 8):
        process = start_writer(tmp_path)
        wait_for(process, said + rows)
        time.sleep(0.3)
        said = kill(process)
    with weft.connect(tmp_path, spark=spark) as db:
        db.run()
        ids = db.sql("SELECT id FROM s").column("id").to_pylist()
        # after a restart the writer counts what it sees, so an id may come twice, a row may not
        assert len(ids) >= said
        assert set(ids) == set(range(max(ids) + 1))
        assert db.query("total").results().to_pylist() == [{"n": len(ids)}]


def test_two_processes_make_the_same_new_warehouse(tmp_path: Path):
    """Both migrate; both must find a whole catalog."""
    script = "import sys, weft; weft.connect(sys.argv[1]).close()"
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        both = [
            subprocess.Popen(
                [sys.executable, "-c", script, str(folder)], stderr=subprocess.PIPE, text=True
            )
            for _ in range(3)
        ]
        for process in both:
            _, errors = process.communicate(timeout=60)
            assert process.returncode == 0, errors
