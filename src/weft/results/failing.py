"""Answers that hold a row on which the query fails: found before they are read, and refused.

The rows are counted beside the query's statistics (logical/tried.py), so only these counts are
looked at. The same SQL run once over the window would fail; other windows do not notice.
"""

from __future__ import annotations

from weft.catalog.records import QueryRecord
from weft.errors import SqlError
from weft.optimizer.nodes import Finish
from weft.results import duck
from weft.results.answers import END, START
from weft.results.duck import Reading


def refuse_failing(record: QueryRecord, finish: Finish, merged: Reading) -> None:
    """Raise if merged statistics of windows hold a row that fails; say which window."""
    if not finish.failures:
        return
    found = _counted(finish, merged, f"{START}, {END}")
    if not found:
        return
    start, end, *counts = found[0]
    where = f"of the window from {start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S}"
    others = f", and of {len(found) - 1} other windows" if len(found) > 1 else ""
    raise _problem(record, _told(finish, counts, where + others), "read other windows")


def refuse_failing_total(record: QueryRecord, finish: Finish, merged: Reading) -> None:
    """Raise if a merged total holds a row that fails."""
    if finish.failures:
        found = _counted(finish, merged, "")
        if found:
            raise _problem(record, _told(finish, found[0], "that it holds"), "read earlier answers")


def newest_failing(finish: Finish, merged: Reading) -> int | None:
    """The end of the newest window that holds a row that fails, in microseconds."""
    found = _counted(finish, merged, f"{START}, {END}") if finish.failures else []
    return max((round(end.timestamp() * 1_000_000) for _, end, *_ in found), default=None)


def _counted(finish: Finish, merged: Reading, keys: str) -> list[tuple]:
    """How many rows fail, for each failure: of every window that has some, or of the total."""
    counts = [f"coalesce(sum({duck.name(column)}), 0)::BIGINT" for column, _ in finish.failures]
    shown = ", ".join([*([keys] if keys else []), *counts])
    grouped = f" GROUP BY {keys} ORDER BY {keys}" if keys else ""
    sql = f"SELECT {shown} FROM ({merged.sql}){grouped}"
    rows = zip(*(c.to_pylist() for c in duck.fetch_with(sql, merged.tables).columns), strict=True)
    return [row for row in rows if any(row[2 if keys else 0 :])]


def _told(finish: Finish, counts: tuple | list, where: str) -> str:
    parts = [
        f"{text}, in {count:,} {'row' if count == 1 else 'rows'} {where}"
        for count, (_, text) in zip(counts, finish.failures, strict=True)
        if count
    ]
    return "; ".join(parts)


def _problem(record: QueryRecord, detail: str, way: str) -> SqlError:
    return SqlError(
        f'query "{record.name}" fails on the rows it meets',
        detail=detail,
        hint=f"{way} with results(at=...), or CREATE OR REPLACE it with a guard, for example"
        " try_divide",
        code="WEFT_QUERY_FAILED",
    )
