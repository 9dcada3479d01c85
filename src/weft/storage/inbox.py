"""The inbox of a push stream: rows are durable when push returns, and Spark reads them in bulk.

    pending/<tick>.arrow          one file per push, written and synced before push returns
    ready/<first>-<last>.parquet  pushes gathered for Spark's file source, which watches this folder

Gathering makes many small pushes one file to read. Crash safety: a push is there whole or not at
all (rename); gathering writes the ready file before it deletes the pending ones, and a pending
file whose tick a ready file covers is a leftover that `sweep` removes.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from weft.storage.crash import crash_point
from weft.storage.files import sync_folder, write_durably

if TYPE_CHECKING:
    import pyarrow as pa

TICK, ORDER, ARRIVED = "_weft_tick", "_weft_ord", "_weft_arrival"
ROWS_PER_FILE = 1_000_000
_locks: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)  # by folder


class Inbox:
    def __init__(self, folder: Path) -> None:
        self.pending = folder / "pending"
        self.ready = folder / "ready"
        self.ready.mkdir(parents=True, exist_ok=True)
        self.pending.mkdir(parents=True, exist_ok=True)
        # Held from taking a tick to storing its rows: an earlier push never shows up after a later
        # one, so "consumed up to tick n" means all of them. Gathering is for one at a time.
        self.pushing, self._gathering = _locks[self.pending], _locks[self.ready]

    def add(self, rows: pa.Table, tick: int) -> None:
        """Store one push; durable on return."""
        import pyarrow as pa

        def write(path: Path) -> None:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
                writer.write_table(rows)

        crash_point("push.before-write")
        write_durably(self.pending / f"{tick:019d}.arrow", write)
        crash_point("push.after-write")

    def gather(self) -> int:
        """Turn pending pushes into ready files; returns how many rows were gathered."""
        with self._gathering:
            return self._gather()

    def _gather(self) -> int:
        waiting = self._pending_files()
        total = 0
        while waiting:
            group, rows = self._next_group(waiting)
            waiting = waiting[len(group) :]
            total += len(rows)
            self._write_ready(group, rows)
        return total

    def _next_group(self, waiting: list[Path]) -> tuple[list[Path], pa.Table]:
        import pyarrow as pa

        group, tables, count = [], [], 0
        for path in waiting:
            table = _read(path)
            if group and count + len(table) > ROWS_PER_FILE:
                break
            group.append(path)
            tables.append(table)
            count += len(table)
        return group, pa.concat_tables(tables)

    def _write_ready(self, group: list[Path], rows: pa.Table) -> None:
        import pyarrow.parquet as pq

        target = self.ready / f"{group[0].stem}-{group[-1].stem}.parquet"
        crash_point("gather.before-write")
        write_durably(target, lambda path: pq.write_table(rows, path, compression="zstd"))
        crash_point("gather.after-write")
        for path in group:
            path.unlink()
        sync_folder(self.pending)

    def sweep(self, consumed: int = -1) -> None:
        """Remove what a crash left: half-written files, pushes that were gathered or consumed."""
        for folder in (self.pending, self.ready):
            for path in folder.glob("_tmp-*"):
                path.unlink()
        ready = [int(p.stem.split("-")[1]) for p in self.ready_files()]
        gathered = max([consumed, *ready])
        for path in self._pending_files():
            if int(path.stem) <= gathered:
                path.unlink()

    def newest_tick(self) -> int:
        ticks = [int(p.stem) for p in self._pending_files()]
        ticks += [int(p.stem.split("-")[1]) for p in self.ready_files()]
        return max(ticks, default=0)

    def ready_files(self) -> list[Path]:
        return sorted(p for p in self.ready.glob("*.parquet") if not p.name.startswith("_"))

    def has_rows(self) -> bool:
        return bool(self._pending_files() or self.ready_files())

    def _pending_files(self) -> list[Path]:
        return sorted(p for p in self.pending.glob("*.arrow") if not p.name.startswith("_"))


def stamp(rows: pa.Table, tick: int) -> pa.Table:
    """Add when and in which order the rows arrived."""
    import pyarrow as pa

    count = len(rows)
    arrived = pa.scalar(datetime.now(UTC), pa.timestamp("us", tz="UTC"))
    rows = rows.append_column(ARRIVED, pa.repeat(arrived, count))
    rows = rows.append_column(TICK, pa.repeat(pa.scalar(tick, pa.int64()), count))
    return rows.append_column(ORDER, pa.array(range(count), pa.int64()))


def _read(path: Path) -> pa.Table:
    import pyarrow as pa

    with pa.OSFile(str(path), "rb") as source:
        return pa.ipc.open_file(source).read_all()
