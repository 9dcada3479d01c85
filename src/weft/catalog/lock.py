"""One writer per warehouse: a lock that a crash releases by itself.

An embedded warehouse is locked with flock on a file in its folder; a server catalog also takes an
advisory lock, since its writers may run on other machines. Both vanish with the process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

import sqlalchemy as sa

from weft.errors import WarehouseBusy


class WriterLock:
    def __init__(self, folder: Path, engine: sa.Engine) -> None:
        self._path = folder / "writer.lock"
        self._engine = engine
        self._file: int | None = None
        self._connection: sa.Connection | None = None

    @property
    def is_held(self) -> bool:
        return self._file is not None

    def acquire(self) -> None:
        if self.is_held:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(handle, 32).decode(errors="replace").strip()
            os.close(handle)
            raise self._busy(holder) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        self._file = handle
        try:
            self._lock_server()
        except WarehouseBusy:
            self.release()
            raise

    def _lock_server(self) -> None:
        if self._engine.dialect.name != "postgresql":
            return
        self._connection = self._engine.connect()
        query = sa.text("SELECT pg_try_advisory_lock(hashtext('weft'), hashtext(current_schema()))")
        if not self._connection.execute(query).scalar():
            raise self._busy("")
        self._connection.commit()

    def release(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sa.exc.SQLAlchemyError):
                self._connection.close()
            self._connection = None
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def is_held_elsewhere(self) -> bool:
        """Whether another process writes now; used by readers to say "running" or not."""
        if self.is_held or not self._path.exists():
            return False
        handle = os.open(self._path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(handle)
        return False

    def _busy(self, holder: str) -> WarehouseBusy:
        who = f"process {holder}" if holder.isdigit() else "another process"
        return WarehouseBusy(
            f"{who} is writing to this warehouse",
            detail="one process at a time may register, push or run; any number may read",
            hint="stop the other process, or only read here: SELECT, SHOW, results()",
        )
