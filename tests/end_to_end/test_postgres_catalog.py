"""The catalog on a real PostgreSQL, which the test starts for itself."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import sqlalchemy as sa

import weft
from weft.catalog import schema
from weft.catalog.store import Catalog

SETUP = """
CREATE STREAM s (id INT, sym STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS);
CREATE TABLE names (sym STRING, name STRING);
CREATE CONTINUOUS QUERY closed AS
  SELECT sym, count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY sym;
CREATE CONTINUOUS QUERY total AS SELECT count(*) AS n FROM s [SINCE '2026-01-01'];
"""


def binaries() -> Path | None:
    found = shutil.which("pg_ctl")
    if found:
        return Path(found).parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    return versions[-1].parent if versions else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def server():
    """host:port of a server in a folder of its own; stopped and forgotten afterwards."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    tools = binaries()
    if tools is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    # not in pytest's own folder: it is for its owner only, and each pytest that starts sees to that
    folder = Path(tempfile.mkdtemp(prefix="weft-postgres-"))
    user: dict = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        try:
            owner = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("there is no user postgres to run the server as")
        user = {"user": owner.pw_uid, "group": owner.pw_gid}
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    port = free_port()

    def run(tool: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(tools / tool), *arguments], capture_output=True, text=True, cwd=folder, **user
        )
        assert done.returncode == 0, f"{tool}: {done.stdout}{done.stderr}"

    data = folder / "data"
    run("initdb", "-D", str(data), "-U", "weft", "-A", "trust", "-E", "UTF8", "--no-sync")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    run("pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start")
    yield f"127.0.0.1:{port}"
    run("pg_ctl", "-D", str(data), "-m", "immediate", "stop")
    shutil.rmtree(folder)


@pytest.fixture
def catalog(server: str, request):
    """A database of its own for each test."""
    name = f"test_{abs(hash(request.node.name))}"
    admin = sa.create_engine(
        f"postgresql+psycopg://weft@{server}/postgres", isolation_level="AUTOCOMMIT"
    )
    with admin.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    admin.dispose()
    return f"postgresql://weft@{server}/{name}"


def rows(first: int, count: int) -> list[dict]:
    return [
        {"id": n, "sym": "ab"[n % 2], "ts": f"2026-01-01T00:{n // 60:02}:{n % 60:02}Z"}
        for n in range(first, first + count)
    ]


def check(db, count: int) -> None:
    assert sorted(db.sql("SELECT id FROM s").column("id").to_pylist()) == list(range(count))
    assert db.query("total").results().to_pylist() == [{"n": count}]
    history = db.query("closed").history().to_pylist()
    assert len(history) == (count - 1) // 10 * 2
    assert {row["n"] for row in history} <= {5}


def test_whole_flow(catalog: str, tmp_path: Path, spark):
    with weft.connect(tmp_path, spark=spark, catalog=catalog) as db:
        db.sql(SETUP)
        db.push("s", rows(0, 25))
        db.run()
        check(db, 25)
        db.sql("INSERT INTO names VALUES ('a', 'Anna'), ('b', 'Bert')")
        db.sql("UPDATE names SET name = 'Bea' WHERE sym = 'b'")
        db.sql("DELETE FROM names WHERE sym = 'a'")
        db.advance("s", "2026-01-01T00:00:30Z")
        assert db.query("closed").history().num_rows == 6
        with pytest.raises(weft.WeftError):
            db.sql("DROP STREAM s")
        assert not (tmp_path / "catalog.db").exists()
    with weft.connect(tmp_path, spark=spark, catalog=catalog) as db:  # reopened
        db.push("s", rows(30, 5))
        db.run()
        assert db.query("total").results().to_pylist() == [{"n": 30}]
        assert db.sql("SELECT name FROM names").column("name").to_pylist() == ["Bea"]
        db.sql("CREATE OR REPLACE CONTINUOUS QUERY total AS SELECT max(id) AS m FROM s [ROWS 3]")
        assert db.query("total").results().to_pylist() == [{"m": 34}]
        db.sql("DROP QUERY total")
        assert "total" not in db.names()
        assert [b.rows for b in db.status().batches] == [5, 25]


