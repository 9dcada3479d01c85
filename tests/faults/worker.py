"""Runs the workload on a warehouse until a step, or until it is killed; then starts again.

The journal says "begin k" before and "done k" after each step, both synced; the step in between
is looked up in the warehouse itself. Exit code 3: the answers are wrong.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import fault_workload as workload


class Journal:
    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().split("\n") if path.exists() else []
        words = [line.split() for line in lines if line.endswith(".")]  # "." ends a whole line
        self.done = max((int(w[1]) + 1 for w in words if w[0] == "done"), default=0)
        begun = max((int(w[1]) for w in words if w[0] == "begin"), default=-1)
        self.uncertain = begun if begun >= self.done else None

    def note(self, word: str, k: int) -> None:
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(handle, f"\n{word} {k} .".encode())
        os.fsync(handle)
        os.close(handle)
        if word == "done":
            self.done = k + 1


def attach():
    """A session of this process in the JVM that another process started."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()
    # the JVM may still let go of objects of a worker that is gone: ours have other numbers
    gateway.gateway_property.pool.next_id = os.getpid() * 100_000
    theirs = gateway.jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession().get()
    context = gateway.jvm.JavaSparkContext.fromSparkContext(theirs.sparkContext())
    conf = SparkConf(_jconf=theirs.sparkContext().conf())
    return SparkSession(SparkContext(gateway=gateway, jsc=context, conf=conf), theirs.newSession())


def main(folder: str, until: int, catalog: str | None = None) -> int:
    import weft

    session = attach() if "PYSPARK_GATEWAY_PORT" in os.environ else None
    journal = Journal(Path(folder) / "journal.txt")
    db = weft.connect(Path(folder) / "warehouse", spark=session, catalog=catalog)
    if journal.uncertain is not None and workload.happened(db, journal.uncertain):
        journal.note("done", journal.uncertain)
    if journal.done:
        db.run()  # recovery, if there is anything to recover
        if _report(workload.differences(db, journal.done)):
            return 3
    print("recovered", journal.done, flush=True)
    for k in range(journal.done, until):
        journal.note("begin", k)
        workload.perform(db, k)
        journal.note("done", k)
    if journal.done and until > 0:
        db.run()
        if _report(workload.differences(db, journal.done)):
            return 3
    print("finished", journal.done, flush=True)
    return 0


def _report(found: list[str]) -> bool:
    for line in found:
        print("DIFFERENT", line, flush=True)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:4]))
