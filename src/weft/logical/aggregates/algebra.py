"""The algebra of aggregates: what a function must say of itself to be shared and incremental.

Each aggregate is a value: its kind, its basic statistics, how those are folded from rows and
merged, and its finish. The law behind every one of them: finishing the merged statistics of any
split of some rows, in any order and with empty parts, gives what Spark's own function gives over
all the rows.

Source: ARGUS §3.2 (AggreBasics: basic statistics; AggreRules: category, incremental rule, vertical
expansion rule); Gray et al. for distributive, algebraic and holistic. Differs: one merge per
statistic serves both of ARGUS's rules, since old and new parts merge as finer groups do; *sketch*
is a fourth kind, algebraic with a stated error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.logical.statistics import Lift, Statistic

if TYPE_CHECKING:
    from weft.logical.aggregates.defined import SqlAggregate
    from weft.logical.aggregates.python import PythonAggregate

TypeOf = Callable[[str], str]  # a Spark SQL expression over a stream's columns → its DDL type


class Kind(StrEnum):
    DISTRIBUTIVE = "distributive"
    ALGEBRAIC = "algebraic"
    SKETCH = "sketch"
    HOLISTIC = "holistic"


class CannotShare(Exception):
    """Why a query is not served by shared partials; a plain sentence for EXPLAIN."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call, over bare columns."""

    key: str  # canonical text
    sql: str  # Spark SQL
    type: str  # Spark DDL type
    node: exp.Expression = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Condition:
    """FILTER (WHERE …), over bare columns."""

    key: str
    sql: str


@dataclass(frozen=True, slots=True)
class Call:
    """One aggregate call of a query, its arguments in canonical form."""

    name: str
    arguments: tuple[Argument, ...]
    type_of: TypeOf
    is_distinct: bool = False
    ignores_nulls: bool = False
    condition: Condition | None = None

    def key(self, name: str, *arguments: str) -> str:
        """The canonical text of a statistic under this call's filter."""
        suffix = f" filter({self.condition.key})" if self.condition else ""
        return f"{name}({', '.join(arguments)}){suffix}"

    def fold(self, aggregate: str, where: str | None = None) -> str:
        """An aggregate under this call's filter, and one more condition where given."""
        kept = self._kept(where)
        return f"{aggregate} FILTER (WHERE {kept})" if kept else aggregate

    def lift(self, template: str, *arguments: str, where: str | None = None) -> Lift:
        """The fold of one row under this call's filter, and one more condition where given."""
        return Lift(template, arguments, self._kept(where))

    def _kept(self, where: str | None) -> str | None:
        parts = [f"({c})" for c in (self.condition and self.condition.sql, where) if c]
        return " AND ".join(parts) or None


@dataclass(frozen=True, slots=True)
class Lowered:
    """A call as statistics and a finish over their columns, in Spark's SQL and in DuckDB's."""

    statistics: tuple[Statistic, ...]
    spark: str
    duck: str | None
    type: str
    is_total: bool = True  # folding and merging raise no error, whatever the values
    covers_nothing: bool = True  # NULL statistics finish to what SQL gives for no rows
    is_repeatable: bool = True  # merging in another order gives the same
    definitions: tuple[PythonAggregate, ...] = ()  # whose functions both engines must have


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function by its algebra. `basics` and `rule` are ARGUS's tables 2 and 1, to be shown."""

    name: str
    kind: Kind
    lower: Callable[[Call], Lowered] = field(repr=False, compare=False)
    basics: tuple[str, ...] = ()  # "SUM(X)": exact match of the argument; W: any
    rule: str = ""  # the finish over the basic statistics
    merge: tuple[str, ...] = ()  # for each basic statistic
    error: str | None = None  # the bound of a sketch's error
    arity: tuple[int, int] = (1, 1)  # fewest and most arguments
    definition: SqlAggregate | PythonAggregate | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def is_mergeable(self) -> bool:
        return self.kind is not Kind.HOLISTIC


def holistic(name: str, why: str) -> Aggregate:
    """A function without a bound on what must be kept: known, and never shared."""

    def refuse(call: Call) -> Lowered:
        raise CannotShare(f"{call.name} is holistic: {why}")

    return Aggregate(name, Kind.HOLISTIC, refuse, arity=(0, 9))


@dataclass(frozen=True, slots=True)
class Aggregates:
    """A registry of aggregates, as a value: user-defined ones make another registry."""

    by_name: Mapping[str, Aggregate]

    @classmethod
    def of(cls, aggregates: Iterator[Aggregate] | list[Aggregate]) -> Aggregates:
        return cls({a.name: a for a in aggregates})

    def find(self, name: str) -> Aggregate | None:
        return self.by_name.get(name.lower())

    def having(self, *more: Aggregate) -> Aggregates:
        """This registry and these, which take the place of others of the same name."""
        return Aggregates({**self.by_name, **{a.name: a for a in more}})

    def __iter__(self) -> Iterator[Aggregate]:
        return iter(self.by_name.values())

    def lower(self, call: Call) -> Lowered:
        """The call as statistics and a finish; refuses what is unknown, holistic or misused."""
        found = self.find(call.name)
        if found is None:
            raise CannotShare(f"{call.name} is not known to be mergeable")
        fewest, most = found.arity
        if not fewest <= len(call.arguments) <= most:
            raise CannotShare(f"{call.name} with {len(call.arguments)} arguments is not shared")
        return found.lower(call)
