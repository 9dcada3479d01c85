"""Aggregate functions by their algebra: one table for the simple ones, a file per hard family."""

from weft.logical.aggregates.algebra import (
    Aggregate,
    Aggregates,
    Argument,
    Call,
    CannotShare,
    Condition,
    Kind,
    Lowered,
    TypeOf,
)
from weft.logical.aggregates.builtin import BUILT_IN, Rule, basics, rules
from weft.logical.aggregates.defined import (
    BasicStatistic,
    SqlAggregate,
    expand,
    mark,
)
from weft.logical.aggregates.python import Parameter, PythonAggregate

__all__ = [
    "BUILT_IN",
    "Aggregate",
    "Aggregates",
    "Argument",
    "BasicStatistic",
    "Call",
    "CannotShare",
    "Condition",
    "Kind",
    "Lowered",
    "Parameter",
    "PythonAggregate",
    "Rule",
    "SqlAggregate",
    "TypeOf",
    "basics",
    "expand",
    "mark",
    "rules",
]
