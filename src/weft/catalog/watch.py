"""Whether the catalog has changed since somebody looked, by whatever process, without a look at it.

SQLite counts the commits of all other connections (PRAGMA data_version), so a connection that never
writes hears of every one. On PostgreSQL two equal snapshots see the same transactions; a standby
does not list those in progress, so it says nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable

import sqlalchemy as sa

ASK = {
    "sqlite": "PRAGMA data_version",
    "postgresql": "SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_current_snapshot()::text END",
}


class Watch:
    """Asks over a connection of its own, which is kept."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._ask = None if _is_in_memory(engine.url) else ASK.get(engine.dialect.name)
        self._lock = threading.Lock()
        self._connection = None
        self._connected = 0  # times: SQLite's numbers mean nothing on another connection

    def version(self) -> Hashable | None:
        """Equal only if nothing was committed in between; None: that cannot be told."""
        if self._ask is None:
            return None
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._connect()
                found = self._connection.execute(self._ask).fetchone()[0]
                return None if found is None else (self._connected, found)
            except (sa.exc.DBAPIError, self._engine.dialect.dbapi.Error):
                self._forget()  # whoever looks next meets the problem, or a server that is back
                return None

    def _connect(self):
        self._connected += 1
        pooled = self._engine.raw_connection()
        found = pooled.driver_connection
        pooled.detach()
        if self._engine.dialect.name == "postgresql":
            found.autocommit = True  # each question sees the newest state
        return found

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def close(self) -> None:
        with self._lock:
            self._forget()


def _is_in_memory(url: sa.URL) -> bool:
    """A database that has no other connections."""
    if url.get_backend_name() != "sqlite":
        return False
    is_named = bool(url.database) and ":memory:" not in url.database
    return not is_named or url.query.get("mode") == "memory"
