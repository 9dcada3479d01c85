"""What registered queries may still be asked for: nothing of it is pruned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from weft.catalog.records import QueryRecord, Segment, StreamRecord
from weft.catalog.view import View
from weft.logical.relations import Kind
from weft.logical.windows import (
    Cumulating,
    Hopping,
    LastRows,
    Session,
    Window,
    bounds,
    microseconds,
)
from weft.optimizer.codec import load
from weft.optimizer.selections import Selection
from weft.plan.recompute import PlannedSource
from weft.spark.world import QueryState, World

Reader = tuple[QueryRecord, Window]


def readers(view: View) -> dict[int, list[Reader]]:
    """The shared queries that read rows of each stream, and the windows in which they do: selections,
    and aggregates over windows that slide, for the rows at their edges."""
    found: dict[int, list[Reader]] = defaultdict(list)
    for query in view.sharing():
        value = load(query.shared)
        if isinstance(value, Selection):
            found[_stream_id(query)].append((query, value.window))
        elif value.edges is not None:
            window = load(view.class_of(query.class_id).definition).window
            found[_stream_id(query)].append((query, window))
    return found


def _stream_id(query: QueryRecord) -> int:
    return int(query.reads[0].split(":")[1])


def needed_from(world: World, record: StreamRecord, readers: Iterable[Reader] = ()) -> int | None:
    """The earliest event time that RETAIN or a registered query still needs; None: everything."""
    retain = record.definition.retain
    if retain is None or record.clock is None:
        return None
    needs = [record.clock - microseconds(retain)]
    for state in world.queries.values():
        if state.record.class_id is not None:
            continue  # it needs no rows, only its partials
        for planned in state.plan.sources:
            relation = planned.source.relation
            if relation.kind is Kind.STREAM and relation.name.lower() == record.name.lower():
                needs.append(need_of(world, state, planned))
    segments = world.streams[record.name.lower()].segments
    needs += [_shown_from(record, segments, *each) for each in readers]
    return None if any(need is None for need in needs) else min(needs)


def need_of(world: World, state: QueryState, planned: PlannedSource) -> int | None:
    """The earliest row that a source of a query may be asked for again."""
    window, clock = planned.source.window, state.record.clock
    if clock is None:
        return None
    if isinstance(window, Hopping):
        return clock - microseconds(window.length)
    if isinstance(window, Cumulating):
        return clock - microseconds(window.size)
    if isinstance(window, Session):
        return state.record.frontier
    if isinstance(window, LastRows):
        if planned.source.relation.kind is not Kind.STREAM:
            return None  # how far back n rows of answers reach, nobody has counted
        segments = world.streams[planned.source.relation.name.lower()].segments
        return _nth_newest(segments, window.count + (window.slide or 0), clock)
    return bounds(window, clock)[0]


def _shown_from(
    record: StreamRecord, segments: list[Segment], query: QueryRecord, window: Window
) -> int | None:
    """The earliest row that a window shows at the clock; None: every row that it may see."""
    if isinstance(window, LastRows):
        low = _nth_newest(segments, window.count, record.clock)
    else:
        low, _ = bounds(window, record.clock)
    return max((t for t in (low, *query.horizons.values()) if t is not None), default=None)


def _nth_newest(segments: list[Segment], count: int, clock: int) -> int | None:
    """A time such that at least `count` rows up to the clock are not older, by the footers alone."""
    newest = sorted(
        (s for s in segments if s.max_time is not None and s.max_time <= clock),
        key=lambda s: -s.min_time,
    )
    for segment in newest:
        count -= segment.rows
        if count <= 0:
            return segment.min_time
    return None
