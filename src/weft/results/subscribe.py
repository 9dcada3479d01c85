"""Changes of an answer, in order, each once: for subscribers that come and go.

A token names the last change that was handed out: evaluation and position within it. Changes are
in the segments, in a fixed order, so a subscriber that was away, or another process, goes on from
its token; a slow one costs nothing but the segments that exist anyway. Source: PSoup §1.1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from weft.catalog.records import QueryRecord, to_instant
from weft.errors import InputError
from weft.results import duck
from weft.results.duck import Reading

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
        self._evaluation, self._offset = self._position(token)
        self._is_following = is_following
        self._timeout = timeout
        self._page: Iterator[Change] = iter(())

    @property
    def token(self) -> str:
        """Where this subscription stands; pass it to subscribe() to go on from here."""
        return f"{self._query_id}:{self._evaluation}:{self._offset}"

    def _position(self, token: str | None) -> tuple[int, int]:
        if token is None:
            return 0, 0
        parts = token.split(":")
        if len(parts) != 3 or not all(p.isdigit() for p in parts):
            raise InputError(
                f"{token!r} is not a resume token", hint="use the token of a change or a subscription",
                code="WEFT_BAD_TOKEN",
            )  # fmt: skip
        if int(parts[0]) != self._query_id:
            raise InputError(
                "the token belongs to another query, or to one that was replaced",
                hint="subscribe without a token to start from the beginning",
                code="WEFT_BAD_TOKEN",
            )
        return int(parts[1]), int(parts[2])

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
        page = f"SELECT * FROM ({found.log.sql}) LIMIT {PAGE} OFFSET {self._offset}"
        rows = duck.fetch_with(page, found.log.tables)
        return self._hand_out(rows, found)

    def _hand_out(self, rows, found: Snapshot) -> Iterator[Change]:
        from weft.logical.types import arrow_schema

        names = [c.name for c in found.record.output_columns()]
        table = (
            rows.select(range(len(names)))
            .rename_columns(names)
            .cast(arrow_schema(found.record.output_columns()))
        )
        diffs, numbers = (
            rows.column(len(names)).to_pylist(),
            rows.column(len(names) + 1).to_pylist(),
        )
        for index, row in enumerate(table.to_pylist()):
            diff, number = diffs[index], numbers[index]
            if number != self._evaluation or self._offset == 0:
                self._evaluation, self._offset = number, 0
            self._offset += 1
            kind = "insert" if diff > 0 else "retract"
            change = Change(kind, row, to_instant(found.clocks.get(number)), self.token)
            yield change
