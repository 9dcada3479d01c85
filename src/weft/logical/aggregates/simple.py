"""COUNT, SUM, AVG, MIN, MAX and their kin: each statistic is one number, merged by SQL itself.

Laws: COUNT and SUM merge by addition, MIN, MAX, AND, OR and XOR by themselves. AVG is SUM / COUNT
of the values that are not NULL, with the division and the result type of Spark's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from weft.logical.aggregates.algebra import Aggregate, Argument, Call, CannotShare, Kind, Lowered
from weft.logical.aggregates.averages import average
from weft.logical.aggregates.kinds import (
    FLOATS,
    INTEGERS,
    decimal,
    duck_type,
    is_portable,
    refuse_unstored,
)
from weft.logical.aggregates.sets import average_of_set, count_of_set, sum_of_set
from weft.logical.statistics import Statistic

Lower = Callable[[Call], Lowered]


def counted(call: Call, *arguments: Argument) -> Statistic:
    """How many rows have a value in every one of the arguments."""
    shown = [a for a in arguments if not _is_never_null(a.node)]
    what = [a.key for a in shown] or ["*"]
    inside = ", ".join(a.sql for a in shown) or "*"
    tests = " AND ".join(f"{{{i}}} IS NOT NULL" for i in range(len(shown)))
    one = f"(CASE WHEN {tests} THEN 1 ELSE 0 END)::BIGINT" if tests else "1::BIGINT"
    return Statistic(
        call.key("count", *what), "bigint", call.fold(f"count({inside})"), "sum({})",
        "CAST(sum({}) AS BIGINT)", lift=call.lift(one, *(a.sql for a in shown)),
    )  # fmt: skip


def _is_never_null(node: exp.Expression) -> bool:
    return isinstance(node, exp.Star | exp.Boolean | exp.Literal)


def summed(call: Call, argument: Argument) -> Statistic:
    """The sum in the type that Spark sums to: BIGINT, DOUBLE, or a decimal of ten more digits."""
    type_ = sum_type(argument.type)
    fold = call.fold(f"sum({argument.sql})")
    if decimal(type_):
        merge = duck = f"CAST(sum({{}}) AS {type_.upper()})"
    else:
        merge, duck = "sum({})", "CAST(sum({}) AS BIGINT)" if type_ == "bigint" else "sum({})"
    lift = call.lift(f"CAST({{0}} AS {duck_type(type_)})", argument.sql)
    return Statistic(call.key("sum", argument.key), type_, fold, merge, duck, lift=lift)


def halves(call: Call, argument: Argument) -> Statistic:
    """A sum of BIGINTs as two, of their upper and of their lower 32 bits.

    Neither half overflows below 2^31 rows, so one query's overflow is an error of its own answer,
    raised by its finish, and not of the fold that all queries share.
    """
    high = call.fold(f"sum(shiftright({argument.sql}, 32))")
    low = call.fold(f"sum({argument.sql} & 4294967295L)")
    return Statistic(
        call.key("halves", argument.key), "struct<high:bigint,low:bigint>",
        f"named_struct('high', {high}, 'low', {low})",
        "named_struct('high', sum({}.high), 'low', sum({}.low))",
        "struct_pack(high := CAST(sum({}.high) AS BIGINT), low := CAST(sum({}.low) AS BIGINT))",
        lift=call.lift("struct_pack(high := {0} >> 32, low := {0} & 4294967295)", argument.sql),
    )  # fmt: skip


def _joined(state: Statistic) -> Lowered:
    s, d = f"`{state.column}`", f'"{state.column}"'
    spark = f"CAST(CAST({s}.high AS DECIMAL(25,0)) * 4294967296BD + {s}.low AS BIGINT)"
    duck = f"CAST(CAST({d}.high AS HUGEINT) * 4294967296 + {d}.low AS BIGINT)"
    return Lowered((state,), spark, duck, "bigint")


def sum_type(type_: str) -> str:
    if type_ in INTEGERS:
        return "bigint"
    if type_ in FLOATS or type_ == "string":
        return "double"
    found = decimal(type_)
    if found is None:
        raise CannotShare(f"a sum of {type_} is not kept in partials")
    return f"decimal({min(38, found[0] + 10)},{found[1]})"


def count(call: Call) -> Lowered:
    if call.is_distinct:
        return count_of_set(call)
    one = counted(call, *call.arguments)
    return Lowered((one,), f"coalesce(`{one.column}`, 0L)", _or_zero(one), "bigint")


def count_if(call: Call) -> Lowered:
    """How many rows satisfy the argument: COUNT(*) under one more filter."""
    if call.is_distinct:
        raise CannotShare("count_if with DISTINCT is not shared")
    (what,) = call.arguments
    key = f"{call.condition.key} and {what.key}" if call.condition else what.key
    fold = call.fold("count(*)", what.sql)
    one = Statistic(
        f"count(*) filter({key})", "bigint", fold, "sum({})", "CAST(sum({}) AS BIGINT)",
        lift=call.lift("1::BIGINT", where=what.sql),
    )  # fmt: skip
    return Lowered((one,), f"coalesce(`{one.column}`, 0L)", _or_zero(one), "bigint")


def _or_zero(one: Statistic) -> str:
    return f'coalesce("{one.column}", 0::BIGINT)'


def sum_(call: Call) -> Lowered:
    if call.is_distinct:
        return sum_of_set(call, sum_type(call.arguments[0].type))
    (what,) = call.arguments
    if what.type == "bigint":
        return _joined(halves(call, what))
    return _itself(summed(call, what), _is_safe(what.type))


def try_sum(call: Call) -> Lowered:
    """SUM, and NULL where its answer overflows."""
    (what,) = call.arguments
    if call.is_distinct or not (what.type in INTEGERS or what.type in FLOATS):
        raise CannotShare(f"try_sum of {'DISTINCT ' * call.is_distinct}{what.type} is not shared")
    found = sum_(call)
    is_wide = what.type == "bigint"
    duck = found.duck.replace("CAST(CAST(", "TRY_CAST(CAST(", 1) if is_wide else found.duck
    spark = found.spark.replace("CAST(CAST(", "try_cast(CAST(", 1) if is_wide else found.spark
    return replace(found, spark=spark, duck=duck)


def try_avg(call: Call) -> Lowered:
    """AVG of numbers that never overflow as doubles is AVG."""
    if call.is_distinct or call.arguments[0].type not in (*INTEGERS, *FLOATS):
        raise CannotShare(f"try_avg of {call.arguments[0].type} is not shared")
    return avg(call)


def _is_safe(type_: str) -> bool:
    """Whether a sum cannot overflow, nor its argument fail to be a number."""
    found = decimal(type_)
    return type_ != "string" and (found is None or found[0] <= 28)


def avg(call: Call) -> Lowered:
    if call.is_distinct:
        return average_of_set(call, sum_type(call.arguments[0].type))
    (what,) = call.arguments
    many = counted(call, what)
    if what.type == "bigint":  # Spark sums these as doubles, so that nothing overflows
        as_double = f"CAST({what.sql} AS DOUBLE)"
        total = Statistic(
            call.key("sum_double", what.key), "double", call.fold(f"sum({as_double})"), "sum({})",
            "sum({})", lift=call.lift("{0}", as_double),
        )  # fmt: skip
    else:
        total = summed(call, what)
    return replace(average(total, many, what.type), is_total=_is_safe(what.type))


def _itself(one: Statistic, is_total: bool = True) -> Lowered:
    return Lowered((one,), f"`{one.column}`", f'"{one.column}"', one.type, is_total)


def extreme(name: str) -> Lower:
    """MIN or MAX; DISTINCT changes nothing. bool_and is MIN of booleans and bool_or is MAX."""

    def lower(call: Call) -> Lowered:
        (what,) = call.arguments
        refuse_unstored(what.type)
        fold = call.fold(f"{name}({what.sql})")
        duck = f"{name}({{}})" if is_portable(what.type) else None
        is_light = what.type not in ("string", "binary") and is_portable(what.type)
        key, lift = call.key(name, what.key), call.lift("{0}", what.sql)
        return _itself(Statistic(key, what.type, fold, f"{name}({{}})", duck, is_light, lift))

    return lower


def bitwise(name: str) -> Lower:
    def lower(call: Call) -> Lowered:
        (what,) = call.arguments
        if what.type not in INTEGERS:
            raise CannotShare(f"{name} of {what.type} is not shared")
        if call.is_distinct and name == "bit_xor":
            raise CannotShare("bit_xor with DISTINCT is not shared")
        merge = f"{name}({{}})"
        fold = call.fold(f"{name}({what.sql})")
        key, lift = call.key(name, what.key), call.lift("{0}", what.sql)
        return _itself(Statistic(key, what.type, fold, merge, merge, lift=lift))

    return lower


def _distributive(name: str, lower: Lower, basic: str, merge: str, **more) -> Aggregate:
    rule = basic.replace("(", " ").replace(")", "")
    return Aggregate(name, Kind.DISTRIBUTIVE, lower, (basic,), rule, (merge,), **more)


def _named(names: tuple[str, ...], lower: Lower, basic: str, merge: str) -> list[Aggregate]:
    return [_distributive(name, lower, basic, merge) for name in names]


SIMPLE = [
    _distributive("count", count, "COUNT(W)", "SUM(COUNT W)", arity=(1, 9)),
    _distributive("count_if", count_if, "COUNT(W)", "SUM(COUNT W)"),
    _distributive("sum", sum_, "SUM(X)", "SUM(SUM X)"),
    _distributive("try_sum", try_sum, "SUM(X)", "SUM(SUM X)"),
    *(
        Aggregate(
            name, Kind.ALGEBRAIC, lower, ("SUM(X)", "COUNT(X)"), "SUM X / COUNT X",
            ("SUM(SUM X)", "SUM(COUNT X)"),
        )
        for name, lower in (("avg", avg), ("mean", avg), ("try_avg", try_avg))
    ),
    _distributive("min", extreme("min"), "MIN(X)", "MIN(MIN X)"),
    _distributive("max", extreme("max"), "MAX(X)", "MAX(MAX X)"),
    *_named(("bool_and", "every"), extreme("min"), "MIN(X)", "MIN(MIN X)"),
    *_named(("bool_or", "some", "any"), extreme("max"), "MAX(X)", "MAX(MAX X)"),
    *(
        _distributive(f"bit_{n}", bitwise(f"bit_{n}"), f"BIT_{n.upper()}(X)",
                      f"BIT_{n.upper()}(BIT_{n.upper()} X)")
        for n in ("and", "or", "xor")
    ),
]  # fmt: skip
