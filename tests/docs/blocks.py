"""Python blocks of the documentation, to be run in order as one script per page."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(?P<before>[^\n]*)\n```python\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)
SKIP = "<!-- not run -->"  # on the line above a block that needs a server


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """Each block with the line it starts at."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, m.start("code")) + 1, m["code"])
        for m in BLOCK.finditer(text)
        if SKIP not in m["before"]
    ]


def run_page(page: Path) -> dict:
    """Run a page's blocks in one namespace; a failure points at the line of the page."""
    names: dict = {"__name__": "__docs__"}
    for line, code in python_blocks(page):
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)
    return names