def test_migrations(catalog: str, tmp_path: Path):
    for _ in range(2):  # made, then found
        weft.connect(tmp_path, catalog=catalog).close()
    engine = sa.create_engine(catalog.replace("postgresql:", "postgresql+psycopg:"))
    found = sa.inspect(engine)
    assert set(schema.metadata.tables) <= set(found.get_table_names())
    for name, table in schema.metadata.tables.items():
        assert {c["name"] for c in found.get_columns(name)} == set(table.columns.keys())
    with engine.connect() as connection:
        version = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    assert version == schema.VERSION
    engine.dispose()


def test_a_look_at_the_catalog_is_consistent(catalog: str):
    url = catalog.replace("postgresql:", "postgresql+psycopg:")
    reader, writer = Catalog(url), Catalog(url)
    reader.open()
    with reader.read() as view:
        assert view.fact("x") is None
        with writer.write() as change:
            change.set_fact("x", "1")
        assert view.fact("x") is None  # still the state of the first look
    with reader.read() as view:
        assert view.fact("x") == "1"
    reader.close()
    writer.close()


def test_the_version_changes_with_every_commit_and_only_then(catalog: str):
    url = catalog.replace("postgresql://", "postgresql+psycopg://")
    reader, writer = Catalog(url), Catalog(url)
    writer.open()
    first = reader.version()
    assert first is not None
    assert reader.version() == first
    with writer.write() as change:
        change.set_fact("x", "1")
        began = reader.version()
    committed = reader.version()
    assert committed not in (first, began)
    assert reader.version() == committed
    reader.close()
    writer.close()


def test_second_writer_is_refused_also_from_another_machine(catalog: str, tmp_path: Path, spark):
    with weft.connect(tmp_path, spark=spark, catalog=catalog) as db:
        db.sql(SETUP)
        db.push("s", rows(0, 12))
        db.run()
        for folder in (tmp_path, tmp_path / "elsewhere"):  # the other folder: another machine
            with weft.connect(folder, catalog=catalog) as other:
                with pytest.raises(weft.WarehouseBusy) as caught:
                    other.push("s", rows(12, 1))
                assert caught.value.hint
        with weft.connect(tmp_path, catalog=catalog) as reader:
            check(reader, 12)
    with weft.connect(tmp_path, spark=spark, catalog=catalog) as other:  # free again
        other.push("s", rows(12, 1))
        other.run()
        check(other, 13)


def test_kill_and_recovery(catalog: str, tmp_path: Path, spark):
    with weft.connect(tmp_path, spark=spark, catalog=catalog) as db:
        db.sql(SETUP)
        db.push("s", rows(0, 12))
        db.run()
    script = (
        "import sys, json, weft\n"
        "db = weft.connect(sys.argv[1], catalog=sys.argv[2])\n"
        "db.push('s', json.loads(sys.argv[3]))\n"
        "db.run()\n"
    )
    died = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), catalog, json.dumps(rows(12, 10))],
        env={**os.environ, "WEFT_CRASH_AT": "batch.before-commit"},
        capture_output=True,
        timeout=120,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    with weft.connect(tmp_path, catalog=catalog) as reader:
        check(reader, 12)  # nothing of the batch is there
    with weft.connect(tmp_path, spark=spark, catalog=catalog) as db:
        db.run()
        check(db, 22)


def test_unreachable_server(tmp_path: Path):
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(weft.WeftError) as caught:
        weft.connect(tmp_path, catalog=f"postgresql://weft:secret@127.0.0.1:{free_port()}/nothing")
    assert caught.value.code == "WEFT_CATALOG_UNREACHABLE"
    assert "secret" not in str(caught.value)
