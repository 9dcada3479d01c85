"""Imports everything once, then forks a worker for each line on stdin; prints its pid, then how it ended."""

from __future__ import annotations

import json
import os
import sys

import duckdb  # noqa: F401
import pyarrow.parquet  # noqa: F401
import worker

import weft.spark.batch
import weft.spark.files
import weft.spark.loop
import weft.spark.maintain
import weft.spark.register  # noqa: F401


def begin(order: dict) -> None:
    """In the child: run the worker and leave without cleaning up, as a process that ends may."""
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(0)
    os.environ.update(order["env"])
    status = 1
    try:
        status = worker.main(order["folder"], order["until"])
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


for line in iter(sys.stdin.readline, ""):
    pid = os.fork()
    if pid == 0:
        begin(json.loads(line))
    print(pid, flush=True)
    _, found = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(found), flush=True)
