"""Sketches: mergeable summaries of bounded size, with a stated error. Spark makes and merges them.

APPROX_COUNT_DISTINCT is a HyperLogLog sketch, APPROX_PERCENTILE a KLL sketch, APPROX_TOP_K a
Misra-Gries sketch of frequent items, all of Apache DataSketches, whose bytes its library reads
outside Spark as well (weft.results.sketches). Law: the merge of any parts' sketches keeps the error
bound of one sketch over all the rows; two splits may differ, within it.

Differs from Spark's functions of the same names, which are not mergeable in SQL (HyperLogLog++ of
the same or a larger error; Greenwald-Khanna): same meaning, another estimate. NaN is left out of
percentiles; Spark takes it for the largest number.

DuckDB merges and reads them through functions that the reading room gives it (weft_hll_union, …).
What a merge gives depends on its order, and for KLL on coins, so two ways to read one window may
differ, within the error: such windows are kept ready unless lazy answers are asked for, and answers
that are told as they change, and taken back, are not shared.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from sqlglot import exp

from weft.logical.aggregates.algebra import (
    Aggregate,
    Argument,
    Call,
    CannotShare,
    Kind,
    Lowered,
)
from weft.logical.aggregates.kinds import INTEGERS, decimal, duck_type, is_portable
from weft.logical.statistics import Statistic

Lower = Callable[[Call], Lowered]
HLL_BITS = 12
KLL_SIZE = 1000
TOP_TRACKED = 10000
HLL_ERROR = "relative standard error 1.04 / sqrt(2^lgK): 1.6 % unless a smaller one is asked for"
KLL_ERROR = (
    "rank error 2.296 / k^0.9021 at 99 % confidence: 0.45 % unless a smaller one is asked for"
)
TOP_ERROR = "count too large by at most 3.5 × rows / counters (10,000 counters unless said)"
# Types of items that are one number or text each; booleans are packed as bits, decimals by width.
READABLE_ITEMS = (
    "tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp", "string",
)  # fmt: skip
TOP_MERGE = (
    "struct_pack(sketch := weft_top_union_TYPE(list({}.sketch)),"
    " maxItemsTracked := any_value({}.maxItemsTracked), itemDataType := any_value({}.itemDataType),"
    " itemDataTypeDDL := any_value({}.itemDataTypeDDL))"
)


def _number(call: Call, argument: Argument) -> float:
    try:
        return float(argument.node.name)
    except ValueError:
        raise CannotShare(f"{call.name} with a setting that is no number is not shared") from None


def _refuse_distinct(call: Call) -> None:
    if call.is_distinct:
        raise CannotShare(f"{call.name} with DISTINCT is not shared")


def hll_bits(error: float) -> int:
    """The smallest sketch with at most this relative standard error, 2^12 buckets at least."""
    return min(21, max(HLL_BITS, math.ceil(2 * math.log2(1.04 / error))))


def approx_count_distinct(call: Call) -> Lowered:
    what, *rest = call.arguments
    error = _number(call, rest[0]) if rest else 0.05
    if not 0 < error < 1:
        raise CannotShare(f"{call.name} with an error of {error:g} is not shared")
    state = hll(call, what, hll_bits(error))
    estimate = f"coalesce(hll_sketch_estimate(`{state.column}`), 0L)"
    duck = f'weft_hll_estimate("{state.column}")'
    return Lowered((state,), estimate, duck, "bigint", is_repeatable=False)


def hll(call: Call, what: Argument, bits: int) -> Statistic:
    fold = call.fold(f"hll_sketch_agg({_hashable(call, what)}, {bits})")
    key = call.key(f"hll_{bits}", what.key)
    return Statistic(key, "binary", fold, "hll_union_agg({})", "weft_hll_union(list({}))", False)


def _hashable(call: Call, what: Argument) -> str:
    """An expression of a type that the sketch takes, distinct where the argument is."""
    if what.type in ("int", "bigint", "string", "binary"):
        return what.sql
    if what.type in ("float", "double"):  # 0.0 and -0.0 are one value
        return f"CAST({what.sql} + CAST(0 AS {what.type.upper()}) AS STRING)"
    if not is_portable(what.type):
        raise CannotShare(f"{call.name} of {what.type} is not shared")
    return f"CAST({what.sql} AS {'INT' if what.type in ('tinyint', 'smallint') else 'STRING'})"


def kll_error(size: int) -> float:
    return 2.296 / size**0.9021


def kll_size(error: float) -> int:
    """The smallest sketch whose rank error is at most this, as far as sketches go."""
    return min(65535, max(KLL_SIZE, math.ceil((2.296 / error) ** (1 / 0.9021))))


def approx_percentile(call: Call) -> Lowered:
    what, rank, *rest = call.arguments
    _refuse_distinct(call)
    size = kll_size(1 / _number(call, rest[0])) if rest else KLL_SIZE
    family, taken, back = _kll_family(call, what)
    fold = call.fold(f"kll_sketch_agg_{family}({taken}, {size})")
    key = call.key(f"kll_{size}_{family}", what.key)
    duck = f"weft_kll_merge_{family}(list({{}}))"
    state = Statistic(key, "binary", fold, f"kll_merge_agg_{family}({{}})", duck, False)
    s, is_list = f"`{state.column}`", rank.type.startswith("array")
    type_ = f"array<{what.type}>" if is_list else what.type
    ranks = f"CAST({rank.sql} AS {'ARRAY<DOUBLE>' if is_list else 'DOUBLE'})"
    value = f"kll_sketch_get_quantile_{family}({s}, {ranks})"
    value = value if back is None else f"CAST({value} AS {type_.upper()})"
    spark = f"(CASE WHEN kll_sketch_get_n_{family}({s}) > 0 THEN {value} END)"
    duck = _duck_quantile(state, family, rank, what.type)
    return Lowered((state,), spark, duck, type_, is_repeatable=False)


def _duck_quantile(state: Statistic, family: str, rank: Argument, type_: str) -> str | None:
    """The same in DuckDB, for ranks that are numbers."""
    ranks = rank.node.expressions if isinstance(rank.node, exp.Array) else [rank.node]
    if not all(isinstance(r, exp.Literal) for r in ranks):
        return None
    many = isinstance(rank.node, exp.Array)
    listed = (
        f"[{', '.join(f'{r.this}::DOUBLE' for r in ranks)}]" if many else f"{ranks[0].this}::DOUBLE"
    )
    value = f'weft_kll_quantile{"s" * many}_{family}("{state.column}", {listed})'
    return value if type_ == family else f"CAST({value} AS {duck_type(type_)}{'[]' * many})"


def _kll_family(call: Call, what: Argument) -> tuple[str, str, str | None]:
    """The kind of sketch, what it takes, and the type to go back to, if it is another one."""
    if what.type in INTEGERS:
        return "bigint", what.sql, None if what.type == "bigint" else what.type
    if what.type in ("double", "float"):
        return what.type, what.sql, None
    found = decimal(what.type)
    if found and found[0] <= 15:  # such decimals pass through doubles unharmed
        return "double", f"CAST({what.sql} AS DOUBLE)", what.type
    raise CannotShare(f"{call.name} of {what.type} is not shared")


def approx_top_k(call: Call) -> Lowered:
    what, *rest = call.arguments
    _refuse_distinct(call)
    settings = [int(_number(call, a)) for a in rest]
    k, tracked = [*settings, *(5, TOP_TRACKED)[len(settings) :]]
    fold = call.fold(f"approx_top_k_accumulate({what.sql}, {tracked})")
    type_ = (
        f"struct<sketch:binary,maxItemsTracked:int,itemDataType:{what.type},itemDataTypeDDL:string>"
    )
    merge = f"approx_top_k_combine({{}}, {tracked}) FILTER (WHERE {{}} IS NOT NULL)"
    is_readable = what.type in READABLE_ITEMS
    duck = TOP_MERGE.replace("TYPE", what.type) if is_readable else None
    state = Statistic(call.key(f"top_{tracked}", what.key), type_, fold, merge, duck, False)
    result = f"array<struct<item:{what.type},count:bigint>>"
    spark = f"coalesce(approx_top_k_estimate(`{state.column}`, {k}), CAST(array() AS {result}))"
    duck_k = f'weft_top_k_{what.type}("{state.column}".sketch, {k})' if is_readable else None
    return Lowered((state,), spark, duck_k, result, is_repeatable=False)


SKETCHES = [
    Aggregate(
        "approx_count_distinct", Kind.SKETCH, approx_count_distinct, ("HLL(X)",), "ESTIMATE(HLL X)",
        ("UNION(HLL X)",), HLL_ERROR, arity=(1, 2),
    ),
    *(
        Aggregate(
            name, Kind.SKETCH, approx_percentile, ("KLL(X)",), "QUANTILE(KLL X)", ("MERGE(KLL X)",),
            KLL_ERROR, arity=(2, 3),
        )
        for name in ("approx_percentile", "percentile_approx")
    ),
    Aggregate(
        "approx_top_k", Kind.SKETCH, approx_top_k, ("TOP(X)",), "TOP K(TOP X)", ("COMBINE(TOP X)",),
        TOP_ERROR, arity=(1, 3),
    ),
]  # fmt: skip
