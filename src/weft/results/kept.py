"""Answers that were read or made ready, kept in memory for as long as they stand.

An answer is a function of the catalog and of files that do not change. So it stands as long as the
catalog's version does (catalog/watch.py), which is asked on every read: what any process commits
makes it another, and a reader never gets an old answer. If something was committed, an answer that
is made of its stream's rows or partials still stands when the query and the evaluation of its stream
are the same: what else changes (other streams, maintenance, plans) does not change answers.
Source: PSoup §5, complete materialisation: the answer itself.
Bounded: the answers used longest ago go first. Those that were cut from one table hold all of it,
so they go together.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.catalog.records import QueryRecord, StreamRecord
from weft.catalog.view import View

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST = 4  # one table may take this part of all the memory: a quarter
OVERHEAD = 4096  # bytes of an answer beside its values


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    record: QueryRecord
    table: pa.Table
    state: Hashable | None  # equal: the answer is the same, whatever else was committed


def state_of(view: View, record: QueryRecord) -> Hashable | None:
    """What the answer of a query that is not stored depends on; of a stored one: on more than this."""
    if record.is_stored:
        return None
    return live_state(record, view.stream(int(record.reads[0].split(":")[1])))


def live_state(record: QueryRecord, stream: StreamRecord) -> Hashable:
    return record.id, record.shared, record.keep, stream.evaluation, stream.clock


@dataclass(slots=True, eq=False)
class _Entry:
    answer: Answer
    version: Hashable
    group: int


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Answers that share memory."""

    bytes: int
    names: set[str]


class KeptAnswers:
    """Answers by the name of their query; safe with several threads."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._bytes = 0
        self._entries: dict[str, _Entry] = {}
        self._groups: OrderedDict[int, _Group] = OrderedDict()  # used longest ago first
        self._read: set[str] = set()  # names that somebody read since they were last taken

    @property
    def bytes(self) -> int:
        return self._bytes

    @property
    def most_at_once(self) -> int:
        return self._most_bytes // LARGEST

    def get(self, name: str, version: Hashable | None) -> Answer | None:
        """The answer, if nothing was committed since it was found."""
        with self._lock:
            self._read.add(name.lower())
            entry = self._entries.get(name.lower())
            if entry is None or version is None or entry.version != version:
                return None
            return self._used(entry)

    def renew(self, name: str, version: Hashable | None, state: Hashable | None) -> Answer | None:
        """The answer, if what was committed meanwhile does not touch it."""
        with self._lock:
            entry = self._entries.get(name.lower())
            if entry is None or None in (version, state) or entry.answer.state != state:
                return None
            entry.version = version
            return self._used(entry)

    def _used(self, entry: _Entry) -> Answer:
        self._groups.move_to_end(entry.group)
        return entry.answer

    def put(self, answers: Mapping[str, Answer], version: Hashable | None, size: int) -> None:
        """Keep answers that were cut from `size` bytes, if these are not too many."""
        size += OVERHEAD * len(answers)
        if version is None or size > self.most_at_once:
            return
        with self._lock:
            found = {name.lower(): answer for name, answer in answers.items()}
            for name in self._entries.keys() & found.keys():
                self._forget(name)
            key = next(self._numbers)
            self._entries |= {n: _Entry(answer, version, key) for n, answer in found.items()}
            self._groups[key] = _Group(size, set(found))
            self._bytes += size
            while self._bytes > self._most_bytes:
                for name in list(next(iter(self._groups.values())).names):
                    self._forget(name)

    def take_read(self) -> set[str]:
        """The names that were asked for since this was asked."""
        with self._lock:
            found, self._read = self._read, set()
            return found

    def _forget(self, name: str) -> None:
        group = self._entries.pop(name).group
        self._groups[group].names.remove(name)
        if not self._groups[group].names:
            self._bytes -= self._groups.pop(group).bytes
