"""On several executor processes, one of which is killed: answers stay what they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

WORK = """
import json, os, pathlib, signal, statistics, sys, time
import weft

STREAM = "CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
READY = (
    "CREATE CONTINUOUS QUERY ready WITH (answers = 'eager') AS SELECT k, max(v) AS m, count(*) AS n"
    " FROM s [RANGE 60 SECONDS SLIDE 10 SECONDS] GROUP BY k"
)
TOTAL = "CREATE CONTINUOUS QUERY total AS SELECT k, sum(v) AS t, median(v) AS h FROM s GROUP BY k"


def rows(first):
    return [
        {"k": "abc"[t % 3], "v": t, "ts": f"2026-01-01T00:{t // 60:02d}:{t % 60:02d}Z"}
        for t in range(first, first + 40)
    ]


def executors(app):
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "CoarseGrainedExecutorBackend" in command and app in command:
            found.append(int(process.name))
    return sorted(found)


with weft.connect(sys.argv[1]) as db:
    db.sql(f"{STREAM}; {READY}; {TOTAL}")
    seen = []
    for batch in range(4):
        db.push("s", rows(40 * batch))
        db.run()
        seen.append(executors(db._engine.spark.sparkContext.applicationId))
        if batch == 1:
            os.kill(seen[-1][0], signal.SIGKILL)
    ready = sorted((r["k"], r["m"], r["n"]) for r in db.query("ready").results().to_pylist())
    total = sorted((r["k"], r["t"], r["h"]) for r in db.query("total").results().to_pylist())
    history = db.query("ready").history().num_rows
print(json.dumps({"executors": seen, "ready": ready, "total": total, "history": history}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="finds the executors in /proc")
def test_a_lost_executor_costs_a_reread_not_an_answer(tmp_path) -> None:
    master = {"WEFT_MASTER": "local-cluster[2,1,1024]", "WEFT_DRIVER_MEMORY": "1g"}
    done = subprocess.run(
        [sys.executable, "-c", WORK, str(tmp_path / "wh")],
        env={**os.environ, **master}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    before, after = found["executors"][1], found["executors"][3]
    assert len(before) == 2
    assert before[0] not in after
    # the clock stands at 00:02:39, so the newest closed window is [00:01:30, 00:02:30)
    window, whole = range(90, 150), range(160)
    assert found["ready"] == [
        ["abc"[i], max(t for t in window if t % 3 == i), sum(t % 3 == i for t in window)]
        for i in range(3)
    ]
    groups = [[t for t in whole if t % 3 == i] for i in range(3)]
    assert found["total"] == [
        ["abc"[i], sum(g), (g[(len(g) - 1) // 2] + g[len(g) // 2]) / 2]
        for i, g in enumerate(groups)
    ]
    assert found["history"] == 3 * 15
