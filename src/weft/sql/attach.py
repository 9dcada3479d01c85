"""Windows meet relations: which windows fit what, whichever way they were spelled."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from weft.errors import InvalidWindow, UnknownName, did_you_mean
from weft.logical.relations import Kind, Relation
from weft.logical.windows import Session, Window
from weft.sql.scope import Slot, position, time_column_of
from weft.sql.statements import Select, Word


def can_have_window(relation: Relation) -> bool:
    return relation.kind is Kind.STREAM or relation.is_per_window


def attach_window(select: Select, slot: Slot) -> None:
    """Give a source the window that was written on it, if it may have one."""
    key = slot.node.this.meta.get("start")
    window = select.windows.get(key)
    if window is None:
        return
    if not can_have_window(slot.relation):
        raise _no_window(slot)
    time, *keys = select.descriptors.get(key, (None,))
    if time is not None:
        _check_time(time, slot.relation)
    if isinstance(window, Session):
        window = Session(window.gap, tuple(_key(word, slot.relation) for word in keys))
    slot.window = window


def _no_window(slot: Slot) -> InvalidWindow:
    name, where = slot.relation.name, position(slot.node)
    if slot.relation.kind is Kind.TABLE:
        return InvalidWindow(
            f'"{name}" is a table, and a table has no window',
            detail="windows choose the rows of a stream by their time; a table has only its current rows",
            hint="remove the window; the window of the stream it is joined with is enough",
            **where,
        )
    return InvalidWindow(
        f'"{name}" is a standing answer, and cannot have a window',
        detail="its rows come and go; only an answer that is made window by window has a time of its own",
        hint=f'put the window on the stream inside "{name}", or give that query a window that closes',
        **where,
    )


def refuse_window(select: Select, node: exp.Table) -> None:
    """A window on a CTE has no stream to work on."""
    if node.this.meta.get("start") in select.windows:
        raise InvalidWindow(
            f'"{node.name}" is a subquery, and only a stream can have a window',
            hint=f'put the window on the stream inside "{node.name}"',
            **position(node),
        )


def _check_time(time: Word, relation: Relation) -> None:
    expected = time_column_of(relation)
    if expected is None or time.text.lower() == expected.lower():
        return
    raise InvalidWindow(
        f'"{time.text}" is not the time column of {relation.kind} "{relation.name}"',
        detail=f"its windows are over {expected}",
        hint=f"write DESCRIPTOR({expected})",
        line=time.line,
        column=time.column,
    )


def _key(word: Word, relation: Relation) -> str:
    names = relation.column_names()
    for name in names:
        if name.lower() == word.text.lower():
            return name
    raise UnknownName(
        f'column "{word.text}" does not exist in {relation.kind} "{relation.name}"',
        detail=f"its columns are {', '.join(names)}",
        hint=did_you_mean(word.text, names),
        code="WEFT_UNKNOWN_COLUMN",
        line=word.line,
        column=word.column,
    )


def attach_between(window: Window, top: Sequence[Slot], tree: exp.Query) -> None:
    """PSoup's clause goes to every stream of the outermost FROM that has no window of its own."""
    free = [slot for slot in top if slot.window is None and can_have_window(slot.relation)]
    if not free:
        raise InvalidWindow(
            "BEGIN … END has no stream to work on",
            detail="it goes to every stream in the outermost FROM that has no window of its own",
            hint="put a window in brackets on the stream itself",
            **position(tree),
        )
    for slot in free:
        slot.window = window
