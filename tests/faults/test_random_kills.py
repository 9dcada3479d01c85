"""kill -9 at random moments, a hundred times over (WEFT_KILLS), on one warehouse.

Half of the kills come soon after a start, while the worker recovers; half while it works.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import fault_workload as workload
import pytest
from worker import Journal

KILLS = int(os.environ.get("WEFT_KILLS", "100"))
FOREVER = 1_000_000  # steps


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [20260101])
def test_random_kills(seed: int, farm, tmp_path: Path):
    dice = random.Random(seed)
    ready = farm.run(tmp_path, workload.ONE_ROUND)
    assert ready.status == 0, ready.log
    for _ in range(KILLS):
        worker = farm.start(tmp_path, FOREVER)
        if dice.random() < 0.5:
            assert worker.says("recovered", 60) or worker.wait(0) == 0, worker.log
        time.sleep(dice.uniform(0, 0.8))
        worker.kill()
        assert worker.status == -9, worker.log  # it did not end by itself: no difference, no error
    last = farm.run(tmp_path, 0)
    assert last.status == 0, last.log
    steps = Journal(tmp_path / "journal.txt").done - workload.ONE_ROUND
    assert steps > KILLS / 10, "the kills left no time for any work"
    print(f"{KILLS} kills, {steps} steps")
