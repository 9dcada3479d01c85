"""The rooms and their order: data flows down the list, imports look up it.

A room may import the rooms above it and itself, never one below. The list is the design; when a
new arrow is needed, it is changed here, where a reviewer sees it.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "weft"

# room → rooms that it may import besides itself
MAY_IMPORT = {
    "errors": set(),
    "settings": {"errors"},
    "logical": {"errors"},
    "sql": {"errors", "logical"},
    "catalog": {"errors", "logical"},
    "storage": {"errors", "logical", "catalog"},
    "optimizer": {"catalog", "errors", "logical"},
    "plan": {"errors", "logical", "optimizer"},
    "results": {"errors", "logical", "catalog", "storage", "optimizer", "plan"},
    "spark": {"errors", "settings", "logical", "catalog", "storage", "optimizer", "plan"},
    "engine": {"errors", "settings", "logical", "sql", "catalog", "storage", "optimizer", "plan", "results", "spark"},
}  # fmt: skip
MAY_IMPORT["delivery"] = set(MAY_IMPORT)  # the outermost room sees everything
# packages of others, and the only rooms that may name them
OUTSIDE = {
    "pyspark": {"spark"},
    "duckdb": {"results"},
    "sqlalchemy": {"catalog"},
    "alembic": {"catalog"},
    "typer": {"delivery"},
    "rich": {"delivery"},
    "prompt_toolkit": {"delivery"},
}


def modules() -> list[Path]:
    return sorted(p for p in SOURCE.rglob("*.py") if p.name != "__init__.py" or p.parent != SOURCE)


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> list[tuple[str, int]]:
    """Every module that a file names, at its top or inside a function, except for types only."""
    tree = ast.parse(path.read_text("utf-8"))
    skipped = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    found = []
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            names = [f"weft.{a.name}" for a in node.names] if node.module == "weft" else []
            found += [(name, node.lineno) for name in names or [node.module]]
    return found


def room_imported(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "weft" and len(parts) > 1 else None


def test_every_room_is_on_the_list() -> None:
    assert {room_of(path) for path in modules()} == set(MAY_IMPORT)


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_look_up(path: Path) -> None:
    room = room_of(path)
    wrong = [
        f"{path}:{line} imports {module}"
        for module, line in imports(path)
        if (other := room_imported(module)) not in (None, room, "__version__")
        and other not in MAY_IMPORT[room]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_outside_packages_stay_in_their_room(path: Path) -> None:
    wrong = [
        f"{path}:{line} imports {module}"
        for module, line in imports(path)
        if room_of(path) not in OUTSIDE.get(module.split(".")[0], {room_of(path)})
    ]
    assert not wrong, "\n".join(wrong)


def test_the_list_has_no_cycle() -> None:
    done: set[str] = set()
    while len(done) < len(MAY_IMPORT):
        ready = {r for r, above in MAY_IMPORT.items() if r not in done and above - {r} <= done}
        assert ready, f"a cycle among {set(MAY_IMPORT) - done}"
        done |= ready


def test_import_weft_is_light() -> None:
    """`import weft`, and looking up its public names, loads no engine."""
    code = (
        "import sys, weft; weft.connect, weft.Query, weft.WeftError;"
        "print(*sorted({m.split('.')[0] for m in sys.modules} & {'pyspark', 'duckdb', 'pandas', 'pyarrow'}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
