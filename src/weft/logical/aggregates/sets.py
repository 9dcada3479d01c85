"""DISTINCT and collections: the state is the set of values, or the list of them in order.

Law: the set of all rows is the union of the sets of any parts, a list sorted by event time and
arrival is the merge of its parts' lists. The state grows with the number of distinct values of a
group (of rows, for lists): exact, but not bounded, so a sketch is the better choice for many values.
"""

from __future__ import annotations

from weft.logical.aggregates.algebra import Aggregate, Argument, Call, CannotShare, Kind, Lowered
from weft.logical.aggregates.averages import (
    average_type,
    divided_decimal,
    duck_divided_decimal,
)
from weft.logical.aggregates.kinds import FLOATS, decimal, duck_type, is_portable, refuse_unstored
from weft.logical.aggregates.picked import TIME_TYPES, TIMES, struct_of_row
from weft.logical.statistics import Statistic

SET_MERGE = "collect_union({})"
DUCK_SET_MERGE = "list_distinct(flatten(list({})))"


def _plain(what: Argument) -> str:
    """0.0 and -0.0 are one value to DISTINCT: adding zero makes them so."""
    if what.type in FLOATS:
        return f"({what.sql} + CAST(0 AS {what.type.upper()}))"
    if not is_portable(what.type):
        raise CannotShare(f"a set of {what.type} is not kept in partials")
    return what.sql


def set_of(call: Call, *arguments: Argument) -> Statistic:
    """The distinct values; of several arguments, the distinct rows in which none is NULL."""
    key = call.key("set", *(a.key for a in arguments))
    if len(arguments) == 1:
        fold = call.fold(f"collect_set({_plain(arguments[0])})")
        type_ = f"array<{arguments[0].type}>"
    else:
        fields = ", ".join(f"'v{i}', {_plain(a)}" for i, a in enumerate(arguments))
        where = " AND ".join(f"{a.sql} IS NOT NULL" for a in arguments)
        fold = call.fold(f"collect_set(named_struct({fields}))", where)
        type_ = f"array<struct<{','.join(f'v{i}:{a.type}' for i, a in enumerate(arguments))}>>"
    lift = call.lift(_set_of_one(len(arguments)), *map(_plain, arguments))
    return Statistic(key, type_, fold, SET_MERGE, DUCK_SET_MERGE, is_light=False, lift=lift)


def _set_of_one(count: int) -> str:
    """The set of one row, in DuckDB's SQL."""
    fields = ", ".join(f"v{i} := {{{i}}}" for i in range(count))
    value = "{0}" if count == 1 else f"struct_pack({fields})"
    tests = " AND ".join(f"{{{i}}} IS NOT NULL" for i in range(count))
    return f"(CASE WHEN {tests} THEN [{value}] ELSE [] END)"


def count_of_set(call: Call) -> Lowered:
    state = set_of(call, *call.arguments)
    spark = f"CAST(coalesce(size(`{state.column}`), 0) AS BIGINT)"
    return Lowered((state,), spark, f'coalesce(len("{state.column}"), 0::BIGINT)', "bigint")


def sum_of_set(call: Call, type_: str) -> Lowered:
    (what,) = call.arguments
    state = set_of(call, what)
    return Lowered((state,), _sum(state, type_), _duck_sum(state, type_), type_)


def _sum(state: Statistic, type_: str) -> str:
    s, zero = f"`{state.column}`", f"CAST(0 AS {type_.upper()})"
    total = f"aggregate({s}, {zero}, (a, b) -> CAST(a + b AS {type_.upper()}))"
    return f"(CASE WHEN size({s}) > 0 THEN {total} END)"


def _duck_sum(state: Statistic, type_: str) -> str:
    return f'CAST(list_sum("{state.column}") AS {duck_type(type_)})'


