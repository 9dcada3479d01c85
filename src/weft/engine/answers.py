"""Which classes keep their windows ready: chosen by who reads them, unless a query says.

A window that is assembled when it is read costs nothing until then; one that is kept ready costs its
merge once. So a class that somebody subscribes to, or whose windows are read more often than they
close, is made eager, and one that nobody waits for and that is read less than half as often goes
back. A query above reads the partials itself, in the same batch, and needs no window kept ready. Reads are counted in the process that runs the pipeline;
other readers cannot be heard, since they write nothing. Source: PSoup §5 (materialisation follows
the rates of reads and of data); the design's section 6.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from weft.catalog.change import Change
from weft.catalog.records import QueryRecord
from weft.engine import selecting
from weft.logical.windows import Hopping, microseconds
from weft.optimizer.codec import dump, load
from weft.optimizer.described import BEGINNING
from weft.optimizer.network import load_network, policies_of
from weft.optimizer.nodes import Finish, LiveClass

if TYPE_CHECKING:
    from weft.engine.core import Engine


class Reads:
    """Reads by class since the last look, and the clock of each stream then."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._awaited: set[int] = set()  # classes that a subscriber looked at
        self._clocks: dict[int, int] = {}
        self._queries: Counter[int] = Counter()  # reads by query
        self._evaluations: dict[int, int] = {}  # of each stream, at the last look

    def note(self, class_id: int | None, query_id: int) -> None:
        if class_id is not None:
            self._counts[class_id] += 1
            self._queries[query_id] += 1

    def note_wait(self, class_id: int | None) -> None:
        if class_id is not None:
            self._awaited.add(class_id)

    def choose(self, engine: Engine) -> None:
        """Let classes without a say of their own follow what was read."""
        counts, self._counts = self._counts, Counter()
        awaited, self._awaited = self._awaited, set()
        queries, self._queries = self._queries, Counter()
        with engine.catalog.read() as view:
            shares = {s.id: selecting.measured(engine, view, s) for s in view.streams()}
        with engine.catalog.write() as change:
            for stream in change.streams():
                before = self._evaluations.get(stream.id, 0)
                self._evaluations[stream.id] = stream.evaluation
                if stream.evaluation > before:
                    passed = stream.evaluation - before
                    selecting.choose(change, stream, shares[stream.id], passed, queries)
                since = self._clocks.get(stream.id)
                if stream.clock is not None:
                    self._clocks[stream.id] = stream.clock
                    if since is not None and stream.clock > since:
                        _choose(change, stream.id, since, stream.clock, counts, awaited)
        engine.network_changed()


def _choose(
    change: Change,
    stream_id: int,
    since: int,
    clock: int,
    counts: Counter[int],
    awaited: set[int],
) -> None:
    policies = policies_of(change, stream_id)
    for found in load_network(change, stream_id).classes.values():
        if policies.get(found.id) != {"auto"} or not found.value.is_closing:
            continue
        closed = (clock - since) / _step(found)
        is_eager, is_awaited = found.eager_from is not None, found.id in awaited
        if not is_eager and (is_awaited or counts[found.id] > max(closed, 1)):
            change.set_class(found.id, eager_from=clock)
        elif is_eager and not is_awaited and counts[found.id] < closed / 2:
            change.set_class(found.id, eager_from=None)


def _step(found: LiveClass) -> int:
    """How often a window of the class closes, in microseconds."""
    window = found.value.window
    return microseconds(window.slide if isinstance(window, Hopping) else window.step)


def switch_answers(change: Change, record: QueryRecord, asked: str) -> None:
    """Let a query ask for lazy or eager answers, as ALTER QUERY says, and its class follow.

    Where CREATE takes the option and it makes no difference, here neither: answers that are stored
    as they come, selections, totals, and windows that change before they close.
    """
    finish = load(record.shared) if record.shared else None
    if not isinstance(finish, Finish) or finish.answering(asked) == finish:
        return
    change.set_query(record.id, shared=dump(finish.answering(asked)))
    row = change.class_of(record.class_id)
    value = load(row.definition)
    if not value.is_closing:
        return
    wants_eager = "eager" in policies_of(change, row.stream_id)[row.id]
    if wants_eager and row.eager_from is None:
        stream = next(s for s in change.streams() if s.id == row.stream_id)
        since = BEGINNING if stream.clock is None else stream.clock
        change.set_class(row.id, eager_from=since)  # windows that end later are kept ready
    elif not wants_eager and row.eager_from is not None:
        change.set_class(row.id, eager_from=None)
