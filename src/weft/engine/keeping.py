"""How long the closed windows of a query stay readable: WITH (keep = …), and ALTER QUERY."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weft.catalog.records import Keep, QueryRecord
from weft.errors import SqlError
from weft.logical.windows import microseconds
from weft.sql.options import keep_of


def with_keep(record: QueryRecord, options: Mapping[str, str]) -> QueryRecord:
    """The record with what `keep` says. What is forgotten by now stays so, however it is altered."""
    if "keep" not in options:
        return record
    if not (record.is_per_window and record.is_append_only):
        raise SqlError(
            f'query "{record.name}" has no option keep: it does not emit windows when they close',
            detail="keep says how long closed windows stay readable",
            hint="the rows of a stream are kept by its RETAIN; leave out EMIT CHANGES to use keep",
            code="WEFT_KEEP",
        )
    span = keep_of(options["keep"])
    return replace(
        record, keep=Keep(None if span is None else microseconds(span), record.forgotten)
    )
