"""What is kept for selections: chosen by who reads them and how sparse they are, unless a query says.

    none       nothing beside the rows: the predicate is evaluated when the query is read
    partial    a sparse predicate has a list of its rows; a dense one needs none, since the columns
               of each row say as much as a bit for it would
    complete   the rows of the window as well, after every evaluation

A list of 8-byte row numbers is smaller than a bit for each row where fewer than 1 row in 64 satisfies
the predicate (PSoup §5.1); lists hold copies of rows, so that together they may be as many as the
rows. `auto` is complete for a query that is read more often than its stream is evaluated, partial
for one that is read at all, none for others (PSoup §5: the rates of reads and of data decide).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from weft.catalog.change import Change
from weft.catalog.records import QueryRecord, StreamRecord
from weft.catalog.view import View
from weft.errors import SqlError
from weft.optimizer.codec import dump, load
from weft.optimizer.selections import LiveSelection, Selection, load_selections

if TYPE_CHECKING:
    from weft.engine.core import Engine

SPARSE = 1 / 64
COPIES = 1.0  # rows in all lists together, for each row of the stream


def switch_kept(change: Change, record: QueryRecord, policy: str) -> None:
    """Let what is kept for a selection be what ALTER QUERY says."""
    selection = load(record.shared) if record.shared else None
    if not isinstance(selection, Selection):
        raise not_a_selection(record.name)
    stream = next(s for s in change.streams() if s.owner == record.reads[0])
    found = replace(selection, policy=policy)
    change.set_query(record.id, shared=dump(_readied(found, stream, policy == "complete")))
    choose_lists(change, stream, Counter())


def not_a_selection(name: str) -> SqlError:
    return SqlError(
        f'query "{name}" has no option materialize: it does not select rows of one stream',
        hint="EXPLAIN says how it is answered; a shared aggregate has the option answers",
        code="WEFT_UNKNOWN_OPTION",
    )


def _readied(selection: Selection, stream: StreamRecord, is_ready: bool) -> Selection:
    """The window is kept ready from the next evaluation on, or no more."""
    if not is_ready or not selection.can_be_ready:
        return replace(selection, ready_from=None)
    start = stream.evaluation + 1 if selection.ready_from is None else selection.ready_from
    return replace(selection, ready_from=start)


def measured(engine: Engine, view: View, stream: StreamRecord) -> dict[int, float]:
    """The share of the stream's newest rows that satisfies each predicate, by class."""
    found = load_selections(view, stream.id)
    if not found.live:
        return {}
    from weft.results.density import measure

    return measure(view, stream, found.live, engine.root)


def choose(
    change: Change, stream: StreamRecord, shares: dict[int, float], evaluations: int,
    reads: Counter[int],
) -> None:  # fmt: skip
    """Decide by what was read, and by how many rows satisfy each predicate."""
    found = load_selections(change, stream.id)
    for class_id in {each.record.class_id for each in found.live} & set(shares):
        change.set_class(class_id, density=shares[class_id])
    for each in found.live:
        if each.selection.policy == "auto":
            _follow(change, stream, each, evaluations, reads[each.record.id])
    choose_lists(change, stream, reads)


def _follow(
    change: Change, stream: StreamRecord, each: LiveSelection, evaluations: int, reads: int
) -> None:
    is_ready = each.selection.ready_from is not None
    wanted = reads >= evaluations / 2 if is_ready else reads > max(evaluations, 1)
    if wanted != is_ready:
        chosen = _readied(each.selection, stream, wanted)
        change.set_query(each.record.id, shared=dump(chosen))


def choose_lists(change: Change, stream: StreamRecord, reads: Counter[int]) -> None:
    """Give lists to sparse predicates that somebody reads in part, the sparsest first."""
    rows = {row.id: row for row in change.classes(stream.id)}
    readers: dict[int, list[LiveSelection]] = {}
    for each in load_selections(change, stream.id).live:
        readers.setdefault(each.record.class_id, []).append(each)
    copies = 0.0
    for class_id in sorted(readers, key=lambda i: (rows[i].density or 0.0, i)):
        row = rows[class_id]
        limit = SPARSE if row.eager_from is None else 2 * SPARSE  # not to and fro
        is_sparse = row.density is not None and row.density <= limit
        is_wanted = any(
            _wants_list(e, reads, row.eager_from is not None) for e in readers[class_id]
        )
        if is_sparse and is_wanted and copies + row.density <= COPIES:
            copies += row.density
            if row.eager_from is None:
                start = -(2**62) if stream.max_time is None else stream.max_time + 1
                change.set_class(class_id, eager_from=start)
        elif row.eager_from is not None:
            change.set_class(class_id, eager_from=None)


def _wants_list(each: LiveSelection, reads: Counter[int], is_listed: bool) -> bool:
    if not each.selection.can_be_ready:
        return False
    if each.selection.policy == "auto":
        return reads[each.record.id] > 0 or is_listed
    return each.selection.policy == "partial"
