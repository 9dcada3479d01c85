"""User-defined aggregates in Python: one statistic, whose states are bytes that the user's code makes.

    CREATE AGGREGATE spread(x DOUBLE) RETURNS DOUBLE AS PYTHON 'my_module:Spread'

A call is fold, merge and finish, three functions that both engines are given (spark/python.py and
results/functions.py). Rows are collected by Spark's own collect_list and only then handed to Python,
so that the aggregate goes together with built-in ones in one GROUP BY, and with grouping sets; the
rows of a batch that it reads pass through Python either way. Function names carry a digest of the
definition: one session, or one reader, may serve warehouses that mean different things by a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp, parse_one

from weft.logical.aggregates.algebra import Aggregate, Call, CannotShare, Kind, Lowered
from weft.logical.canonical import canonical
from weft.logical.statistics import Statistic, digest
from weft.logical.total import is_total


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: str  # Spark DDL


@dataclass(frozen=True, slots=True)
class PythonAggregate:
    """A user-defined aggregate whose work is done by a Python class."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: str  # Spark DDL
    target: str  # module:Class

    is_plain = False  # a call is never just its built-in parts

    @property
    def meaning(self) -> tuple:
        """What two definitions that mean the same have in common, whatever their spelling."""
        types = tuple((p.name.lower(), p.type) for p in self.parameters)
        return (types, self.returns, self.target)

    def function(self, step: str) -> str:
        """The name under which an engine has its fold, merge or finish."""
        return f"weft_{step}_{self.name.lower()}_{digest(repr(self.meaning))}"

    @property
    def rows_type(self) -> str:
        """The Spark type of what the fold is given."""
        fields = ", ".join(f"`{p.name}`: {p.type}" for p in self.parameters)
        return f"ARRAY<STRUCT<{fields}>>"

    def aggregate(self) -> Aggregate:
        """The value that a registry holds."""
        names = ", ".join(p.name for p in self.parameters)
        many = len(self.parameters)
        return Aggregate(
            self.name.lower(), Kind.ALGEBRAIC, lambda call: _lower(self, call),
            (f"step({names})",), f"finish(step {names})", (f"merge(step {names})",),
            arity=(many, many), definition=self,
        )  # fmt: skip

    def fold(self, arguments: Sequence[str], condition: str | None = None) -> str:
        """Spark SQL: the arguments of all rows, handed to the class."""
        typed = zip(self.parameters, arguments, strict=True)
        fields = ", ".join(f"CAST({a} AS {p.type}) AS `{p.name}`" for p, a in typed)
        only = f" FILTER (WHERE {condition})" if condition else ""
        return f"{self.function('fold')}(collect_list(struct({fields})){only})"

    def expand(self, arguments: Sequence[exp.Expression], type_of: object = None) -> exp.Expression:
        """One Spark expression with the value of the call, for queries that Spark runs as they are."""
        fold = self.fold([a.sql(dialect="spark") for a in arguments])
        return parse_one(f"{self.function('finish')}({fold})", dialect="spark")


def _lower(definition: PythonAggregate, call: Call) -> Lowered:
    if call.is_distinct or call.ignores_nulls:
        raise CannotShare(f"{call.name} with DISTINCT or IGNORE NULLS is not shared")
    fold = definition.fold([a.sql for a in call.arguments], call.condition and call.condition.sql)
    merge, finish = definition.function("merge"), definition.function("finish")
    one = Statistic(
        call.key(definition.function("fold"), *(a.key for a in call.arguments)), "binary", fold,
        f"{merge}(collect_list({{}}))", f"{merge}(list({{}}))", is_light=False,
    )  # fmt: skip
    return Lowered(
        (one,), f"{finish}(`{one.column}`)", f'{finish}("{one.column}")',
        call.type_of(f"CAST(NULL AS {definition.returns})"), _casts_are_total(definition, call),
        definitions=(definition,),
    )  # fmt: skip


def _casts_are_total(definition: PythonAggregate, call: Call) -> bool:
    """Whether no argument can fail to be of its parameter's type."""
    pairs = zip(definition.parameters, call.arguments, strict=True)
    return all(
        a.type == p.type.lower()
        or is_total(canonical(exp.cast(a.node.copy(), p.type, dialect="spark")), call.type_of)
        for p, a in pairs
    )
