"""Sources: push, files in three formats, rate, socket, arrival time, any format, Kafka."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weft
from weft.errors import InputError, SourceError, SqlError, UnknownName

COLUMNS = "k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts"


def at(seconds: int) -> str:
    return f"2026-01-01T00:{seconds // 60:02d}:{seconds % 60:02d}Z"


def row(k: str, v: int, seconds: int) -> dict:
    return {"k": k, "v": v, "ts": at(seconds)}


def table(rows: list[dict]) -> pa.Table:
    instants = [datetime.fromisoformat(r["ts"]) for r in rows]
    schema = pa.schema([("k", pa.string()), ("v", pa.int32()), ("ts", pa.timestamp("us", "UTC"))])
    return pa.Table.from_pydict(
        {"k": [r["k"] for r in rows], "v": [r["v"] for r in rows], "ts": instants}, schema
    )


def keys(query) -> list:
    return sorted(query.results().column("k").to_pylist())


# push


def test_pushed_rows_are_durable_and_wait_for_the_next_process(tmp_path, spark) -> None:
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(f"CREATE STREAM s ({COLUMNS})")
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT k FROM s")
        for number in range(20):
            assert db.push("s", [row(f"k{number:02d}", number, number)]) == 1
    with weft.connect(tmp_path, spark=spark) as db:
        assert len(db.query("q").results()) == 0
        done = db.run()
        assert (done.batches, done.rows) == (1, 20)
        assert keys(db.query("q")) == [f"k{n:02d}" for n in range(20)]
        assert db.run().batches == 0
    with weft.connect(tmp_path, spark=spark) as db:
        assert len(db.query("q").results()) == 20


def test_push_says_what_is_wrong(db) -> None:
    db.sql(f"CREATE STREAM s ({COLUMNS})")
    with pytest.raises(UnknownName) as wrong:
        db.push("s", [{"k": "a", "vv": 1, "ts": at(1)}])
    assert wrong.value.hint == 'did you mean "v"?'
    with pytest.raises(UnknownName):
        db.push("t", [{"k": "a"}])
    with pytest.raises(InputError):
        db.push("s", 7)
    assert db.push("s", []) == 0


def test_late_and_rejected_rows_are_kept(db) -> None:
    db.sql(f"CREATE STREAM s ({COLUMNS})")
    query = db.sql("CREATE CONTINUOUS QUERY q AS SELECT k FROM s")
    db.push("s", [row("a", 1, 60), {"k": "b", "v": "many", "ts": at(61)}, {"k": "c", "v": 1}])
    assert db.run().rejected == 2
    db.push("s", [row("d", 1, 59), row("e", 1, 60)])
    assert db.run().late == 1
    assert keys(query) == ["a", "e"]
    assert db.sql("SELECT k FROM s.late").to_pylist() == [{"k": "d"}]
    rejected = db.sql("SELECT raw, reason FROM s.rejected").to_pylist()
    assert {json.loads(r["raw"])["k"] for r in rejected} == {"b", "c"}
    assert any("many" in r["reason"] for r in rejected)


def test_a_stream_without_event_time_goes_by_arrival(db) -> None:
    db.sql("CREATE STREAM s (k STRING)")
    query = db.sql("CREATE CONTINUOUS QUERY q AS SELECT k, arrival_time FROM s")
    star = db.sql("CREATE CONTINUOUS QUERY star AS SELECT * FROM s")
    before = datetime.now(UTC)
    db.push("s", [{"k": "a"}, {"k": "b"}])
    db.run()
    db.push("s", [{"k": "c"}])
    db.run()
    times = query.results().column("arrival_time").to_pylist()
    assert before <= min(times) <= max(times) <= datetime.now(UTC)
    assert star.results().column_names == ["k"]
    assert keys(star) == ["a", "b", "c"]


def test_a_heartbeat_closes_windows(db) -> None:
    db.sql(f"CREATE STREAM s ({COLUMNS})")
    query = db.sql("CREATE CONTINUOUS QUERY q AS SELECT count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE]")  # fmt: skip
    db.push("s", [row("a", 1, 30)])
    db.advance("s", at(59))  # the pushed row counts first
    assert len(query.results()) == 0
    db.advance("s", at(60))
    assert query.results().column("n").to_pylist() == [1]
    db.advance("s", at(1))  # never backwards
    db.push("s", [row("a", 1, 59)])
    assert db.run().late == 1
    with pytest.raises(InputError):
        db.advance("s", "noon")
    with pytest.raises(UnknownName):
        db.advance("q", at(1))


# files


def write(folder: Path, name: str, rows: list[dict], kind: str) -> Path:
    path = folder / name
    temporary = folder / f"_{name}"
    if kind == "parquet":
        pq.write_table(table(rows), temporary)
    elif kind == "json":
        temporary.write_text("".join(json.dumps(r) + "\n" for r in rows))
    else:
        temporary.write_text("".join(f"{r['k']},{r['v']},{r['ts']}\n" for r in rows))
    temporary.rename(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_new_files_are_picked_up(db, tmp_path, kind) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder, "1", [row("a", 1, 1)], kind)
    db.sql(
        f"CREATE STREAM s ({COLUMNS}) WITH (source = 'files', path = '{folder}', format = '{kind}')"
    )
    query = db.sql("CREATE CONTINUOUS QUERY q AS SELECT k, v, ts FROM s")
    assert db.run().rows == 1
    old = write(folder, "2", [row("b", 2, 2), row("c", 3, 3)], kind)
    os.utime(old, (1, 1))  # a file's age says nothing about whether it is new here
    assert db.run().rows == 2
    assert keys(query) == ["a", "b", "c"]
    assert db.run().rows == 0
    with pytest.raises(SqlError):
        db.push("s", [row("d", 1, 1)])


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_bad_rows_of_files_are_rejected(db, tmp_path, kind) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    good = f"a,1,{at(1)}" if kind == "csv" else json.dumps(row("a", 1, 1))
    bad = f"b,many,{at(2)}" if kind == "csv" else '{"k": "b", '
    (folder / "1").write_text(f"{good}\n{bad}\n")
    db.sql(
        f"CREATE STREAM s ({COLUMNS}) WITH (source = 'files', path = '{folder}', format = '{kind}')"
    )
    done = db.run()
    assert (done.rows, done.rejected) == (1, 1)
    assert db.sql("SELECT raw FROM s.rejected").to_pylist() == [{"raw": bad}]


def test_an_unreadable_file_is_set_aside_and_taken_back(db, tmp_path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder, "good.parquet", [row("a", 1, 1)], "parquet")
    (folder / "bad.parquet").write_bytes(b"PAR1 this is no Parquet file")
    db.sql(
        f"CREATE STREAM s ({COLUMNS}) WITH (source = 'files', path = '{folder}', format = 'parquet')"
    )
    query = db.sql("CREATE CONTINUOUS QUERY q AS SELECT k FROM s")
    done = db.run()
    assert (done.rows, done.rejected) == (1, 1)
    reported = db.sql("SELECT raw, reason FROM s.rejected").to_pylist()[0]
    assert reported["raw"].endswith("bad.parquet")
    assert "cannot be read" in reported["reason"]
    assert db.run().rows == 0
    write(folder, "bad.parquet", [row("b", 2, 2)], "parquet")
    assert db.run().rows == 1
    assert keys(query) == ["a", "b"]
    assert db.run().rows == 0


def test_a_vanished_file_is_named_and_the_run_can_be_repeated(db, tmp_path, monkeypatch) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    path = write(folder, "1.parquet", [row("a", 1, 1)], "parquet")
    db.sql(
        f"CREATE STREAM s ({COLUMNS}) WITH (source = 'files', path = '{folder}', format = 'parquet')"
    )
    query = db.sql("CREATE CONTINUOUS QUERY q AS SELECT k FROM s")
    from weft.spark import folding

    real, hidden = folding.ingest, tmp_path / "hidden"

    def vanish(*arguments):
        path.rename(hidden)
        return real(*arguments)

    monkeypatch.setattr(folding, "ingest", vanish)
    with pytest.raises(SourceError) as missing:
        db.run()
    assert missing.value.code == "WEFT_SOURCE_FILE_MISSING"
    assert str(path) in str(missing.value)
    monkeypatch.undo()
    hidden.rename(path)
    assert db.run().rows == 1
    assert keys(query) == ["a"]


# sources of Spark


def test_rate(db) -> None:
    db.sql("CREATE STREAM s (`timestamp` TIMESTAMP, value BIGINT, WATERMARK FOR `timestamp` AS `timestamp`) WITH (source = 'rate', rowsPerSecond = '50')")  # fmt: skip
    query = db.sql("CREATE CONTINUOUS QUERY q AS SELECT count(*) AS n FROM s")
    db.start(trigger="200 milliseconds")
    deadline = time.monotonic() + 60
    while query.results().column("n").to_pylist() in ([], [0]) and time.monotonic() < deadline:
        time.sleep(0.2)
    db.run()  # does not wait for a source that never ends
    db.stop()
    assert query.results().column("n").to_pylist()[0] > 0


def test_any_format_by_its_name(db) -> None:
    db.sql("CREATE STREAM s (`timestamp` TIMESTAMP, value INT, WATERMARK FOR `timestamp` AS `timestamp`) WITH (source = 'rate-micro-batch', rowsPerBatch = '10', numPartitions = '1', startTimestamp = '1767225600000')")  # fmt: skip
    query = db.sql("CREATE CONTINUOUS QUERY q AS SELECT max(value) AS top FROM s")
    db.start(trigger="200 milliseconds")
    deadline = time.monotonic() + 60
    while query.results().column("top").to_pylist() in ([], [None]) and time.monotonic() < deadline:
        time.sleep(0.2)
    db.stop()
    assert query.results().column("top").to_pylist()[0] is not None


def test_an_unknown_column_or_format_of_a_source(db) -> None:
    with pytest.raises(SqlError) as wrong:
        db.sql("CREATE STREAM s (time TIMESTAMP) WITH (source = 'rate')")
    assert wrong.value.code == "WEFT_UNKNOWN_COLUMN"
    db.sql("CREATE STREAM s (a INT) WITH (source = 'nosuchformat')")
    with pytest.raises(SourceError) as missing:
        db.run()
    assert missing.value.code == "WEFT_NO_CONNECTOR"


class Server:
    """A line server on a local port: keeps what it is told, and sends it to whoever connects."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._client: socket.socket | None = None
        self._connected = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            self._client = client
            self._connected.set()

    def send(self, line: str) -> None:
        assert self._connected.wait(60), "nobody connected"
        self._client.sendall(line.encode() + b"\n")

    def close(self) -> None:
        self._socket.close()
        if self._client:
            self._client.close()


def test_socket(db) -> None:
    server = Server()
    try:
        db.sql(f"CREATE STREAM s ({COLUMNS}) WITH (source = 'socket', host = '127.0.0.1', port = '{server.port}')")  # fmt: skip
        query = db.sql("CREATE CONTINUOUS QUERY q AS SELECT k FROM s")
        db.run()  # connects
        counted = []
        for number, text in enumerate(
            [json.dumps(row("a", 1, 1)), "nonsense", json.dumps(row("b", 2, 2))]
        ):
            server.send(text)
            deadline = time.monotonic() + 30
            while number >= len(counted) and time.monotonic() < deadline:
                time.sleep(0.1)
                done = db.run()
                counted += ["row"] * done.rows + ["rejected"] * done.rejected
        assert keys(query) == ["a", "b"]
        assert counted == ["row", "rejected", "row"]
    finally:
        server.close()
