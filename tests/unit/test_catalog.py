"""The catalog: migrations, versions, ids, one transaction, one writer; and how errors read."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

import weft
from weft.catalog import schema
from weft.catalog.lock import WriterLock
from weft.catalog.records import Segment
from weft.catalog.store import Catalog
from weft.errors import (
    SqlError,
    StorageError,
    UnknownName,
    WarehouseBusy,
    WeftError,
    did_you_mean,
)
from weft.logical.relations import Column, StreamDefinition, TableDefinition


@pytest.fixture
def catalog(tmp_path: Path):
    found = Catalog(f"sqlite:///{tmp_path / 'catalog.db'}")
    found.open()
    yield found
    found.close()


def stream(name: str) -> StreamDefinition:
    return StreamDefinition(name, (Column("a", "INT"),), None)


def shape(engine: sa.Engine) -> dict:
    """Tables, columns, types, keys, and unique or indexed columns of a database."""
    found = {}
    inspector = sa.inspect(engine)
    for name in inspector.get_table_names():
        if name == "alembic_version":
            continue
        columns = {
            c["name"]: (str(c["type"]), c["nullable"], c["primary_key"])
            for c in inspector.get_columns(name)
        }
        unique = sorted(tuple(u["column_names"]) for u in inspector.get_unique_constraints(name))
        indexes = sorted(tuple(i["column_names"]) for i in inspector.get_indexes(name))
        found[name] = (columns, unique, indexes)
    return found


def test_migrations_make_the_schema_in_the_code(catalog, tmp_path) -> None:
    direct = sa.create_engine(f"sqlite:///{tmp_path / 'direct.db'}")
    schema.metadata.create_all(direct)
    assert shape(catalog.engine) == shape(direct)


def test_the_newest_migration_is_the_version_in_the_code() -> None:
    folder = Path(schema.__file__).parent / "migrations" / "versions"
    assert max(p.name.split("_")[0] for p in folder.glob("0*.py")) == schema.VERSION


def test_opening_twice_changes_nothing(catalog) -> None:
    with catalog.write() as change:
        change.add_stream(stream("s"), 1)
    before = shape(catalog.engine)
    catalog.open()
    assert shape(catalog.engine) == before
    with catalog.read() as view:
        assert view.names() == {"s": "stream"}


def test_a_newer_catalog_is_refused(catalog, tmp_path) -> None:
    with catalog.engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StorageError) as refused:
        weft.connect(tmp_path)
    assert refused.value.code == "WEFT_CATALOG_NEWER"
    assert "upgrade" in refused.value.hint


def test_a_catalog_that_is_no_database_is_refused(tmp_path) -> None:
    (tmp_path / "catalog.db").write_bytes(b"this is not a database" * 100)
    with pytest.raises(StorageError) as refused:
        weft.connect(tmp_path)
    assert refused.value.hint


def test_ids_are_never_reused(catalog) -> None:
    ids = []
    for _ in range(3):
        with catalog.write() as change:
            ids.append(change.add_stream(stream("s"), 1))
            ids.append(100 + change.add_table(TableDefinition("t", (Column("a", "INT"),)), 1))
            ids.append(200 + change.reserve_query_id())
            change.remove(change.find("s"))
            change.remove(change.find("t"))
    assert len(set(ids)) == 9


def test_a_transaction_happens_whole_or_not_at_all(catalog) -> None:
    with pytest.raises(RuntimeError), catalog.write() as change:
        change.add_stream(stream("s"), 1)
        change.set_fact("a", "b")
        raise RuntimeError
    with catalog.read() as view:
        assert view.names() == {}
        assert view.fact("a") is None


def test_a_view_sees_one_state(catalog) -> None:
    with catalog.read() as view:
        assert view.names() == {}
        with catalog.write() as change:
            change.add_stream(stream("s"), 1)
        assert view.names() == {}
    with catalog.read() as view:
        assert view.names() == {"s": "stream"}


COMMIT = """
import sys
from pathlib import Path
from weft.catalog.store import Catalog
with Catalog.in_folder(Path(sys.argv[1])).write() as change:
    change.set_fact("x", "1")
