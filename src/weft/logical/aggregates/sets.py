"""DISTINCT and collections: the state is the set of values (or the list of them, in order).

Law: the set of all rows is the union of the sets of any parts. The state grows with the number of
distinct values of a group, not with its rows.
"""

from __future__ import annotations

from weft.logical.aggregates.algebra import Call, CannotShare, Lowered


def count_of_set(call: Call) -> Lowered:
    raise CannotShare("count(DISTINCT …) is not shared yet")


def sum_of_set(call: Call, type_: str) -> Lowered:
    raise CannotShare("sum(DISTINCT …) is not shared yet")


def average_of_set(call: Call, type_: str) -> Lowered:
    raise CannotShare("avg(DISTINCT …) is not shared yet")
