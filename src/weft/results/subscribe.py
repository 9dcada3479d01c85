"""Changes of an answer, in order, each once: for subscribers that come and go.

A token names the last change that was handed out: evaluation and position within it. Changes are
in the segments, in a fixed order, so a subscriber that was away, or another process, goes on from
its token; a slow one costs nothing but the segments that exist anyway. Source: PSoup §1.1.
Of windows that are emitted as they close, a position within an evaluation is told by the end of a
window and a place among its rows, since windows before it may be forgotten meanwhile.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from weft.catalog.records import QueryRecord, to_instant, to_micros
from weft.errors import InputError
from weft.results import duck
from weft.results.answers import END, EVALUATION
from weft.results.duck import Reading
from weft.results.keeping import forgotten

if TYPE_CHECKING:
    import pyarrow as pa

PAGE = 10_000  # changes held in memory at a time


@dataclass(frozen=True, slots=True)
class Change:
    """One row that came or went."""

    kind: str  # "insert" or "retract"
    row: dict
    at: datetime | None  # the query's clock
    token: str  # resume after this change


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a subscription reads at one look: the record, its changes, the clock by evaluation."""

    record: QueryRecord
    log: Reading  # changes after the evaluation that was asked for
    clocks: dict[int, int | None]

    @property
    def is_of_windows(self) -> bool:
        """Whether each change is a row of a window that closed."""
        return self.record.is_per_window and self.record.is_append_only


class Subscription:
    """An iterator of changes. Not following, it stops when there are no more and may go on later."""

    def __init__(
        self,
        look: Callable[[int], Snapshot],
        query_id: int,
        token: str | None,
        is_following: Callable[[], bool],
        timeout: float | None,
    ) -> None:
        self._look = look
        self._query_id = query_id
        self._evaluation, self._offset, self._end = self._position(token)
        self._is_following = is_following
        self._timeout = timeout
        self._page: Iterator[Change] = iter(())

    @property
    def token(self) -> str:
        """Where this subscription stands; pass it to subscribe() to go on from here."""
        end = "" if self._end is None else f":{self._end}"
        return f"{self._query_id}:{self._evaluation}:{self._offset}{end}"

    def _position(self, token: str | None) -> tuple[int, int, int | None]:
        if token is None:
            return 0, 0, None
        if not re.fullmatch(r"\d+:\d+:\d+(:-?\d+)?", token, re.ASCII):
            raise InputError(
                f"{token!r} is not a resume token", hint="use the token of a change or a subscription",
                code="WEFT_BAD_TOKEN",
            )  # fmt: skip
        query_id, evaluation, offset, *end = map(int, token.split(":"))
        if query_id != self._query_id:
            raise InputError(
                "the token belongs to another query, or to one that was replaced",
                hint="subscribe without a token to start from the beginning",
                code="WEFT_BAD_TOKEN",
            )
        return evaluation, offset, end[0] if end else None

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> Change:
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        while True:
            for change in self._page:
                return change
            was_following = self._is_following()
            self._page = self._next_page()
            for change in self._page:
                return change
            if not was_following or (deadline is not None and time.monotonic() > deadline):
                raise StopIteration
            time.sleep(0.05)

    def _next_page(self) -> Iterator[Change]:
        done = self._evaluation if self._offset == 0 else self._evaluation - 1
        found = self._look(max(done, 0))
        self._refuse_forgotten(found)
        page = f"SELECT * FROM ({found.log.sql}){self._past()} LIMIT {PAGE} OFFSET {self._offset}"
        rows = duck.fetch_with(page, found.log.tables)
        if found.is_of_windows:
            return self._hand_out_windows(rows, found)
        return self._hand_out(rows, found)

    def _past(self) -> str:
        """Leaves out windows of an evaluation that were handed out whole."""
        if self._end is None:
            return ""
        return (
            f" WHERE NOT ({EVALUATION} = {self._evaluation} AND {END} < {duck.instant(self._end)})"
        )

    def _refuse_forgotten(self, found: Snapshot) -> None:
        """A subscriber that may have missed windows is told so."""
        cut = found.record.forgotten
        if cut is None or (self._evaluation, self._offset) == (0, 0):
            return
        if self._offset:  # within an evaluation: its next row may be of the same window
            has_missed = self._end is None or self._end <= cut
        else:
            clock = found.clocks.get(self._evaluation)
            has_missed = clock is None or clock < cut
        if has_missed:
            what = "windows that closed since that token are"
            raise forgotten(found.record, what, "subscribe without a token")

    def _hand_out_windows(self, rows: pa.Table, found: Snapshot) -> Iterator[Change]:
        """Rows of windows; after the last of an evaluation, the position is the evaluation's end."""
        columns, numbers, ends = _columns(rows, found.record)
        is_all = len(columns) < PAGE
        for index, row in enumerate(columns.to_pylist()):
            number, end = numbers[index], to_micros(ends[index])
            is_next = (number, end) == (self._evaluation, self._end)
            self._evaluation, self._end = number, end
            self._offset = self._offset + 1 if is_next else 1
            is_last = index + 1 == len(numbers)
            if is_all if is_last else numbers[index + 1] != number:
                self._offset, self._end = 0, None
            yield Change("insert", row, to_instant(found.clocks.get(number)), self.token)
        if is_all:  # nothing closed in later evaluations
            known = [n for n, clock in found.clocks.items() if clock is not None]
            self._evaluation = max([self._evaluation, *known])

    def _hand_out(self, rows: pa.Table, found: Snapshot) -> Iterator[Change]:
        columns, numbers, _ = _columns(rows, found.record)
        diffs = rows.column(columns.num_columns).to_pylist()
        for index, row in enumerate(columns.to_pylist()):
            diff, number = diffs[index], numbers[index]
            if number != self._evaluation or self._offset == 0:
                self._evaluation, self._offset = number, 0
            self._offset += 1
            kind = "insert" if diff > 0 else "retract"
            change = Change(kind, row, to_instant(found.clocks.get(number)), self.token)
            yield change


def _columns(rows: pa.Table, record: QueryRecord) -> tuple[pa.Table, list[int], list]:
    """What the user sees of a page of the log, its evaluations, and the ends of its windows."""
    from weft.logical.types import arrow_schema

    names = [c.name for c in record.output_columns()]
    table = rows.select(range(len(names))).rename_columns(names)
    ends = rows.column(len(names) + 2).to_pylist() if record.is_per_window else []
    numbers = rows.column(len(names) + 1).to_pylist()
    return table.cast(arrow_schema(record.output_columns())), numbers, ends
