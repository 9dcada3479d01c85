"""Check the documentation: every relative link in a Markdown file resolves, anchors included.

Links inside code blocks and code spans are text, not links; links with a scheme (https:, mailto:)
are left to their owners.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = {".venv", ".git", ".pytest_cache", "node_modules", "dist", "build"}
FENCE = re.compile(r"^ {0,3}(```|~~~).*?^ {0,3}\1", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\)")
REFERENCE = re.compile(r"^\[[^\]]+\]:\s+<?(\S+?)>?\s*$", re.MULTILINE)
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$", re.MULTILINE)
HTML_ANCHOR = re.compile(r"<a\s+(?:id|name)=[\"']([^\"']+)")


def pages(root: Path) -> list[Path]:
    return sorted(
        path for path in root.rglob("*.md") if not SKIPPED & set(path.relative_to(root).parts)
    )


def blank(match: re.Match[str]) -> str:
    """Take the text away and keep the lines, so that line numbers stay right."""
    return re.sub(r"[^\n]", " ", match.group())


def links(text: str) -> list[tuple[int, str]]:
    prose = SPAN.sub(blank, FENCE.sub(blank, text))
    found = [(m.start(), m.group(1)) for rule in (LINK, REFERENCE) for m in rule.finditer(prose)]
    return [(prose.count("\n", 0, start) + 1, target) for start, target in sorted(found)]


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page, as the usual Markdown renderers make them from its headings."""
    text = FENCE.sub(blank, page.read_text(encoding="utf-8"))
    names: set[str] = set(HTML_ANCHOR.findall(text))
    seen: Counter[str] = Counter()
    for heading in HEADING.findall(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        names.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return frozenset(names)


def problem(page: Path, target: str, root: Path) -> str | None:
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:", target):
        return None
    path, _, anchor = unquote(target).partition("#")
    base = root if path.startswith("/") else page.parent
    there = (base / path.lstrip("/")).resolve() if path else page
    if not there.exists():
        return f"{target} does not exist"
    if anchor and there.suffix == ".md" and anchor not in anchors(there):
        return f"{target}: no heading gives #{anchor}"
    return None


def main(root: Path = ROOT) -> int:
    checked, broken = 0, 0
    for page in pages(root):
        for line, target in links(page.read_text(encoding="utf-8")):
            checked += 1
            if reason := problem(page, target, root):
                broken += 1
                print(f"{page.relative_to(root)}:{line}: {reason}")
    print(f"{checked} links checked, {broken} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
