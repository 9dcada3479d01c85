"""Named points at which tests kill the process, to show that any line may be the last.

In production WEFT_CRASH_AT is unset and a call costs one dictionary look-up.
"""

from __future__ import annotations

import os
import signal

_counts: dict[str, int] = {}


def crash_point(name: str) -> None:
    """Die here, as from kill -9, if WEFT_CRASH_AT names this point ("name" or "name:nth visit")."""
    wanted = os.environ.get("WEFT_CRASH_AT")
    if wanted is None:
        return
    target, _, visit = wanted.partition(":")
    if target != name:
        return
    _counts[name] = _counts.get(name, 0) + 1
    if _counts[name] >= int(visit or 1):
        os.kill(os.getpid(), signal.SIGKILL)
