"""Files that are garbled, cut short or gone: a clear error that names the file, and a way back."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

import weft
from weft.spark.batch import Batches

STREAM = """CREATE STREAM s (id INT, sym STRING, ts TIMESTAMP,
                             WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS)"""
QUERIES = {
    "closed": "SELECT sym, count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY sym",
    "total": "SELECT count(*) AS n, max(id) AS newest FROM s [ROWS 1000]",
}  # one that shares, with its state in partials; one that is recomputed from the rows


def push(db, *ids: int) -> None:
    rows = [{"id": n, "sym": "ab"[n % 2], "ts": f"2026-01-01T00:{n:02}:00Z"} for n in ids]
    db.push("s", rows)


def check(db, count: int) -> None:
    """Rows 0 .. count-1, one a minute, each once, in every answer."""
    assert sorted(db.sql("SELECT id FROM s").column("id").to_pylist()) == list(range(count))
    assert db.query("total").results().to_pylist() == [{"n": count, "newest": count - 1}]
    history = db.query("closed").history()
    assert [row["window_start"].minute for row in history.to_pylist()] == list(range(count - 1))
    assert set(history.column("n").to_pylist()) == {1}


@pytest.fixture
def flow(db):
    db.sql(STREAM)
    for name, select in QUERIES.items():
        db.sql(f"CREATE CONTINUOUS QUERY {name} AS {select}")
    push(db, 0, 1, 2)
    db.run()
    check(db, 3)
    return db


def segment(db, root: Path, owner: str, *parts: str) -> Path:
    with db._engine.catalog.read() as view:
        record = view.find(owner)
        home = record.owner
        if getattr(record, "class_id", None) is not None:
            home, parts = f"node:{view.routes(record.class_id)[0].node_id}", ("partials",)
        return root / view.segments(home, *parts)[0].path


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garble(path: Path) -> None:
    """Right length, right magic, right footer: the pages are wrong."""
    content = bytearray(path.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    for at in range(4, len(content) - footer):
        content[at] ^= 0x5A
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


def forget_checksum(path: Path) -> None:
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


DAMAGE = pytest.mark.parametrize("damage", [cut, garble, empty, remove])


def refused(work: Callable, path: Path) -> weft.WeftError:
    with pytest.raises(weft.WeftError) as caught:
        work()
    error = caught.value
    assert str(path) in str(error), error
    assert error.code in ("WEFT_CORRUPT_SEGMENT", "WEFT_FILE_MISSING"), error
    assert error.hint
    return error


@DAMAGE
def test_rows_segment(damage, flow, tmp_path: Path):
    path = segment(flow, tmp_path, "s", "rows")
    kept = path.read_bytes()
    forget_checksum(path)
    damage(path)
    refused(lambda: flow.sql("SELECT sym, ts, id FROM s"), path)
    push(flow, 3)
    refused(flow.run, path)
    folded = "SELECT sym, min(id) AS i FROM s [RANGE 7 SECONDS SLIDE 7 SECONDS] GROUP BY sym"
    refused(lambda: flow.sql(f"CREATE CONTINUOUS QUERY q AS {folded}"), path)
    picked = flow.sql("CREATE CONTINUOUS QUERY p AS SELECT sym FROM s [SINCE '2026-01-01']")
    refused(picked.results, path)  # it reads no row before somebody asks
    assert flow.query("total").results().to_pylist() == [{"n": 3, "newest": 2}]  # unharmed
    path.write_bytes(kept)
    flow.run()
    check(flow, 4)


@DAMAGE
@pytest.mark.parametrize("name", ["closed", "total"])
def test_answer_segment(damage, name: str, flow, tmp_path: Path):
    path = segment(flow, tmp_path, name, "changes")
    kept = path.read_bytes()
    forget_checksum(path)
    damage(path)
    query = flow.query(name)
    with weft.connect(tmp_path) as reader:  # here it may be in memory, unharmed
        refused(reader.query(name).results, path)
    refused(query.history, path)
    refused(lambda: list(query.subscribe()), path)
    refused(lambda: flow.sql(f"SELECT * FROM {name}"), path)
    push(flow, 3)
    if name == "total":  # its changes are told from its old answer; closed windows only append
        refused(flow.run, path)
    path.write_bytes(kept)
    flow.run()
    check(flow, 4)


def test_replayed_batch_is_skipped(flow, tmp_path: Path, spark):
    """Spark repeats a batch that it did not note as done, though the catalog has it."""
    [commits] = (tmp_path / "checkpoints").glob("*/commits")
    newest = max((p for p in commits.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
    flow.close()
    for path in (newest, commits / f".{newest.name}.crc"):
        path.unlink(missing_ok=True)
    with weft.connect(tmp_path, spark=spark) as again:
        push(again, 3)
        summary = again.run()
        assert (summary.batches, summary.rows) == (1, 1)
        check(again, 4)


def test_missing_checkpoint(flow, tmp_path: Path):
    push(flow, 3)
    shutil.move(tmp_path / "checkpoints", tmp_path / "elsewhere")
    with pytest.raises(weft.WeftError) as caught:
        flow.run()
    assert caught.value.code == "WEFT_CHECKPOINT_MISSING"
    assert str(tmp_path / "checkpoints") in str(caught.value)
    with pytest.raises(weft.WeftError) as caught:
        flow.start()
    assert caught.value.code == "WEFT_CHECKPOINT_MISSING"
    assert not flow.is_running
    shutil.move(tmp_path / "elsewhere", tmp_path / "checkpoints")
    flow.run()
    check(flow, 4)


def test_vanished_source_file(db, tmp_path: Path, monkeypatch):
    folder = tmp_path / "incoming"
    db.sql(f"{STREAM} WITH (source = 'files', path = '{folder}', format = 'json')")
    path = folder / "1.json"
    folder.mkdir(exist_ok=True)
    path.write_text('{"id": 1, "sym": "a", "ts": "2026-01-01T00:00:00Z"}\n')
    content, apply = path.read_text(), Batches.apply

    def vanish(*args, **kwargs):
        path.unlink(missing_ok=True)
        return apply(*args, **kwargs)

    monkeypatch.setattr(Batches, "apply", vanish)
    with pytest.raises(weft.WeftError) as caught:
        db.run()
    assert caught.value.code == "WEFT_SOURCE_FILE_MISSING"
    assert str(path) in str(caught.value)
    monkeypatch.undo()
    path.write_text(content)
    db.run()
    assert db.sql("SELECT id FROM s").column("id").to_pylist() == [1]


def test_vanished_push_file(flow, tmp_path: Path):
    """Pushed rows that somebody deletes from the inbox are an error while Spark expects them."""
    push(flow, 3)
    apply = Batches.apply
    taken = {}

    def vanish(*args, **kwargs):
        for path in (tmp_path / "inbox").rglob("*.parquet"):
            taken[path] = path.read_bytes()
            path.unlink()
        return apply(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Batches, "apply", vanish)
        with pytest.raises(weft.WeftError) as caught:
            flow.run()
    [(path, content)] = taken.items()
    assert caught.value.code == "WEFT_FILE_MISSING"
    assert str(path) in str(caught.value)
    path.write_bytes(content)
    flow.run()
    check(flow, 4)


def test_locked_catalog(flow, tmp_path: Path):
    engine = flow._engine.catalog.engine
    sa.event.listen(engine, "connect", lambda c, _: c.execute("PRAGMA busy_timeout = 200"))
    engine.dispose()
    push(flow, 3)
    blocker = sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    for work in (
        flow.run,
        lambda: flow.sql("CREATE TABLE t (a INT)"),
        lambda: flow.sql("DROP QUERY total"),
        lambda: flow.sql("CREATE CONTINUOUS QUERY q AS SELECT sym FROM s [RANGE 1 HOUR]"),
    ):
        with pytest.raises(weft.WeftError) as caught:
            work()
        assert caught.value.code == "WEFT_CATALOG_WRITE", caught.value
        assert "locked" in str(caught.value)
    assert flow.query("total").results().to_pylist() == [{"n": 3, "newest": 2}]  # reading goes on
    blocker.execute("ROLLBACK")
    blocker.close()
    flow.run()
    check(flow, 4)


def test_catalog_that_is_no_database(tmp_path: Path):
    (tmp_path / "catalog.db").write_bytes(b"these are not the tables you are looking for " * 200)
    with pytest.raises(weft.WeftError) as caught:
        weft.connect(tmp_path)
    assert caught.value.code == "WEFT_CATALOG_UNREACHABLE"
    assert "catalog.db" in str(caught.value)


def test_catalog_of_a_newer_version(tmp_path: Path):
    weft.connect(tmp_path).close()
    with sqlite3.connect(tmp_path / "catalog.db") as catalog:
        catalog.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(weft.WeftError) as caught:
        weft.connect(tmp_path)
    assert caught.value.code == "WEFT_CATALOG_NEWER"
