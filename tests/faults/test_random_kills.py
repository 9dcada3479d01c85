"""kill -9 at random moments, a hundred times over (WEFT_KILLS), on one warehouse.

Half of the kills come soon after a start, while the worker recovers; half while it works.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import fault_workload as workload
import pytest
from fault_farm import HERE, OFTEN
from worker import Journal

KILLS = int(os.environ.get("WEFT_KILLS", "100"))
FOREVER = 1_000_000  # steps


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [20260101])
def test_random_kills(seed: int, farm, tmp_path: Path):
    dice = random.Random(seed)
    ready = farm.run(tmp_path, workload.ONE_ROUND)
    assert ready.status == 0, ready.log
    wanted = workload.ONE_ROUND
    for _ in range(KILLS):
        worker = farm.start(tmp_path, FOREVER)
        if dice.random() < 0.5:
            # by steps, not by seconds: a busy machine gets as far as an idle one
            before = steps(tmp_path)
            wanted = before + dice.randrange(3)
            assert worker.says("recovered", 120), worker.log
            wait_for_steps(worker, tmp_path, wanted)
        time.sleep(dice.uniform(0, 0.6))
        worker.kill()
        assert worker.status == -9, worker.log  # it did not end by itself: no difference, no error
        assert steps(tmp_path) >= wanted  # what was done stays done
    last = farm.run(tmp_path, 0)
    assert last.status == 0, last.log
    assert steps(tmp_path) - workload.ONE_ROUND > KILLS / 4, "the kills left no time for any work"
    print(f"{KILLS} kills, {steps(tmp_path)} steps")


def steps(folder: Path) -> int:
    return Journal(folder / "journal.txt").done


def wait_for_steps(worker, folder: Path, count: int) -> None:
    deadline = time.monotonic() + 120
    while steps(folder) < count:
        assert time.monotonic() < deadline, worker.log
        assert "Traceback" not in worker.log and "DIFFERENT" not in worker.log, worker.log
        time.sleep(0.01)


def test_kill_of_a_process_with_its_own_spark(farm, tmp_path: Path):
    """The JVM dies too: nothing of it writes on, as it might in the shared one."""
    ready = farm.run(tmp_path, workload.ONE_ROUND)
    assert ready.status == 0, ready.log
    process = subprocess.Popen(
        [sys.executable, str(HERE / "worker.py"), str(tmp_path), str(FOREVER)],
        env={**os.environ, **OFTEN, "WEFT_CRASH_AT": "batch.results-written"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.wait(300) == -signal.SIGKILL
    os.killpg(process.pid, signal.SIGKILL)  # the JVM
    again = farm.run(tmp_path, Journal(tmp_path / "journal.txt").done + 1)
    assert again.status == 0, again.log
