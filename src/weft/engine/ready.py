"""Windows that a commit has left ready, taken into the memory of the process that runs the pipeline."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from weft.errors import WeftError
from weft.optimizer.selections import LiveSelection

if TYPE_CHECKING:
    from weft.engine.core import Engine


def keep(engine: Engine, found: list[LiveSelection]) -> None:
    """Called between the commit and the next one. What fails here, a reader meets and is told of."""
    from weft.results.ready import ready_answers

    kept, version = engine.kept, engine.catalog.version()
    read = kept.take_read()
    if version is None:
        return
    with contextlib.suppress(WeftError), engine.catalog.read() as view:
        for answers, size in ready_answers(view, found, engine.root, read, kept.most_at_once):
            kept.put(answers, version, size)
