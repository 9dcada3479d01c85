"""A stream from a real Kafka broker; and without the connector, an error that says how to get it.

The jars are large, so they are not fetched by themselves: scripts/get_kafka.sh does it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import weft

JARS = Path(os.environ.get("WEFT_KAFKA_JARS") or Path.home() / ".cache" / "weft" / "kafka")
STREAM = """CREATE STREAM k (id INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS)
  WITH (source = 'kafka', "kafka.bootstrap.servers" = '{server}', subscribe = 'trades',
        startingOffsets = 'earliest')"""
BROKER = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""
# makes the stream if need be, sends rows (JSON in argv) to the topic, runs, says what is there
CLIENT = """
import json, sys, weft
folder, server, statement, rows = sys.argv[1:]
with weft.connect(folder) as db:
    if "k" not in db.names():
        db.sql(statement)
        db.sql("CREATE CONTINUOUS QUERY total AS SELECT count(*) AS n FROM k [SINCE '2026-01-01']")
    values = [(text,) for text in json.loads(rows)]
    if values:
        frame = db.spark.createDataFrame(values, "value string").write.format("kafka")
        frame.option("kafka.bootstrap.servers", server).option("topic", "trades").save()
    db.run()
    print(json.dumps({
        "ids": sorted(db.sql("SELECT id FROM k").column("id").to_pylist()),
        "rejected": db.sql("SELECT raw FROM k.rejected").column("raw").to_pylist(),
        "total": db.query("total").results().to_pylist(),
    }))
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """host:port of a broker of our own."""
    if not list(JARS.glob("broker/kafka_*.jar")) or not list(JARS.glob("connector/*kafka*.jar")):
        pytest.skip(f"no Kafka in {JARS}: run scripts/get_kafka.sh, or set WEFT_KAFKA_JARS")
    folder = tmp_path_factory.mktemp("kafka")
    port, controller = free_port(), free_port()
    properties = folder / "broker.properties"
    properties.write_text(BROKER.format(port=port, controller=controller, folder=folder))
    java = [shutil.which("java") or "java", "-Xmx512m", "-cp", f"{JARS}/broker/*"]
    subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c",
         str(properties)],
        check=True, capture_output=True,
    )  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*java, "kafka.Kafka", str(properties)], stdout=log, stderr=log)
    try:
        wait_for(port, process)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def wait_for(port: int, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError("the broker did not start")


def client(folder: Path, server: str, rows: list[str], **env: str) -> subprocess.CompletedProcess:
    jars = ",".join(str(path) for path in sorted(JARS.glob("connector/*.jar")))
    return subprocess.run(
        [sys.executable, "-c", CLIENT, str(folder), server, STREAM.format(server=server),
         json.dumps(rows)],
        env={**os.environ, "WEFT_SPARK_JARS": jars, **env},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def rows(first: int, count: int) -> list[str]:
    return [
        json.dumps({"id": n, "ts": f"2026-01-01T00:00:{n:02}Z"})
        for n in range(first, first + count)
    ]


def test_rows_come_once_also_after_a_kill(broker: str, tmp_path: Path):
    died = client(tmp_path, broker, [*rows(0, 10), "no json"], WEFT_CRASH_AT="batch.before-commit")
    assert died.returncode == -signal.SIGKILL, died.stderr
    again = client(tmp_path, broker, rows(10, 5))
    assert again.returncode == 0, again.stderr
    found = json.loads(again.stdout.splitlines()[-1])
    assert found == {"ids": list(range(15)), "rejected": ["no json"], "total": [{"n": 15}]}


def test_without_the_connector(tmp_path: Path, spark):
    if "kafka" in os.environ.get("WEFT_SPARK_JARS", ""):
        pytest.skip("this session has the connector: WEFT_SPARK_JARS")
    with weft.connect(tmp_path, spark=spark) as db:
        db.sql(STREAM.format(server="127.0.0.1:9092"))
        for work in (db.run, lambda: db.start()):
            with pytest.raises(weft.WeftError) as caught:
                work()
            error = caught.value
            assert type(error).__name__ == "SourceError"
            assert error.code == "WEFT_NO_CONNECTOR"
            assert "spark-sql-kafka-0-10_2.13" in error.hint
            assert "WEFT_SPARK_JARS" in error.hint
        assert not db.is_running
        assert db.sql("SELECT * FROM k").num_rows == 0
