"""A benchmark that computes something else proves nothing: answers are compared with DuckDB's.

DuckDB reads the same Parquet files once more and aggregates the newest closed window of a query
from its rows. Both engines' answers must be the same, before any figure is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import duckdb

from bench.windows.queries import WindowQuery
from bench.windows.trades import START, WATERMARK_SECONDS

EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


@dataclass(frozen=True, slots=True)
class Digest:
    """A window in brief: its end, its groups, its rows, the sum of its prices."""

    end: datetime
    groups: int
    count: int
    total: float

    def agrees(self, other: Digest) -> bool:
        return (self.end, self.groups, self.count) == (other.end, other.groups, other.count) and (
            abs(self.total - other.total) <= 1e-9 * max(1.0, abs(self.total))
        )


def newest_end(query: WindowQuery, clock: datetime) -> datetime | None:
    """The end of the newest window that the clock has passed; None if it ends before any row."""
    seconds = int((clock - EPOCH).total_seconds())
    start = (seconds - query.length) // query.slide * query.slide
    end = EPOCH + timedelta(seconds=start + query.length)
    return end if end > START else None


class Oracle:
    """Expected answers over a list of files."""

    def __init__(self, files: list[Path]) -> None:
        self._files = [str(path) for path in files]
        self._duck = duckdb.connect()
        self._duck.execute("SET TimeZone = 'UTC'")
        (last,) = self._ask("SELECT max(ts) FROM read_parquet($files)")
        self.clock = last - timedelta(seconds=WATERMARK_SECONDS)

    def _ask(self, sql: str, **values: object) -> tuple:
        return self._duck.execute(sql, {"files": self._files, **values}).fetchone()

    def digest(self, query: WindowQuery) -> Digest | None:
        end = newest_end(query, self.clock)
        if end is None:
            return None
        groups, count, total = self._ask(
            f"SELECT count(DISTINCT {query.key or 1}), count(*), coalesce(sum(price), 0)"
            " FROM read_parquet($files) WHERE ts >= $start AND ts < $end AND qty >= $at_least",
            start=end - timedelta(seconds=query.length),
            end=end,
            at_least=query.at_least or 0,
        )
        return Digest(end, groups, count, total)

    def check(self, name: str, query: WindowQuery, found: Digest | None) -> None:
        expected = self.digest(query)
        is_same = found.agrees(expected) if found and expected else found is expected
        if not is_same:
            raise AssertionError(
                f"{name} is wrong: {query.select()} gave {found}, expected {expected}"
            )


def digest_of(table) -> Digest | None:
    """The digest of one window's rows (an Arrow table), which has all four aggregates."""
    if table.num_rows == 0:
        return None
    import pyarrow.compute as pc

    return Digest(
        pc.max(table["window_end"]).as_py(),
        table.num_rows,
        pc.sum(table["n"]).as_py(),
        pc.sum(table["total"]).as_py(),
    )
