"""SKEWNESS and KURTOSIS: central moments up to the fourth, merged by Chan's formulae as extended.

The state is (n, avg, m2, m3, m4) with m_k = Σ(x − avg)^k; see moments.py for the first of them.
Source: Pébay, "Formulas for robust, one-pass parallel computation of covariances and arbitrary-order
statistical moments" (2008), as in Spark's CentralMomentAgg. The fold takes m3 and m4 back from
Spark's own skewness and kurtosis, which are NULL where m2 = 0, and then so are all higher moments 0.
"""

from __future__ import annotations

from weft.logical.aggregates.algebra import Aggregate, Call, Kind, Lowered
from weft.logical.aggregates.moments import (
    APART,
    ONE_MERGED,
    finished,
    lifted,
    merge_in_duck,
    merge_in_spark,
    require_number,
)
from weft.logical.statistics import Statistic

FOUR = "struct<n:bigint,avg:double,m2:double,m3:double,m4:double>"
D = "(b.avg - a.avg)"
A, B = "CAST(a.n AS DOUBLE)", "CAST(b.n AS DOUBLE)"
FOUR_MERGED = {
    **ONE_MERGED,
    "m3": f"a.m3 + b.m3 + {D} * {D} * {D} * {A} * {B} * ({A} - {B}) / {{n}} / {{n}}"
    f" + 3 * {D} * ({A} * b.m2 - {B} * a.m2) / {{n}}",
    "m4": f"a.m4 + b.m4 + {D} * {D} * {D} * {D} * {A} * {B} * ({A} * {A} - {A} * {B} + {B} * {B})"
    f" / {{n}} / {{n}} / {{n}} + 6 * {D} * {D} * ({A} * {A} * b.m2 + {B} * {B} * a.m2) / {{n}} / {{n}}"
    f" + 4 * {D} * ({A} * b.m3 - {B} * a.m3) / {{n}}",
}


def state_of_four(call: Call) -> Statistic:
    (what,) = call.arguments
    require_number(call, what)
    x = f"CAST({what.sql} AS DOUBLE)"
    n, m2 = call.fold(f"count({x})"), call.fold(f"regr_sxx({x}, {x})")
    skewness, kurtosis = call.fold(f"skewness({x})"), call.fold(f"kurtosis({x})")
    fields = (
        f"'n', {n}, 'avg', {call.fold(f'avg({x})')}, 'm2', {m2},"
        f" 'm3', coalesce({skewness} * sqrt({m2} * {m2} * {m2} / {n}), 0D),"
        f" 'm4', coalesce(({kurtosis} + 3D) * {m2} * {m2} / {n}, 0D)"
    )
    return Statistic(
        call.key("moments4", what.key), FOUR, f"CASE WHEN {n} > 0 THEN named_struct({fields}) END",
        merge_in_spark(FOUR, FOUR_MERGED), merge_in_duck(FOUR_MERGED),
        lift=call.lift(lifted({"avg": "{0}", "m2": APART, "m3": APART, "m4": APART}, "{0}"), x),
    )  # fmt: skip


def _of_four(name: str, finish: str, rule: str) -> Aggregate:
    def lower(call: Call) -> Lowered:
        return finished(state_of_four(call), finish)

    return Aggregate(
        name, Kind.ALGEBRAIC, lower, ("MOMENTS4(X)",), rule, ("CHAN(MOMENTS4 X)",)
    )  # fmt: skip


HIGHER = [
    _of_four(
        "skewness",
        "CASE WHEN {0}.m2 <> 0 THEN sqrt({0}.n) * {0}.m3 / sqrt({0}.m2 * {0}.m2 * {0}.m2) END",
        "SQRT(N) * M3 / SQRT(M2 * M2 * M2)",
    ),
    _of_four(
        "kurtosis",
        "CASE WHEN {0}.m2 <> 0 THEN {0}.n * {0}.m4 / ({0}.m2 * {0}.m2) - 3 END",
        "N * M4 / (M2 * M2) - 3",
    ),
]
