"""Sweeping: files that no segment names are what a crash left; files that were dropped may go.

Runs when a writer starts (nothing else writes then), and for dropped segments also between batches.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from weft.catalog.store import Catalog
from weft.catalog.view import now_micros
from weft.storage.crash import crash_point

FOLDERS = ("streams", "tables", "queries", "nodes", "matches")
GRACE = 60_000_000  # µs: a reader that looked before a drop has this long to finish


def sweep_orphans(catalog: Catalog, root: Path) -> int:
    """Delete files that no segment names; returns how many."""
    with catalog.read() as view:
        known = view.every_path()
    count = 0
    for folder in FOLDERS:
        for path in (root / folder).rglob("*.parquet"):
            if str(path.relative_to(root)) not in known:
                path.unlink(missing_ok=True)
                count += 1
                crash_point("sweep.orphan-deleted")
        remove_empty_folders(root / folder)
    sweep_streams(catalog, root)
    return count


def sweep_streams(catalog: Catalog, root: Path) -> None:
    """Remove inboxes and checkpoints of streams that were dropped."""
    with catalog.read() as view:
        live = {str(stream.id) for stream in view.streams()}
    for folder in ("inbox", "checkpoints"):
        for path in (root / folder).iterdir() if (root / folder).exists() else ():
            if path.name not in live:
                shutil.rmtree(path, ignore_errors=True)


def remove_empty_folders(top: Path) -> None:
    """Remove batch folders that hold no data file any more (only Spark's own markers)."""
    if not top.exists():
        return
    for owner in top.iterdir():
        for batch in owner.iterdir() if owner.is_dir() else ():
            if batch.is_dir() and not any(batch.rglob("*.parquet")):
                shutil.rmtree(batch, ignore_errors=True)


def sweep_dropped(catalog: Catalog, root: Path, grace: int = GRACE) -> int:
    """Delete the files of segments that were dropped long enough ago, then forget them."""
    with catalog.read() as view:
        dropped = view.dropped(now_micros() - grace)
    for segment in dropped:
        (root / segment.path).unlink(missing_ok=True)
        crash_point("sweep.dropped-deleted")
    if dropped:
        with catalog.write() as change:
            change.forget_segments(dropped)
        for folder in FOLDERS:
            remove_empty_folders(root / folder)
    return len(dropped)