def average_of_set(call: Call, type_: str) -> Lowered:
    (what,) = call.arguments
    state = set_of(call, what)
    found = decimal(what.type)
    spark_sum, duck_sum = _sum(state, type_), _duck_sum(state, type_)
    n, duck_n = f"CAST(size(`{state.column}`) AS BIGINT)", f'len("{state.column}")'
    if found:
        spark = divided_decimal(spark_sum, n, *found)
        duck = duck_divided_decimal(duck_sum, duck_n, *found)
        return Lowered((state,), spark, duck, average_type(*found))
    spark = f"(CAST({spark_sum} AS DOUBLE) / nullif({n}, 0L))"
    return Lowered((state,), spark, f"(CAST({duck_sum} AS DOUBLE) / nullif({duck_n}, 0))", "double")


def collect_set(call: Call) -> Lowered:
    """The set itself, sorted: Spark leaves the order open."""
    (what,) = call.arguments
    state = set_of(call, what)
    type_ = f"array<{what.type}>"
    spark = f"coalesce(sort_array(`{state.column}`), CAST(array() AS {type_.upper()}))"
    duck = f'coalesce(list_sort("{state.column}"), CAST([] AS {duck_type(what.type)}[]))'
    return Lowered((state,), spark, duck, type_)


def list_of(call: Call, what: Argument) -> Statistic:
    refuse_unstored(what.type)
    fields = ", ".join(f"'{n}', {sql}" for n, sql in {**TIMES, "v": what.sql}.items())
    test = f"{what.sql} IS NOT NULL"
    fold = call.fold(f"collect_list(named_struct({fields}))", test)
    type_ = f"array<struct<{TIME_TYPES},v:{what.type}>>"
    return Statistic(
        call.key("list", what.key), type_, fold, "flatten(collect_list({}))", "flatten(list({}))",
        is_light=False, lift=call.lift(f"[{struct_of_row({'v': '{0}'})}]", what.sql, where=test),
    )  # fmt: skip


def collect_list(call: Call) -> Lowered:
    """The values in order of event time, ties by arrival: one of the orders that Spark may give."""
    if call.is_distinct:
        return collect_set(call)
    (what,) = call.arguments
    state = list_of(call, what)
    type_ = f"array<{what.type}>"
    spark = f"coalesce({in_order(state)}, CAST(array() AS {type_.upper()}))"
    duck = None
    if is_portable(what.type):
        ordered = f'list_transform(list_sort("{state.column}"), lambda e: e.v)'
        duck = f"coalesce({ordered}, CAST([] AS {duck_type(what.type)}[]))"
    return Lowered((state,), spark, duck, type_)


def in_order(state: Statistic) -> str:
    before = "struct(l.at, l.tick, l.ord) < struct(r.at, r.tick, r.ord)"
    after = "struct(l.at, l.tick, l.ord) > struct(r.at, r.tick, r.ord)"
    compare = f"(l, r) -> CASE WHEN {before} THEN -1 WHEN {after} THEN 1 ELSE 0 END"
    return f"transform(array_sort(`{state.column}`, {compare}), e -> e.v)"


def listagg(call: Call) -> Lowered:
    """The texts in order of event time, joined; NULL when there are none."""
    what, *rest = call.arguments
    if call.is_distinct or what.type != "string":
        raise CannotShare(
            f"{call.name} of {'DISTINCT ' * call.is_distinct}{what.type} is not shared"
        )
    if rest and not rest[0].node.is_string:
        raise CannotShare(f"{call.name} with a delimiter that is no text is not shared")
    state = list_of(call, what)
    glue = rest[0].sql if rest else "''"
    joined = f"array_join({in_order(state)}, {glue})"
    spark = f"(CASE WHEN size(`{state.column}`) > 0 THEN {joined} END)"
    return Lowered((state,), spark, None, "string")


SETS = [
    Aggregate(
        "collect_set", Kind.ALGEBRAIC, collect_set, ("SET(X)",), "SORTED(SET X)", ("UNION(SET X)",)
    ),
    *(
        Aggregate(name, Kind.ALGEBRAIC, collect_list, ("LIST(X)",), "IN TIME(LIST X)",
                  ("CONCAT(LIST X)",))
        for name in ("collect_list", "array_agg")
    ),
    *(
        Aggregate(name, Kind.ALGEBRAIC, listagg, ("LIST(X)",), "JOIN(IN TIME(LIST X))",
                  ("CONCAT(LIST X)",), arity=(1, 2))
        for name in ("listagg", "string_agg")
    ),
]  # fmt: skip
