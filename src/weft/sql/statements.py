"""Statements as values: what the parser returns and the engine carries out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from weft.logical.aggregates import PythonAggregate, SqlAggregate
from weft.logical.relations import Emit, StreamDefinition, TableDefinition
from weft.logical.windows import Window


@dataclass(frozen=True, slots=True)
class Word:
    """A name in the text, and where it starts."""

    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """A select as parsed, before names are bound.

    `windows` maps the start offset of a table's name token to the window written on it, in
    brackets or as a Flink table function; `between` is PSoup's BEGIN … END window. `descriptors`
    has, for a Flink function, the column in its DESCRIPTOR and then a session's keys: whether
    they fit the stream is checked when names are bound.
    """

    tree: exp.Query
    windows: Mapping[int, Window]
    between: Window | None
    descriptors: Mapping[int, tuple[Word, ...]]


@dataclass(frozen=True, eq=False)
class Select:
    """A select that parses; one like others is parsed when its tree is asked for."""

    text: str
    _read: Callable[[], Parsed] = field(repr=False)

    @cached_property
    def _parsed(self) -> Parsed:
        return self._read()

    @property
    def tree(self) -> exp.Query:
        return self._parsed.tree

    @property
    def windows(self) -> Mapping[int, Window]:
        return self._parsed.windows

    @property
    def between(self) -> Window | None:
        return self._parsed.between

    @property
    def descriptors(self) -> Mapping[int, tuple[Word, ...]]:
        return self._parsed.descriptors


class Options(dict[str, str]):
    """What WITH (...) or SET (...) says, by option, and where each stands in the text."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[str, dict[str, int]] = {}


@dataclass(frozen=True, slots=True, eq=False)
class CreateStream:
    definition: StreamDefinition
    or_replace: bool = False
    if_not_exists: bool = False
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class CreateTable:
    definition: TableDefinition
    select: Select | None = None  # CREATE TABLE t AS SELECT ...
    or_replace: bool = False
    if_not_exists: bool = False
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class CreateQuery:
    name: str
    select: Select
    text: str  # the whole statement, kept in the catalog
    emit: Emit | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    or_replace: bool = False
    if_not_exists: bool = False
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class CreateAggregate:
    definition: SqlAggregate | PythonAggregate
    text: str  # the whole statement, kept in the catalog
    or_replace: bool = False
    if_not_exists: bool = False
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Insert:
    """INSERT INTO table [(columns)] VALUES ... | SELECT ...; `select` covers both."""

    table: str
    columns: tuple[str, ...]  # empty: all, in order
    select: Select
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    table: str
    assignments: tuple[tuple[str, exp.Expression], ...]
    where: exp.Expression | None
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Delete:
    table: str
    where: exp.Expression | None
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Drop:
    kind: str  # "query", "stream", "table" or "aggregate"
    name: str
    if_exists: bool = False
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class AlterQuery:
    """ALTER QUERY name SET (option = 'value', …)."""

    name: str
    options: Mapping[str, str]
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Show:
    what: str  # "queries", "streams", "tables", "triggers", "aggregates"


@dataclass(frozen=True, slots=True, eq=False)
class Describe:
    name: str
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Explain:
    name: str | None
    select: Select | None
    format: str = "text"  # "text", "json" or "mermaid"
    emit: Emit | None = None
    line: int = 1
    column: int = 1


Statement = (
    Select
    | CreateStream
    | CreateTable
    | CreateQuery
    | CreateAggregate
    | Insert
    | Update
    | Delete
    | Drop
    | AlterQuery
    | Show
    | Describe
    | Explain
)
