"""Rules about names: what may be created, replaced or dropped, and how to say that it may not."""

from __future__ import annotations

from weft.catalog.change import Change
from weft.catalog.records import QueryRecord, StreamRecord, TableRecord
from weft.catalog.view import Record, View
from weft.errors import NameTaken, SqlError, UnknownName, did_you_mean

CREATE_WORDS = {"query": "CONTINUOUS QUERY", "stream": "STREAM", "table": "TABLE"}


def kind_of(record: Record) -> str:
    return {StreamRecord: "stream", TableRecord: "table", QueryRecord: "query"}[type(record)]


def taken(old: Record, kind: str, **place: int) -> NameTaken:
    same = kind_of(old) == kind
    hint = (
        f"use another name, or CREATE OR REPLACE {CREATE_WORDS[kind]}"
        if same
        else "use another name"
    )
    return NameTaken(f'{kind_of(old)} "{old.name}" already exists', hint=hint, **place)


def unknown(view: View, name: str, kind: str, found: Record | None, **place: int) -> UnknownName:
    names = [n for n, k in view.names().items() if k == kind]
    detail = f'"{name}" is a {kind_of(found)}' if found is not None else None
    return UnknownName(
        f'{kind} "{name}" does not exist',
        detail=detail,
        hint=did_you_mean(name, names),
        code=f"WEFT_UNKNOWN_{kind.upper()}",
        **place,
    )


def readers_of(view: View, record: Record) -> list[str]:
    return [q.name for q in view.readers(record.owner)]


def readers_above(view: View, record: Record) -> list[QueryRecord]:
    """The queries that read a record, directly or through others."""
    owners, found, grew = {record.owner}, [], True
    while grew:
        new = [q for q in view.queries() if q.owner not in owners and owners & set(q.reads)]
        owners |= {q.owner for q in new}
        found += new
        grew = bool(new)
    return found


def refuse_if_read(view: View, record: Record) -> None:
    readers = readers_of(view, record)
    if readers:
        many = "1 query" if len(readers) == 1 else f"{len(readers)} queries"
        raise SqlError(
            f'{kind_of(record)} "{record.name}" is read by {many}',
            detail="read by " + ", ".join(readers[:8]),
            hint="drop those queries first",
            code="WEFT_IN_USE",
        )


def owner_of(view: View, name: str) -> str:
    return view.find(name).owner


def refuse_cycle(view: View, reads: tuple[str, ...], old: QueryRecord | None) -> None:
    """A replaced query must not come to read itself."""
    if old is None:
        return
    by_owner = {q.owner: q for q in view.queries()}
    waiting, seen = list(reads), set()
    while waiting:
        owner = waiting.pop()
        if owner == old.owner:
            raise SqlError(
                f'query "{old.name}" would read itself', hint="use another name", code="WEFT_CYCLE"
            )
        if owner in by_owner and owner not in seen:
            seen.add(owner)
            waiting += by_owner[owner].reads


def free_name(
    change: Change, name: str, kind: str, or_replace: bool, if_not_exists: bool, **place: int
) -> Record | bool | None:
    """Make room for a stream's or table's name. False: it exists and that is fine."""
    old = change.find(name)
    if old is None:
        return None
    if kind_of(old) == kind and if_not_exists:
        return False
    if not (kind_of(old) == kind and or_replace):
        raise taken(old, kind, **place)
    refuse_if_read(change, old)
    change.remove(old)
    return old
