"""Which classes keep their windows ready: chosen by who reads them, unless a query says.

A window that is assembled when it is read costs nothing until then; one that is kept ready costs its
merge once. So a class whose windows are read more often than they close is made eager, and one that
is read less than half as often goes back. Reads are counted in the process that runs the pipeline;
other readers cannot be heard, since they write nothing. Source: PSoup §5 (materialisation follows
the rates of reads and of data); the design's section 6.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from weft.catalog.change import Change
from weft.logical.windows import Hopping, microseconds
from weft.optimizer.network import load_network, policies_of
from weft.optimizer.nodes import LiveClass

if TYPE_CHECKING:
    from weft.engine.core import Engine


class Reads:
    """Reads by class since the last look, and the clock of each stream then."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._clocks: dict[int, int] = {}

    def note(self, class_id: int | None) -> None:
        if class_id is not None:
            self._counts[class_id] += 1

    def choose(self, engine: Engine) -> None:
        """Let classes without a say of their own follow what was read."""
        counts, self._counts = self._counts, Counter()
        with engine.catalog.write() as change:
            for stream in change.streams():
                since = self._clocks.get(stream.id)
                if stream.clock is not None:
                    self._clocks[stream.id] = stream.clock
                    if since is not None and stream.clock > since:
                        _choose(change, stream.id, since, stream.clock, counts)
        engine.network_changed()


def _choose(change: Change, stream_id: int, since: int, clock: int, counts: Counter[int]) -> None:
    policies = policies_of(change, stream_id)
    for found in load_network(change, stream_id).classes.values():
        if policies.get(found.id) != {"auto"} or found.value.window is None:
            continue
        if found.value.is_versioned:
            continue
        closed = (clock - since) / _step(found)
        is_eager = found.eager_from is not None
        if not is_eager and counts[found.id] > max(closed, 1):
            change.set_class(found.id, eager_from=clock)
        elif is_eager and counts[found.id] < closed / 2:
            change.set_class(found.id, eager_from=None)


def _step(found: LiveClass) -> int:
    """How often a window of the class closes, in microseconds."""
    window = found.value.window
    return microseconds(window.slide if isinstance(window, Hopping) else window.step)
