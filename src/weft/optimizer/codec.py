"""Frozen values as JSON text for the catalog, and back.

A value is a dataclass of this system, a tuple, a scalar, a date or a number. Each dataclass is
written with its name, so that a reader knows what it reads; unknown names are an error, never code.
"""

from __future__ import annotations

import dataclasses
import json
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any

from weft.logical.aggregates import Parameter, PythonAggregate
from weft.logical.panes import Panes
from weft.logical.statistics import Dimension, Statistic
from weft.logical.windows import (
    Cumulating,
    Hopping,
    Landmark,
    LastRows,
    Sliding,
    Snapshot,
    WholeStream,
)
from weft.optimizer.factors import Comparison, Predicate
from weft.optimizer.intervals import Interval
from weft.optimizer.nodes import AggregateClass, EdgeRows, Finish, Node
from weft.optimizer.predicates import Bit, Condition, Ranking
from weft.optimizer.selections import Derived, Output, SelectClass, Selection

_KINDS = {
    kind.__name__: kind
    for kind in (
        Panes, Dimension, Statistic, Hopping, Cumulating, AggregateClass, Node, Finish,
        Comparison, Predicate, Interval, Bit, Condition, Ranking, Parameter, PythonAggregate,
        EdgeRows, Sliding, LastRows, Landmark, Snapshot, WholeStream, Derived, SelectClass, Output, Selection,
    )
}  # fmt: skip
_SCALARS = {
    "micros": (timedelta, lambda v: v // timedelta(microseconds=1), lambda v: timedelta(0, 0, v)),
    "instant": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "decimal": (Decimal, str, Decimal),
}


def dump(value: Any) -> str:
    return json.dumps(_plain(value), separators=(",", ":"))


@lru_cache(maxsize=1 << 14)
def load(text: str) -> Any:
    """The value of a text: frozen, so that all who read the same text may have the same one."""
    return _value(json.loads(text))


@cache
def _fields(kind: type) -> tuple[str, ...]:
    fields = dataclasses.fields(kind)
    return tuple(field.name for field in fields if field.metadata.get("stored", True))


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    if dataclasses.is_dataclass(value):
        fields = {name: _plain(getattr(value, name)) for name in _fields(type(value))}
        return {"is": type(value).__name__, **fields}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, frozenset):
        return {"is": "set", "of": sorted(_plain(part) for part in value)}
    if isinstance(value, float):
        return {"is": "float", "of": repr(value)}  # JSON has no NaN and no infinity
    for name, (kind, write, _) in _SCALARS.items():
        if isinstance(value, kind):
            return {"is": name, "of": write(value)}
    return value


def _value(raw: Any) -> Any:
    if isinstance(raw, list):
        return tuple(_value(part) for part in raw)
    if not isinstance(raw, dict):
        return raw
    kind = raw.pop("is")
    if kind == "set":
        return frozenset(_value(part) for part in raw["of"])
    if kind == "float":
        return float(raw["of"])
    if kind in _SCALARS:
        return _SCALARS[kind][2](raw["of"])
    found = _KINDS[kind](**{name: _value(part) for name, part in raw.items()})
    return _one(found) if isinstance(found, Predicate | Dimension) else found


@lru_cache(maxsize=1 << 14)
def _one(value: Any) -> Any:
    """Thousands of classes have the same few of these: they are one object, and quick to compare."""
    return value
