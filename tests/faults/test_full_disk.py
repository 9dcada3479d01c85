"""A disk that fills up: a clear error, nothing lost, nothing twice, and on it goes with free space.

The warehouse is a small tmpfs of its own, so only root may run these tests.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from test_damage import QUERIES, STREAM, check, push

import weft

FULL = ("WEFT_DISK_FULL", "WEFT_STORAGE_WRITE", "WEFT_CATALOG_WRITE")


@pytest.fixture
def disk(tmp_path: Path):
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "weft-test", str(folder)]
    try:
        made = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"a full disk needs a file system of its own: {error}")
    if made.returncode:
        pytest.skip(f"a full disk needs a file system of its own: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Take all space but some KiB."""
    ballast = disk / "ballast"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with ballast.open("wb") as file:
        file.write(b"x" * max(free - leave * 1024, 0))
    return ballast


@pytest.fixture
def flow(disk: Path, spark):
    with weft.connect(disk, spark=spark) as db:
        db.sql(STREAM)
        db.sql("CREATE TABLE t (a INT)")
        for name, select in QUERIES.items():
            db.sql(f"CREATE CONTINUOUS QUERY {name} AS {select}")
        push(db, 0, 1, 2)
        db.run()
        yield db


def refused(work) -> weft.WeftError:
    with pytest.raises(weft.WeftError) as caught:
        work()
    assert caught.value.code in FULL, caught.value
    assert caught.value.hint
    return caught.value


def test_batches(flow, disk: Path):
    """Each amount of free space lets a batch get a little further before it fails."""
    failed = []
    for done, leave in enumerate((0, 4, 12, 24, 40, 60, 90, 130), start=3):
        push(flow, done)
        ballast = fill(disk, leave)
        try:
            flow.run()
        except weft.WeftError as error:
            assert error.code in FULL, error
            failed.append(leave)
        ballast.unlink()
        flow.run()
        check(flow, done + 1)
    assert len(failed) >= 3, "the disk was never full"


def test_push(flow, disk: Path):
    ballast = fill(disk, 0)
    error = refused(lambda: push(flow, 3))
    assert str(disk / "inbox") in str(error)
    ballast.unlink()
    push(flow, 3)
    flow.run()
    check(flow, 4)


def test_registration(flow, disk: Path):
    create = "CREATE CONTINUOUS QUERY q AS SELECT id FROM s [SINCE '2026-01-01']"
    failed = []
    for leave in (0, 8, 16, 32, 64):
        ballast = fill(disk, leave)
        try:
            flow.sql(create)
        except weft.WeftError as error:
            assert error.code in FULL, error
            assert "q" not in flow.names()
            failed.append(leave)
        ballast.unlink()
        if "q" in flow.names():
            flow.sql("DROP QUERY q")
    assert failed
    assert sorted(flow.sql(create).results().column("id").to_pylist()) == [0, 1, 2]


def test_table(flow, disk: Path):
    ballast = fill(disk, 0)
    refused(lambda: flow.sql("INSERT INTO t VALUES (1), (2)"))
    refused(lambda: flow.sql("CREATE TABLE u (a INT)"))
    ballast.unlink()
    assert len(flow.sql("SELECT a FROM t")) == 0
    flow.sql("INSERT INTO t VALUES (1), (2)")
    assert flow.sql("SELECT a FROM t ORDER BY a").column("a").to_pylist() == [1, 2]


def test_read_only_disk(flow, disk: Path):
    """The disk has turned read-only, as Linux makes it after an I/O error."""
    flow.close()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with pytest.raises(weft.WeftError) as caught:
        push(weft.connect(disk), 3)
    assert caught.value.code in (*FULL, "WEFT_CATALOG_UNREACHABLE"), caught.value
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    with weft.connect(disk, spark=flow._engine._given_session) as db:
        push(db, 3)
        db.run()
        check(db, 4)
