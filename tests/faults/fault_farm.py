"""Many short-lived worker processes in one JVM.

Starting a JVM takes seconds, so workers attach to the Py4J gateway of the test's own session, and
are forked from a process that has imported everything already. When a worker was killed, whatever
it left running in the JVM is stopped before the next one starts: a dead process has no threads.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from py4j.java_gateway import JavaObject

HERE = Path(__file__).parent
# small files are merged, and dropped files swept, as soon as possible: more to crash in
OFTEN = {"WEFT_COMPACT_AFTER": "3", "WEFT_GRACE_SECONDS": "0", "WEFT_MAINTAIN_EVERY": "1"}


class Farm:
    def __init__(self, spark) -> None:
        self._spark = spark
        parameters = spark.sparkContext._gateway.gateway_parameters
        self._gateway = {
            "PYSPARK_GATEWAY_PORT": str(parameters.port),
            "PYSPARK_GATEWAY_SECRET": parameters.auth_token,
        }
        self._nursery = subprocess.Popen(
            [sys.executable, str(HERE / "fault_nursery.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, folder: Path, until: int, **env: str) -> Worker:
        """Start a worker on a folder; wait for it, or kill it, before the next one."""
        self.settle()
        order = {
            "folder": str(folder),
            "until": until,
            "env": {**self._gateway, **OFTEN, **env},
            "log": str(folder / "worker.log"),
        }
        print(json.dumps(order), file=self._nursery.stdin, flush=True)
        return Worker(int(self._nursery.stdout.readline()), self._nursery, folder / "worker.log")

    def run(self, folder: Path, until: int, timeout: float = 300, **env: str) -> Worker:
        worker = self.start(folder, until, **env)
        worker.wait(timeout)
        return worker

    def settle(self) -> None:
        """Stop the streaming queries and jobs of workers that are gone."""
        context = self._spark.sparkContext
        active = self._spark._jsparkSession.sharedState().activeStreamingQueries()
        deadline = time.monotonic() + 60
        while active.size() or len(context.statusTracker().getActiveJobsIds()):
            assert time.monotonic() < deadline, "a worker's jobs do not end"
            context.cancelAllJobs()
            for query in list(active.values()):
                if query is not None:  # ended meanwhile
                    query.stop()
            time.sleep(0.01)

    def close(self) -> None:
        self._nursery.stdin.close()
        self._nursery.wait(10)
        self.settle()
        gateway = self._spark.sparkContext._gateway
        if gateway.__dict__.get("_callback_server") is not None:  # calls come to this process again
            java = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
            address = java.getCallbackClient().getAddress()
            java.resetCallbackClient(address, gateway._python_proxy_port)


class Worker:
    def __init__(self, pid: int, nursery: subprocess.Popen, log: Path) -> None:
        self.pid, self._nursery, self._log = pid, nursery, log
        self.status: int | None = None  # exit code, or minus the signal

    @property
    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.wait(10)

    def wait(self, timeout: float) -> int:
        ready, _, _ = select.select([self._nursery.stdout], [], [], timeout)
        if not ready:
            os.kill(self.pid, signal.SIGKILL)
        self.status = int(self._nursery.stdout.readline())
        assert ready, f"the worker did not end within {timeout} s:\n{self.log}"
        return self.status

    def says(self, word: str, within: float) -> bool:
        """Wait until the worker has printed a word."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            if word in self.log:
                return True
            time.sleep(0.01)
        return False
