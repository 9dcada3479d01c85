"""Functions of Spark whose value is itself a mergeable state: sketches, bitmaps, unions of arrays.

A table: the function, and the one that merges its values. The finish is the state as it is. Over no
rows most of them give an empty state, which NULL does not stand for: a query that answers over nothing
does not share them.
"""

from __future__ import annotations

from weft.logical.aggregates.algebra import Aggregate, Call, CannotShare, Kind, Lowered
from weft.logical.statistics import Statistic

MERGES = {
    "hll_sketch_agg": "hll_union_agg",
    "hll_union_agg": "hll_union_agg",
    **{f"kll_sketch_agg_{t}": f"kll_merge_agg_{t}" for t in ("bigint", "float", "double")},
    **{f"kll_merge_agg_{t}": f"kll_merge_agg_{t}" for t in ("bigint", "float", "double")},
    "bitmap_construct_agg": "bitmap_or_agg",
    "bitmap_or_agg": "bitmap_or_agg",
    "bitmap_and_agg": "bitmap_and_agg",
    "collect_union": "collect_union",
}
KEEPS_SETTINGS = {"theta_sketch_agg": "theta_union_agg", "theta_union_agg": "theta_union_agg"}


def _state(name: str, merge: str, keeps_settings: bool) -> Aggregate:
    def lower(call: Call) -> Lowered:
        if call.is_distinct:
            raise CannotShare(f"{name} with DISTINCT is not shared")
        written = ", ".join(a.sql for a in call.arguments)
        settings = "".join(f", {a.sql}" for a in call.arguments[1:]) if keeps_settings else ""
        type_ = call.arguments[0].type if name == "collect_union" else "binary"
        one = Statistic(
            call.key(name, *(a.key for a in call.arguments)), type_,
            call.fold(f"{name}({written})"), f"{merge}({{}}{settings})", None, False,
        )  # fmt: skip
        if name == "collect_union":
            empty = f"coalesce(`{one.column}`, CAST(array() AS {type_}))"
            return Lowered((one,), empty, None, type_)
        return Lowered((one,), f"`{one.column}`", f'"{one.column}"', type_, covers_nothing=False)

    upper = name.upper()
    return Aggregate(
        name, Kind.DISTRIBUTIVE, lower, (f"{upper}(X)",), f"{upper} X",
        (f"{merge.upper()}({upper} X)",), arity=(1, 2),
    )  # fmt: skip


STATES = [
    *(_state(name, merge, False) for name, merge in MERGES.items()),
    *(_state(name, merge, True) for name, merge in KEEPS_SETTINGS.items()),
]
