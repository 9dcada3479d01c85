"""FIRST, LAST, MIN_BY, MAX_BY: the value of one row, chosen by an order.

The state is (order key …, value) of the best row so far; parts merge by taking the best again.
FIRST and LAST are by event time, ties by arrival; Spark leaves their order open, so any order it
may choose includes this one. MIN_BY and MAX_BY break ties by event time and arrival as well, so that
every split gives the same answer.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.logical.aggregates.algebra import Aggregate, Argument, Call, CannotShare, Kind, Lowered
from weft.logical.aggregates.kinds import is_portable, refuse_unstored
from weft.logical.statistics import Lift, Statistic

TIMES = {"at": "_weft_time", "tick": "_weft_tick", "ord": "_weft_ord"}
TIME_TYPES = "at:timestamp,tick:bigint,ord:bigint"


def _state(
    call: Call, name: str, way: str, by: Argument | None, value: Argument, where: str | None
) -> Statistic:
    """The value of the row that is least (way = min) or greatest in (by, time, arrival)."""
    refuse_unstored(value.type)
    keys = {"by": by.sql, **TIMES} if by else TIMES
    fields = ", ".join(f"'{field}', {sql}" for field, sql in {**keys, "v": value.sql}.items())
    order = f"struct({', '.join(keys.values())})"
    type_ = f"struct<{f'by:{by.type},' if by else ''}{TIME_TYPES},v:{value.type}>"
    stored = ", ".join(f"{{}}.{field}" for field in keys)
    direction = "" if way == "min" else " DESC"
    duck_order = ", ".join(f"{{}}.{field}{direction}" for field in keys)
    duck = f"first({{}} ORDER BY {duck_order}) FILTER (WHERE {{}} IS NOT NULL)"
    is_readable = by is None or is_portable(by.type)
    return Statistic(
        call.key(name, *([by.key] if by else []), value.key), type_,
        call.fold(f"{way}_by(named_struct({fields}), {order})", where),
        f"{way}_by({{}}, struct({stored})) FILTER (WHERE {{}} IS NOT NULL)",
        duck if is_readable else None, is_light=False, lift=_lift(call, by, value, where),
    )  # fmt: skip


def _lift(call: Call, by: Argument | None, value: Argument, where: str | None) -> Lift:
    if by is None:
        return call.lift(struct_of_row({"v": "{0}"}), value.sql, where=where)
    template = struct_of_row({"v": "{1}"}, {"by": "{0}"})
    return call.lift(template, by.sql, value.sql, where=where)


def struct_of_row(last: dict[str, str], first: dict[str, str] | None = None) -> str:
    """A row's place in the order of event time, ties by arrival, and its values; DuckDB's SQL."""
    fields = {**(first or {}), **TIMES, **last}
    return f"struct_pack({', '.join(f'{name} := {sql}' for name, sql in fields.items())})"


def _finished(state: Statistic, value: Argument) -> Lowered:
    duck = f'"{state.column}".v' if state.duck_merge else None
    return Lowered((state,), f"`{state.column}`.v", duck, value.type)


def by_time(way: str) -> Callable[[Call], Lowered]:
    """The value of the earliest or latest row; with IGNORE NULLS, of such a row that has one."""
    name = "first" if way == "min" else "last"

    def lower(call: Call) -> Lowered:
        value = call.arguments[0]
        where = f"{value.sql} IS NOT NULL" if call.ignores_nulls else None
        key = f"{name}_value" if call.ignores_nulls else name
        return _finished(_state(call, key, way, None, value, where), value)

    return lower


def by_argument(way: str) -> Callable[[Call], Lowered]:
    """The value of x where y is least or greatest; rows without y do not count."""

    def lower(call: Call) -> Lowered:
        value, by = call.arguments
        refuse_unstored(by.type)
        if "map<" in by.type:
            raise CannotShare(f"{call.name} by {by.type} is not shared")
        state = _state(call, f"{way}_by", way, by, value, f"{by.sql} IS NOT NULL")
        return _finished(state, value)

    return lower


def _by_time(name: str, way: str, basic: str) -> Aggregate:
    return Aggregate(
        name, Kind.DISTRIBUTIVE, by_time(way), (f"{basic}(X)",), f"{basic} X", (f"{basic}({basic} X)",)
    )  # fmt: skip


def _by(name: str, way: str) -> Aggregate:
    basic = name.upper()
    return Aggregate(
        name, Kind.DISTRIBUTIVE, by_argument(way), (f"{basic}(X, Y)",), f"{basic} X Y",
        (f"{basic}({basic} X Y)",), arity=(2, 2),
    )  # fmt: skip


PICKED = [
    *(_by_time(name, "min", "FIRST") for name in ("first", "first_value", "any_value")),
    *(_by_time(name, "max", "LAST") for name in ("last", "last_value")),
    _by("min_by", "min"),
    _by("max_by", "max"),
]