"""


def test_the_version_changes_with_every_commit_and_only_then(catalog, tmp_path) -> None:
    seen = [catalog.version()]
    with catalog.read() as view:
        view.streams()
    assert catalog.version() == seen[0] is not None
    with catalog.write() as change:  # of this process
        change.set_fact("x", "0")
        assert catalog.version() == seen[0]  # not yet committed
    seen.append(catalog.version())
    subprocess.run([sys.executable, "-c", COMMIT, str(tmp_path)], check=True)  # of another
    seen.append(catalog.version())
    assert len(set(seen)) == 3
    assert catalog.version() == seen[-1]


def test_the_version_is_told_to_every_thread(catalog) -> None:
    first = catalog.version()
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(lambda _: catalog.version(), range(40))) == {first}


def test_no_version_without_other_connections() -> None:
    for url in ("sqlite://", "sqlite:///:memory:"):
        assert Catalog(url).version() is None


def test_a_folder_whose_name_looks_like_a_url(tmp_path) -> None:
    folder = tmp_path / "100% %20 ?a=b#c"
    folder.mkdir()
    found = Catalog.in_folder(folder)
    found.open()
    found.close()
    assert (folder / "catalog.db").exists()


def test_names_ignore_case_and_segments_are_dropped_with_their_owner(catalog) -> None:
    with catalog.write() as change:
        change.add_stream(stream("Trades"), 1)
        owner = change.find("TRADES").owner
        change.add_segments([Segment(owner, "rows", "streams/1/a.parquet", 1, 10, 1, 0, 5)])
    with catalog.write() as change:
        assert [s.path for s in change.segments(owner)] == ["streams/1/a.parquet"]
        change.remove(change.find("trades"))
    with catalog.read() as view:
        assert view.segments(owner) == []
        assert view.every_path() == {"streams/1/a.parquet"}  # until it is swept


# the writer's lock

HOLD = """
import sys, weft
db = weft.connect(sys.argv[1])
db.sql("CREATE STREAM s (a INT)")
print("held", flush=True)
sys.stdin.read()
"""


def test_one_process_writes_and_the_others_read(tmp_path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout.readline() == "held\n"
        with weft.connect(tmp_path) as db:
            assert db.names() == {"s": "stream"}
            with pytest.raises(WarehouseBusy) as busy:
                db.push("s", [{"a": 1}])
            assert str(holder.pid) in busy.value.problem
            with pytest.raises(WarehouseBusy):
                db.sql("CREATE STREAM r (a INT)")
            holder.kill()  # a crash lets go of it
            holder.wait()
            assert db.push("s", [{"a": 1}]) == 1
    finally:
        holder.kill()
        holder.wait()


def test_the_lock_is_released_with_the_database(tmp_path, catalog) -> None:
    first, second = WriterLock(tmp_path, catalog.engine), WriterLock(tmp_path, catalog.engine)
    first.acquire()
    first.acquire()
    assert second.is_held_elsewhere()
    with pytest.raises(WarehouseBusy):
        second.acquire()
    first.release()
    assert not second.is_held_elsewhere()
    second.acquire()
    second.release()


# errors


def test_an_error_reads_as_in_the_contract() -> None:
    error = UnknownName(
        'column "prise" does not exist in stream "trades"',
        detail="its columns are sym, price",
        hint='did you mean "price"?',
        code="WEFT_UNKNOWN_COLUMN",
        line=1,
        column=12,
    )
    assert str(error) == (
        'column "prise" does not exist in stream "trades"\n'
        "  detail: its columns are sym, price\n"
        '  hint:   did you mean "price"?  [WEFT_UNKNOWN_COLUMN, line 1, column 12]'
    )
    assert error.as_dict()["column"] == 12
    assert isinstance(error, SqlError)
    assert str(WeftError("it broke")) == "it broke  [WEFT_ERROR]"


def test_did_you_mean() -> None:
    assert did_you_mean("prise", ["Price", "qty"]) == 'did you mean "Price"?'
    assert did_you_mean("zebra", ["price"]) is None
    assert did_you_mean("x", []) is None


def test_every_error_class_has_its_own_code_and_is_public() -> None:
    classes, codes = [WeftError], []
    while classes:
        found = classes.pop()
        codes.append(found.default_code)
        assert getattr(weft, found.__name__) is found
        classes += found.__subclasses__()
    assert len(codes) == len(set(codes))
