"""Every Python block of the documentation runs, and its assertions hold."""

from __future__ import annotations

import pytest
from blocks import ROOT, python_blocks, run_page

PAGES = ["docs/semantics.md", "docs/how-to.md"]


@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page: str, here) -> None:
    assert python_blocks(ROOT / page), "the page has no Python block"
    run_page(ROOT / page)
