"""Windows that are kept no longer: WITH (keep = …) says how long they stay readable."""

from __future__ import annotations

from weft.catalog.records import QueryRecord, to_instant
from weft.errors import StorageError
from weft.logical.windows import instant


def forgotten(record: QueryRecord, what: str, hint: str) -> StorageError:
    until = instant(to_instant(record.forgotten))
    return StorageError(
        f'{what} no longer kept by query "{record.name}"',
        detail=f"windows that ended by {until} are forgotten, as its option keep says",
        hint=f"{hint}, or keep windows longer",
        code="WEFT_NOT_RETAINED",
    )
