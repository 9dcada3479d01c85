"""The reference lists every error code and environment variable of the source, and no others."""

from __future__ import annotations

import ast
import re
from dataclasses import fields

from blocks import ROOT

from weft.settings import Settings

NAME = re.compile(r"WEFT_[A-Z_]*[A-Z]")
KINDS = ("STREAM", "TABLE", "QUERY", "RELATION")  # of the code f"WEFT_UNKNOWN_{kind}"


def section(title: str) -> str:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def names_in_source() -> set[str]:
    """String constants that are nothing but such a name."""
    found = {f"WEFT_UNKNOWN_{kind}" for kind in KINDS}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {node.value} if NAME.fullmatch(node.value) else set()
    return found


def test_codes_and_variables_are_listed() -> None:
    variables = set(NAME.findall(section("Environment")))
    codes = set(NAME.findall(section("Errors")))
    settings = {f"WEFT_{field.name.upper()}" for field in fields(Settings)}
    used = names_in_source() | settings
    assert used - variables - codes == set(), "not in docs/reference.md"
    assert (variables | codes) - used == set(), "in docs/reference.md, but not in the source"
    assert settings <= variables
