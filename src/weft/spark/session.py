"""The embedded Spark session, made in this one place and only when it is needed."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from weft.errors import EnvironmentProblem
from weft.settings import Settings, load_settings

# Each setting says why. An adopted session keeps its own, apart from those in `prepare`.
EMBEDDED = {
    "spark.ui.enabled": "false",  # weft top shows what matters; the UI costs a second to start
    # methods that the JVM would only interpret are left to Spark's own evaluation, which is faster
    "spark.sql.codegen.hugeMethodLimit": "8000",
    "spark.sql.shuffle.partitions": "2",  # small batches: more partitions only add task overhead
    "spark.sql.adaptive.enabled": "false",  # extra stages per query, nothing to adapt in small batches
    "spark.sql.maxConcurrentOutputFileWriters": "64",  # no sort by folder before a write into folders
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.codegen.cache.maxEntries": "2000",
    "spark.sql.codegen.useIdInClassName": "false",  # the same code in another stage is compiled once
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.cleaner.periodicGC.interval": "10min",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.sql.streaming.ui.enabled": "false",
    "spark.scheduler.mode": "FAIR",
}
REQUIRED = {
    "spark.sql.session.timeZone": "UTC",  # windows start at multiples of the slide since the epoch
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # footers then hold min and max
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",  # no job to list files
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.ansi.enabled": "true",
}


_sharing = threading.Lock()
_users: dict[str, int] = {}  # how many warehouses use the session that Weft started


def start_session(warehouse: Path, settings: Settings | None = None):
    """Start Spark in this process: local[*] unless WEFT_MASTER says otherwise."""
    check_java()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    knobs = settings or load_settings()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers have our packages
    builder = SparkSession.builder.master(knobs.master).appName("weft")
    options = {**EMBEDDED, **REQUIRED, "spark.sql.warehouse.dir": str(warehouse / "spark")}
    options["spark.driver.memory"] = knobs.driver_memory
    options["spark.driver.extraJavaOptions"] = f"-XX:+UseParallelGC {knobs.java_options}".strip()
    if knobs.spark_jars:
        options["spark.jars"] = knobs.spark_jars
    for key, value in options.items():
        builder = builder.config(key, value)
    with _sharing:
        is_new = (
            SparkSession.getActiveSession() is None and SparkContext._active_spark_context is None
        )
        with stderr_to(warehouse / "spark.log"):
            session = builder.getOrCreate()
        if is_new:
            session.sparkContext.setLogLevel("ERROR")
            _users["ours"] = 0
        if "ours" in _users:
            _users["ours"] += 1
    quieten()
    return session


def release_session(session) -> None:
    """Stop the embedded Spark when the last warehouse that uses it closes; never somebody else's."""
    with _sharing:
        if "ours" not in _users:
            return
        _users["ours"] -= 1
        if _users["ours"] == 0:
            _users.clear()
            session.stop()


@contextlib.contextmanager
def stderr_to(log: Path) -> Iterator[None]:
    """Let the JVM write its messages to a log file: it keeps the stderr it is started with."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    ours = os.dup(2)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(target, 2)
        yield
    except Exception as error:
        raise EnvironmentProblem(
            "Spark did not start",
            detail=str(error).split("\n")[0],
            hint=f"its messages are in {log}",
            code="WEFT_SPARK_START",
        ) from error
    finally:
        os.dup2(ours, 2)
        os.close(ours)
        os.close(target)


def quieten() -> None:
    """PySpark logs every analysis error as JSON on stderr; Weft raises its own errors instead."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def prepare(session) -> None:
    """Give an adopted session the few settings that answers depend on."""
    quieten()
    for key, value in REQUIRED.items():
        session.conf.set(key, value)


def check_java() -> None:
    """Say what to do where Java 17+ is missing, before Spark fails in its own words."""
    java = _find_java()
    if java is None:
        raise _no_java("no Java runtime was found")
    try:
        text = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30).stderr
    except OSError as error:
        raise _no_java(str(error)) from None
    version = _major(text)
    if version is not None and version < 17:
        raise _no_java(f"{java} is Java {version}")


def _find_java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return str(Path(home) / "bin" / "java")
    return shutil.which("java")


def _major(text: str) -> int | None:
    _, _, rest = text.partition('"')
    number = rest.split('"')[0].split(".")
    if not number[0].isdigit():
        return None
    return int(number[1]) if number[0] == "1" and len(number) > 1 else int(number[0])


def _no_java(detail: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        "Spark needs Java 17 or newer",
        detail=detail,
        hint="install it (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17) or set JAVA_HOME",
        code="WEFT_NO_JAVA",
    )
