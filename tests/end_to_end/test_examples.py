"""The scripts under examples/ run, and print what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PRINTED = {
    "alerts": """\
at first:
  insert   boiler: 3 hot readings, up to 91.0 °C
after two more readings:
  retract  boiler: 3 hot readings, up to 91.0 °C
  insert   boiler: 4 hot readings, up to 93.0 °C
""",
    "joining_streams": """\
at 10:30: paid ['Ada', 'Cem'], unpaid ['Ben']
at 10:40: paid ['Ada', 'Ben', 'Cem'], unpaid []
""",
    "own_aggregate": """\
10:01 ACME 10.75
10:01 INIT 50.0
10:02 ACME 12.0
10:02 INIT 54.0
kept: sum(price * qty), in a node that 2 queries read
kept: sum(qty), in a node that 2 queries read
""",
    "tables_and_time": """\
one order of 2 at 10.0: [{'name': 'Choclate', 'turnover': 20.0}]
another after the price has doubled: the first still counts at 10.0: [{'name': 'Choclate', 'turnover': 60.0}]
the name corrected: all of it is renamed: [{'name': 'Chocolate', 'turnover': 60.0}]
""",
    "track_cluster_centers": """\
10:01  ( 2.01,  2.99)  ( 4.01, 13.99)  of 81 points
10:02  ( 5.01,  3.20)  ( 6.19, 13.01)  of 81 points
10:03  ( 8.01,  3.49)  ( 8.28, 11.98)  of 81 points
10:04  (11.01,  3.78)  (10.12, 10.99)  of 81 points
10:05  (14.01,  3.99)  (11.58,  9.99)  of 81 points
10:06  (17.01,  4.20)  (12.55,  8.99)  of 81 points
over three minutes: (11.01,  3.78)  (14.01,  3.99)  (17.01,  4.20)  (11.42,  9.99)
""",
    "watchlists": """\
now: 11 trades of ACME above 102
a minute later: 11
at 10:00:30 it was: 6
since then 11 came and 11 went
keeps      window (complete): the rows of its window are written after every evaluation
300 queries, each read from the rows that are there once
""",
}


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PRINTED)


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_example(name: str, tmp_path: Path, spark, capsys: pytest.CaptureFixture[str]) -> None:
    script = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    script["main"](tmp_path / "warehouse", spark=spark)
    assert capsys.readouterr().out == PRINTED[name]
