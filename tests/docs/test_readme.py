"""The one-minute example of the README runs as it is, and prints what the README says."""

from __future__ import annotations

from blocks import ROOT, python_blocks, run_page


def test_readme_example(here, capsys) -> None:
    assert len(python_blocks(ROOT / "README.md")) == 1
    run_page(ROOT / "README.md")
    lines = capsys.readouterr().out.splitlines()
    rows = sorted(line.split()[-3:] for line in lines[1:])
    assert rows == [["A", "2", "11.0"], ["B", "1", "7.0"]]
