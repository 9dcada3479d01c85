"""Kill the process at every named point: after the next start nothing is missing, nothing twice.

The names are found in the source, so a new point is tested as soon as it is there, and one that
the workload cannot reach fails the test. All points share one warehouse: each test goes on with
the workload until it dies at its point, then starts again, recovers and compares every answer
with what plain Python says.
"""

from __future__ import annotations

import re
from pathlib import Path

import fault_workload as workload
import pytest
from worker import Journal

import weft

CALL = re.compile(r"(?<!def )\bcrash_point\(\s*(?P<name>[^)]*?)\s*\)")
ORPHANS_FIRST = "batch.rows-written"  # dies with files written that no catalog row names


def points() -> list[str]:
    found = set()
    for path in Path(weft.__file__).parent.rglob("*.py"):
        for call in CALL.finditer(path.read_text()):
            assert re.fullmatch(r'"[^"]+"', call["name"]), f"{path}: name crash points literally"
            found.add(call["name"].strip('"'))
    return sorted(found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("points")


def test_points_are_found():
    assert {"push.after-write", "batch.committed", "register.committed"} <= set(points())


@pytest.mark.parametrize("point", points())
def test_crash_at(point: str, farm, folder: Path):
    if point.startswith("sweep.orphan"):
        crash(farm, folder, ORPHANS_FIRST)
    crash(farm, folder, point)
    again = farm.run(folder, 0)
    assert again.status == 0, again.log


def crash(farm, folder: Path, point: str) -> None:
    reached = Journal(folder / "journal.txt").done
    enough = max(reached, len(workload.SETUP)) + 2 * len(workload.CYCLE)
    died = farm.run(folder, enough, WEFT_CRASH_AT=point)
    assert died.status != 0, f"the workload never reaches {point}"
    assert died.status == -9, died.log
