"""Start a run in a fresh process, so that runs do not disturb each other, and hear it out."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from bench.windows.child import MARK
from bench.windows.spec import Spec

ROOT = Path(__file__).parents[2]
MEMORY = "4g"  # of the JVM, for every engine alike; WEFT_DRIVER_MEMORY overrides it
Heard = Callable[[str, int], None]


class RunFailed(Exception):
    """A run ended without figures; the message says why."""


def measure(spec: Spec, repeat: int, timeout: float, heard: Heard) -> dict:
    """The run's figures: of several repetitions, the one with the median time."""
    load = os.getloadavg()[0]  # a busy machine explains a figure that stands out
    found = sorted(
        (one(spec, timeout, heard) for _ in range(repeat)), key=lambda result: result["seconds"]
    )
    median = found[(len(found) - 1) // 2]
    median["load_before"] = round(load, 2)
    if repeat > 1:
        median["all_seconds"] = [round(result["seconds"], 3) for result in found]
    return figures(spec, median)


def figures(spec: Spec, result: dict) -> dict:
    """The JSON of the issue first, then what else is known."""
    seconds = result.pop("seconds")
    return {
        "engine": spec.engine,
        "answers": spec.answers,
        "queries": spec.queries,
        "seconds": round(seconds, 3),
        "rows_per_second": round(spec.rows / seconds),
        "read_ms_median": rounded(result.pop("read_ms_median", None)),
        "mix": spec.mix,
        "rows": spec.rows,
        **({"classes": spec.classes} if spec.classes else {}),
        **{key: rounded(value) for key, value in result.items()},
    }


def rounded(value):
    if isinstance(value, float):
        return round(value, 3)
    return [rounded(part) for part in value] if isinstance(value, list) else value


def one(spec: Spec, timeout: float, heard: Heard) -> dict:
    environment = {"WEFT_DRIVER_MEMORY": MEMORY, **os.environ}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.windows.child", spec.to_json()],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
            start_new_session=True,  # so that its JVM can be ended with it
        )
        alarm = threading.Timer(timeout, end, [process])
        alarm.start()
        try:
            result = listen(process, heard)
        finally:
            is_late = not alarm.is_alive()
            alarm.cancel()
            end(process)
        if result is None:
            raise RunFailed(why(spec, timeout if is_late else None, errors))
        return result


def listen(process: subprocess.Popen, heard: Heard) -> dict | None:
    result = None
    for line in process.stdout or ():
        if line.startswith(MARK):
            message = json.loads(line.removeprefix(MARK))
            result = message.get("result", result)
            if "stage" in message:
                heard(message["stage"], message["rows"])
    return result if process.wait() == 0 else None


def end(process: subprocess.Popen) -> None:
    """End the process and what it started, if they are still there."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def why(spec: Spec, timeout: float | None, errors) -> str:
    if timeout is not None:
        return f"{spec.label}: not done after {timeout:.0f} s (--timeout)"
    errors.seek(0)
    return f"{spec.label}: failed\n{errors.read()[-2000:]}"
