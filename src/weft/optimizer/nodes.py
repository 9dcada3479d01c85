"""Nodes and classes: what is folded, and what queries share of it, as values.

A node is a relation of partials (ARGUS's aggregate node), a class what queries share fully: the same
stream, window, predicate and dimensions. Ten users who ask for AVG, SUM and COUNT of the same
window are one class.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from weft.catalog.records import Keep
from weft.logical.aggregates import PythonAggregate
from weft.logical.panes import Paned, Panes, longest, panes_of
from weft.logical.statistics import Dimension, Statistic, digest, long_digest
from weft.logical.windows import Sliding
from weft.optimizer.predicates import Bit, Condition, Predicate, Ranking

Atom = Dimension | Ranking | Bit


@dataclass(frozen=True, slots=True)
class Node:
    """A relation of partials: one row for each pane (of each level) and value of its columns.

    Without panes it keeps totals: its panes are the evaluations of the stream, each with the rows
    that the clock reached then. A versioned node keeps the evaluation of each partial, so that an
    open window can be seen as it stood after any of them (EMIT CHANGES).
    """

    panes: Panes | None
    pyramid: tuple[int, ...]  # widths of its levels, in panes
    columns: tuple[Atom, ...]
    statistics: tuple[Statistic, ...]
    is_versioned: bool = False
    apart: int = 0  # nodes of another number are never folded together: forced plans only

    def column_names(self) -> tuple[str, ...]:
        return tuple(atom.column for atom in self.columns)

    def signature(self) -> tuple[Ranking | Bit, ...]:
        return tuple(atom for atom in self.columns if not isinstance(atom, Dimension))

    def dimensions(self) -> tuple[Dimension, ...]:
        return tuple(atom for atom in self.columns if isinstance(atom, Dimension))

    def __str__(self) -> str:
        return f"({', '.join(atom.key for atom in self.columns)})"


@dataclass(frozen=True)
class AggregateClass:
    """What queries share fully. A window that neither hops nor slides is part of the predicate."""

    stream_id: int
    window: Paned | None
    dimensions: tuple[Dimension, ...]
    predicate: Predicate
    is_versioned: bool
    since: int = 0  # tells apart classes that are one but for how far back their nodes reach

    @cached_property
    def key(self) -> str:
        parts = [self.stream_id, self.window, [d.key for d in self.dimensions], self.since]
        return digest(repr([*parts, self.predicate.key, self.is_versioned]))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Of its dimensions, sorted."""
        return tuple(sorted(d.column for d in self.dimensions))

    @cached_property
    def panes(self) -> Panes | None:
        """The widest that fit its window."""
        return None if self.window is None else panes_of(self.window)

    @cached_property
    def longest(self) -> int:
        """The length of its longest window, in microseconds."""
        return longest(self.window)

    @property
    def is_sliding(self) -> bool:
        return isinstance(self.window, Sliding)

    @property
    def is_closing(self) -> bool:
        """Whether its windows close, each once: only such can be merged before they are read."""
        return self.window is not None and not (self.is_versioned or self.is_sliding)

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True, slots=True)
class EdgeRows:
    """The rows at the ragged edges of a window that slides, as partials; all in DuckDB's SQL."""

    where: str
    columns: tuple[tuple[str, str], ...]  # dimensions and statistics: column, of one row


@dataclass(frozen=True, slots=True)
class Finish:
    """How a query's answer comes of its class's merged statistics.

    DuckDB finishes it whenever it is read; or Spark does, batch by batch, and the answer is stored.
    """

    duck: str | None  # over weft_m0, see plan/share.py; None: only Spark can say it
    spark: str
    dimensions: tuple[str, ...]  # columns of partials
    statistics: tuple[Statistic, ...]
    is_global: bool  # one row, of a standing answer even over nothing
    is_filtered: bool  # a window may have groups and yet no answer (HAVING)
    limit: int | None  # per window
    offset: int
    window_names: tuple[str, ...]  # columns of the finish with the window's start and end
    evaluation: int  # of the stream, when the query was registered
    policy: str = "auto"  # answers: auto, lazy or eager
    definitions: tuple[PythonAggregate, ...] = ()  # whose functions the reading engine must have
    on_spark: str | None = None  # why Spark finishes it; None: DuckDB does
    failures: tuple[tuple[str, str], ...] = ()  # columns that count failing rows, and what fails
    edges: EdgeRows | None = None  # of a sliding window only
    is_repeatable: bool = True  # merging partials in another order gives the same answer

    def answering(self, asked: str) -> Finish:
        """The same with what `answers = ...` asks for, where there is a choice."""
        if self.on_spark is not None:
            asked = "auto"  # its answers are stored as they come
        elif asked == "auto" and not self.is_repeatable:
            asked = "eager"  # merged once, and then the same for every reader
        return replace(self, policy=asked)


@dataclass(frozen=True, slots=True)
class Route:
    """Where a class reads the rows of the ticks in [from_tick, to_tick]; None: until further notice."""

    node_id: int
    condition: Condition
    from_tick: int
    to_tick: int | None

    def holds(self, tick: int) -> bool:
        return tick >= self.from_tick and (self.to_tick is None or tick <= self.to_tick)


@dataclass(frozen=True, slots=True)
class LiveNode:
    """A node that exists. `parent_id` is the node that it is computed from; None: from the rows."""

    id: int
    stream_id: int
    node: Node
    parent_id: int | None
    born_tick: int  # 0: it holds whatever was retained when it was made
    retired_tick: int | None = None
    rows_in: int = 0
    cells: int = 0

    @property
    def owner(self) -> str:
        return f"node:{self.id}"


def family_of(value: AggregateClass, routes: tuple[Route, ...]) -> int:
    """Equal for classes whose windows hold the same wherever they start and end together: they
    differ only in how long their windows are and how often they come."""
    places = [(route.node_id, route.from_tick, route.to_tick) for route in routes]
    parts = [[d.key for d in value.dimensions], value.predicate.key, places]
    return int(long_digest(repr(parts)), 16)


@dataclass(frozen=True)
class LiveClass:
    """A class that exists, with its routes, oldest first."""

    id: int
    value: AggregateClass
    routes: tuple[Route, ...]
    eager_from: int | None = None
    statistics: frozenset[Statistic] = field(default=frozenset())  # that its queries need
    keeps: frozenset[Keep] = field(default=frozenset())  # of its queries

    @property
    def open_route(self) -> Route:
        return self.routes[-1]

    @cached_property
    def family(self) -> int:
        return family_of(self.value, self.routes)

    def forgotten(self, clock: int | None) -> int | None:
        """Up to this instant none of its queries has windows any more; None: one has them all."""
        cuts = [keep.forgotten(clock) for keep in self.keeps]
        return None if None in cuts else min(cuts, default=None)
