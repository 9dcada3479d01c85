"""Pushes are never lost and never read twice, whoever pushes and gathers at the same time."""

from __future__ import annotations

import os
import threading
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import weft
from weft.storage import inbox as module
from weft.storage.inbox import Inbox

STREAM = "CREATE STREAM s (id INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS)"


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ready_ids(inbox: Inbox) -> list[int]:
    return sorted(n for p in inbox.ready_files() for n in pq.read_table(p)["id"].to_pylist())


def test_two_gatherers_store_each_push_once(tmp_path: Path, monkeypatch):
    inbox = Inbox(tmp_path)
    inbox.add(rows(1), 1)
    inside, write = threading.Event(), module.write_durably

    def slowly(path: Path, writer) -> None:
        if path.suffix == ".parquet" and not inside.is_set():
            inside.set()
            time.sleep(0.3)
        write(path, writer)

    monkeypatch.setattr(module, "write_durably", slowly)
    failures: list[BaseException] = []

    def gather() -> None:
        try:
            Inbox(tmp_path).gather()
        except BaseException as error:
            failures.append(error)

    first = threading.Thread(target=gather)
    first.start()
    assert inside.wait(5)
    inbox.add(rows(2), 2)
    gather()
    first.join()
    assert not failures
    assert ready_ids(inbox) == [1, 2]


def test_pushes_are_stored_in_the_order_of_their_ticks(tmp_path: Path, monkeypatch):
    """Or else a later push that is consumed first would make an earlier one look consumed."""
    db = weft.connect(tmp_path)
    db.sql(STREAM)
    stored: list[int] = []
    add = Inbox.add

    def slow_first(self, table, tick: int) -> None:
        if not stored and table["id"][0].as_py() == 1:
            time.sleep(0.3)
        add(self, table, tick)
        stored.append(tick)

    monkeypatch.setattr(Inbox, "add", slow_first)
    first = threading.Thread(target=db.push, args=("s", [{"id": 1, "ts": "2026-01-01T00:00:00Z"}]))
    first.start()
    time.sleep(0.1)
    db.push("s", [{"id": 2, "ts": "2026-01-01T00:00:00Z"}])
    first.join()
    db.close()
    assert len(stored) == 2
    assert stored == sorted(stored)


def test_leftovers_of_a_consumed_push_are_not_gathered_again(tmp_path: Path, db):
    """Killed between storing the gathered file and deleting the pushes, while the batch went on."""
    db.sql(STREAM)
    db.push("s", [{"id": 1, "ts": "2026-01-01T00:00:00Z"}])
    [pending] = (tmp_path / "inbox").rglob("*.arrow")
    kept = pending.read_bytes()
    db.run()
    db.close()
    pending.write_bytes(kept)
    with weft.connect(tmp_path, spark=db._engine._given_session) as again:
        again.push("s", [{"id": 2, "ts": "2026-01-01T00:00:01Z"}])
        again.run()
        assert sorted(again.sql("SELECT id FROM s").column("id").to_pylist()) == [1, 2]


def test_many_threads_push_while_the_pipeline_runs(db):
    db.sql(STREAM)
    db.sql("CREATE CONTINUOUS QUERY q AS SELECT count(*) AS n FROM s [SINCE '2026-01-01']")
    db.start(trigger="100 milliseconds")

    def push(thread: int) -> None:
        for n in range(20):
            db.push("s", [{"id": thread * 100 + n, "ts": "2026-01-01T00:00:00Z"}])

    threads = [threading.Thread(target=push, args=(t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        db.run()  # drains: gathers beside the pipeline's own gatherer
    db.run()
    db.stop()
    db.advance("s", "2026-01-01T00:00:00Z")
    assert db.query("q").results().to_pylist() == [{"n": 80}]
    found = db.sql("SELECT id FROM s").column("id").to_pylist()
    assert sorted(found) == sorted(t * 100 + n for t in range(4) for n in range(20))


def test_old_files_are_read_too(db, tmp_path: Path):
    """Spark passes over files a week older than the newest one it saw, unless told not to."""
    folder = tmp_path / "incoming"
    folder.mkdir()
    db.sql(f"{STREAM} WITH (source = 'files', path = '{folder}', format = 'json')")
    (folder / "new.json").write_text('{"id": 1, "ts": "2026-01-01T00:00:00Z"}\n')
    db.run()
    old = folder / "old.json"
    old.write_text('{"id": 2, "ts": "2026-01-01T00:00:00Z"}\n')
    long_ago = time.time() - timedelta(days=30).total_seconds()
    os.utime(old, (long_ago, long_ago))
    db.run()
    assert sorted(db.sql("SELECT id FROM s").column("id").to_pylist()) == [1, 2]
