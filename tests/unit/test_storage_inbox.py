"""The inbox: whole pushes, in order, each once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from weft.storage import inbox as module
from weft.storage.inbox import ORDER, TICK, Inbox, stamp


def push(inbox: Inbox, tick: int, values: list[int]) -> None:
    inbox.add(stamp(pa.table({"v": pa.array(values, pa.int32())}), tick), tick)


def read(inbox: Inbox) -> list[tuple]:
    tables = [pq.read_table(path) for path in inbox.ready_files()]
    rows = pa.concat_tables(tables).to_pylist() if tables else []
    return [(row["v"], row[TICK], row[ORDER]) for row in rows]


def test_many_pushes_become_one_file(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    assert not inbox.has_rows()
    for tick in (3, 4, 9):
        push(inbox, tick, [tick, tick + 1])
    assert inbox.has_rows()
    assert inbox.newest_tick() == 9
    assert inbox.gather() == 6
    assert inbox.gather() == 0
    assert len(inbox.ready_files()) == 1
    assert read(inbox) == [(3, 3, 0), (4, 3, 1), (4, 4, 0), (5, 4, 1), (9, 9, 0), (10, 9, 1)]


def test_large_pushes_become_several_files_in_order(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "ROWS_PER_FILE", 3)
    inbox = Inbox(tmp_path)
    for tick in range(1, 6):
        push(inbox, tick, [tick, tick])
    inbox.gather()
    assert [path.stem[-1] for path in inbox.ready_files()] == ["1", "2", "3", "4", "5"]
    assert [v for v, _, _ in read(inbox)] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_sweep_removes_what_a_crash_left(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    push(inbox, 1, [1])
    leftover = next(inbox.pending.glob("*.arrow"))
    copy = leftover.read_bytes()
    inbox.gather()
    leftover.write_bytes(copy)  # gathered, then killed before the push was deleted
    (inbox.pending / "_tmp-0000000000000000002.arrow").write_bytes(b"half")
    push(inbox, 3, [3])
    inbox.sweep()
    inbox.gather()
    assert [v for v, _, _ in read(inbox)] == [1, 3]
