"""A bound query: its syntax tree with every source replaced by a placeholder, and the sources."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from weft.logical.relations import Emit, Kind, Relation
from weft.logical.windows import Window


@dataclass(frozen=True, slots=True)
class Source:
    """One occurrence of a stream, table or answer in a query."""

    placeholder: str  # the table name that stands for it in the tree
    relation: Relation
    window: Window

    @property
    def is_per_window(self) -> bool:
        return self.window.is_per_window


@dataclass(frozen=True, slots=True, eq=False)
class BoundQuery:
    """A query whose names are all known.

    Every `exp.Table` of `tree` that is not a CTE is named by a source's placeholder and has an
    alias (the user's own, or the name the user wrote). A source whose window is per-window has
    two more columns, window_start and window_end; all spellings of windows were rewritten to them.
    """

    text: str  # the select as the user wrote it
    tree: exp.Query
    sources: tuple[Source, ...]
    emit: Emit | None = None  # None: not said

    def source(self, placeholder: str) -> Source:
        return next(s for s in self.sources if s.placeholder == placeholder)

    @property
    def streams(self) -> tuple[Source, ...]:
        return tuple(s for s in self.sources if s.relation.kind is Kind.STREAM)

    @property
    def is_per_window(self) -> bool:
        return any(s.is_per_window for s in self.sources)
