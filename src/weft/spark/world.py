"""What an evaluation may see: one consistent state of the catalog plus what this batch adds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from weft.catalog.records import QueryRecord, Segment, StreamRecord, TableRecord
from weft.catalog.view import View
from weft.plan.recompute import RecomputePlan
from weft.storage.files import intact_paths


@dataclass(slots=True)
class StreamState:
    record: StreamRecord
    clock: int | None
    segments: list[Segment]  # its retained rows
    first_new: int | None = None  # earliest event time that this batch brings
    newest_tick: int = -1  # largest tick of a row in the segments


@dataclass(slots=True)
class TableState:
    record: TableRecord
    segments: list[Segment]  # parts "rows" and "gone"


@dataclass(slots=True)
class QueryState:
    record: QueryRecord
    plan: RecomputePlan
    segments: list[Segment]  # parts "changes" and "base"
    clock: int | None


@dataclass(slots=True)
class World:
    root: Path
    streams: dict[str, StreamState] = field(default_factory=dict)  # by folded name
    tables: dict[str, TableState] = field(default_factory=dict)
    queries: dict[str, QueryState] = field(default_factory=dict)
    partials: dict[int, list[Segment]] = field(default_factory=dict)  # by node, where asked for

    def paths(self, segments: list[Segment]) -> list[str]:
        return intact_paths(self.root, segments)

    def clock_of(self, names: set[str]) -> int | None:
        """The clock of a query over several streams is the smallest of theirs."""
        clocks = [self._clock(name) for name in names]
        if not clocks or any(clock is None for clock in clocks):
            return None
        return min(clocks)

    def newest_tick(self, names: set[str]) -> int:
        """The largest tick among the rows of streams: what comes later has a larger one."""
        return max((self.streams[n].newest_tick for n in names if n in self.streams), default=-1)

    def _clock(self, folded: str) -> int | None:
        if folded in self.streams:
            return self.streams[folded].clock
        return self.queries[folded].clock


def load_world(view: View, root: Path, plans: dict[int, RecomputePlan]) -> World:
    """Read the state that evaluations start from."""
    world = World(root)
    for stream in view.streams():
        segments = view.segments(stream.owner, "rows")
        newest = int(view.fact(f"consumed:{stream.id}") or -1)
        world.streams[stream.name.lower()] = StreamState(
            stream, stream.clock, segments, newest_tick=newest
        )
    for table in view.tables():
        segments = view.segments(table.owner, "rows", "gone")
        world.tables[table.name.lower()] = TableState(table, segments)
    for query in view.queries(is_shared=False):
        if query.id in plans:
            segments = view.segments(query.owner, "changes", "base")
            world.queries[query.name.lower()] = QueryState(
                query, plans[query.id], segments, query.clock
            )
    return world
