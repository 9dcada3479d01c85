"""Statements that differ in their names and in constants of WHERE alone are planned once.

A script of a thousand selections has few shapes. The first of a shape is bound, planned and analysed
by Spark; of the others only the predicate is read again, and of a conjunction of comparisons with
whole numbers only the numbers. Sound because what is left out depends on nothing that differs:
constants that are whole numbers of less than ten digits have one type, and everything but the WHERE
clause is the same text. A shape is used only if its first statement gives the same class this way
as it gave by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weft.logical.aggregates import CannotShare
from weft.plan.select import Selecting, Shape, shape_of
from weft.sql.statements import CreateQuery

if TYPE_CHECKING:
    from weft.engine.planned import Planned

SPLIT = re.compile(r"\bWHERE\b", re.IGNORECASE)
CONSTANT = re.compile(r"([<>=]\s*)(-?\d{1,9})(?![\w.])")
# what may follow WHERE, or read another query inside it
OTHERS = re.compile(
    r"\b(SELECT|ORDER|LIMIT|OFFSET|GROUP|HAVING|BEGIN|SORT|CLUSTER|DISTRIBUTE|QUALIFY|UNION|EXCEPT"
    r"|INTERSECT|MINUS|WINDOW|EMIT|LATERAL)\b|`|\"|--|/\*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """The first statement of a shape, as it was planned."""

    planned: Planned
    shape: Shape


class Alike:
    """The shapes of statements that wait to be registered together."""

    def __init__(self) -> None:
        self._known: dict[tuple, Known] = {}

    def clear(self) -> None:
        self._known.clear()

    def planned(self, statement: CreateQuery) -> Planned | None:
        """A plan by the shape of an earlier statement; None: this one is planned by itself."""
        known = self._known.get(_key(statement) or ())
        if known is None:
            return None
        selecting = known.shape.numbered(_numbers(statement)) or _tried(known.shape, statement)
        if selecting is None:
            return None
        record = replace(known.planned.record, name=statement.name, statement=statement.text)
        return replace(
            known.planned, statement=statement, record=record, selecting=selecting, plan=None
        )

    def learn(self, planned: Planned, drafted, stream_types) -> None:
        """Remember the shape of a selection that reads no other query."""
        key = _key(planned.statement)
        statement, selecting = planned.statement, planned.selecting
        if key is None or selecting is None or key in self._known:
            return
        if statement.select.tree.args.get("where") is None:
            return
        shape = shape_of(drafted, selecting, stream_types)
        found = _tried(shape, statement)
        if found is None or found.value != selecting.value:
            return
        numbers = _numbers(statement)
        by_numbers = shape.with_slots(_where(statement), numbers)
        found = by_numbers.numbered(numbers)
        is_same = found is not None and found.value == selecting.value
        self._known[key] = Known(planned, by_numbers if is_same else shape)


def _tried(shape: Shape, statement: CreateQuery) -> Selecting | None:
    try:
        return shape.selecting(_where(statement))
    except CannotShare:
        return None


def _where(statement: CreateQuery):
    return statement.select.tree.args["where"].this


def _numbers(statement: CreateQuery) -> list[str]:
    """The constants that differ, from left to right."""
    return [number for _, number in CONSTANT.findall(SPLIT.split(statement.select.text)[1])]


def _key(statement: CreateQuery) -> tuple | None:
    """The text without its name and the constants of its WHERE; None where that may mislead."""
    parts = SPLIT.split(statement.select.text)
    if len(parts) != 2 or "'" in parts[0] or OTHERS.search(parts[1]) or "`" in parts[0]:
        return None
    if statement.or_replace:
        return None
    options = tuple(sorted(statement.options.items()))
    return parts[0], CONSTANT.sub(r"\g<1>0", parts[1]), options, statement.emit
