"""The catalog: a relational database that says what exists.

A file that no row of `segments` names does not exist, whatever the folder holds. So a batch writes
its files first and commits everything (segments, clock, progress, results) in one transaction:
a crash before it leaves only orphans, which the next start sweeps; a crash after it leaves nothing
to do. Source: the design's section 5; PSoup §4.1 (prefix consistency).
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator
from pathlib import Path

import sqlalchemy as sa

from weft.catalog import schema as s
from weft.catalog.change import Change
from weft.catalog.view import View
from weft.catalog.watch import Watch
from weft.errors import StorageError


class Catalog:
    """Opens the database, migrates it, and hands out transactions."""

    def __init__(self, url: str | sa.URL) -> None:
        self.url = url
        self.engine = _engine(url)
        self._watch = Watch(self.engine)

    @classmethod
    def in_folder(cls, root: Path) -> Catalog:
        """The embedded one; a URL made of text would decode the signs of a path."""
        return cls(sa.URL.create("sqlite", database=str(root / "catalog.db")))

    def exists(self) -> bool:
        with self.engine.connect() as connection:
            return sa.inspect(connection).has_table("alembic_version")

    def open(self) -> None:
        """Bring the schema to this version; refuse a catalog that a newer Weft wrote."""
        try:
            found = self._version()
        except sa.exc.DBAPIError as error:
            raise StorageError(
                f"the catalog {self.engine.url.render_as_string()} cannot be opened",
                detail=str(error.orig),
                hint="check that the folder is writable, or that the server runs and lets you in",
                code="WEFT_CATALOG_UNREACHABLE",
            ) from error
        if found == s.VERSION:
            return
        if found is not None and found > s.VERSION:
            raise StorageError(
                f"the catalog has schema {found}, this Weft knows up to {s.VERSION}",
                hint="upgrade Weft: pip install --upgrade weft",
                code="WEFT_CATALOG_NEWER",
            )
        self._migrate()

    def _version(self) -> str | None:
        with self.engine.connect() as connection:
            if not sa.inspect(connection).has_table("alembic_version"):
                return None
            return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()

    def _migrate(self) -> None:
        from alembic import command
        from alembic.config import Config

        config = Config()
        scripts = str(Path(__file__).parent / "migrations").replace("%", "%%")
        config.set_main_option("script_location", scripts)
        config.set_main_option("path_separator", "os")
        with self._writing() as connection:  # one process at a time; the others find it done
            config.attributes["connection"] = connection
            command.upgrade(config, "head")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction that is a writer's from its first statement on."""
        with self.engine.connect() as connection:
            if self.engine.dialect.name == "sqlite":
                connection = connection.execution_options(begin="BEGIN IMMEDIATE")
            with connection.begin():
                if self.engine.dialect.name == "postgresql":
                    connection.execute(
                        sa.text("SELECT pg_advisory_xact_lock(hashtext('weft-write'))")
                    )
                yield connection

    def version(self) -> Hashable | None:
        """Other after every commit, by whatever process; None where that cannot be told."""
        return self._watch.version()

    @contextlib.contextmanager
    def read(self) -> Iterator[View]:
        """A consistent view: every look inside sees the same state."""
        try:
            with self.engine.connect() as connection:
                if self.engine.dialect.name == "postgresql":  # its default is a new look each time
                    connection = connection.execution_options(isolation_level="REPEATABLE READ")
                with connection.begin():
                    yield View(connection)
        except sa.exc.OperationalError as error:
            raise StorageError(
                "the catalog could not be read",
                detail=str(error.orig),
                hint="check that its database is there and lets you in, then try again",
                code="WEFT_CATALOG_READ",
            ) from error

    @contextlib.contextmanager
    def write(self) -> Iterator[Change]:
        """One transaction. Everything inside happens, or nothing."""
        try:
            with self._writing() as connection:
                yield Change(connection)
        except sa.exc.OperationalError as error:
            raise StorageError(
                "the catalog could not commit",
                detail=str(error.orig),
                hint="free some disk space or check the database; nothing was changed",
                code="WEFT_CATALOG_WRITE",
            ) from error

    def close(self) -> None:
        self._watch.close()
        self.engine.dispose()


def _engine(url: str | sa.URL) -> sa.Engine:
    engine = sa.create_engine(url)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _on_sqlite_connect)
        sa.event.listen(engine, "begin", _on_sqlite_begin)
    return engine


def _on_sqlite_connect(connection, _record) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves, so that reads are snapshots too
    for pragma in ("busy_timeout=10000", "journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")


def _on_sqlite_begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))
