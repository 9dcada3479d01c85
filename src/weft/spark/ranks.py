"""Ranks in Spark: a tree of comparisons, a binary search or a hash lookup, all in the JVM.

Constants are compiled into generated code only where they are few:

* **tree**: balanced CASE comparisons. Up to FEW constants, and for what the others cannot hold.
* **search**: numbers, dates and instants, through Spark ML's Bucketizer. Exact because a double
  holds them in order: integers, days and microseconds where constants are below 2^53 (beyond it
  rounding is monotone, so values still fall on the right side), decimals of at most 15 digits. NaN,
  infinity and -0.0, which Java orders below 0.0, are dealt with around it.
* **lookup**: equality with strings, through Spark ML's StringIndexerModel, a hash map.

CPU seconds for 5 million rows, the sum of the ranks included (Spark 4.3, a busy machine; 0.3
without ranks, 0.6 for the length of the string):

    constants                      10     60    255   4,000
    INT, tree                    0.31   0.30   2.08       -
    INT, search                  0.34   0.22   0.26    0.53
    INT = points, search         0.28   0.26   0.22    0.56
    DOUBLE, search               0.28   0.23   0.32    0.70
    STRING = points, tree        0.41   2.90   3.79       -
    STRING = points, lookup      0.66   0.58   0.66    0.89
    STRING ranges, tree          0.38   0.48   3.21   (4.66 for a tenth of the rows)

A tree falls off where its method passes 8,000 bytes, which HotSpot does not compile. Tried and
left: array_binary_search takes time in proportion to the array (17 s at 4,000), and so do a literal
map and CASE x WHEN … (fifty times the lookup at 255 strings); a broadcast join is about as fast as
the lookup, but runs a job.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from weft.optimizer.atoms import Ranking
from weft.optimizer.domains import Beyond, Decimals
from weft.optimizer.literals import Value

FEW = 16
EXACT = 2**53
EXACT_DIGITS = 15
CACHED = 1024  # rankings whose texts and transformers are kept from batch to batch
AS_DOUBLE = {
    "double": "({}) + 0.0D",  # -0.0 + 0.0 is 0.0
    "date": "CAST(unix_date({}) AS DOUBLE)",
    "timestamp": "CAST(unix_micros({}) AS DOUBLE)",
    "timestamp_ntz": "CAST(unix_micros(CAST({} AS TIMESTAMP)) AS DOUBLE)",  # the session is in UTC
}


@lru_cache(maxsize=CACHED)
def is_searched(ranking: Ranking) -> bool:
    """Whether a transformer of Spark ML finds the rank; otherwise it is SQL alone."""
    return len(ranking.cuts) > FEW and (_is_lookup(ranking) or _fits_double(ranking))


@lru_cache(maxsize=CACHED)
def input_sql(ranking: Ranking) -> str:
    """What is searched for: the expression, as a double unless it is looked up as a string."""
    if not is_searched(ranking) or _is_lookup(ranking):
        return ranking.expression
    return AS_DOUBLE.get(ranking.type, "CAST({} AS DOUBLE)").format(ranking.expression)


@lru_cache(maxsize=CACHED)
def searcher(ranking: Ranking, value: str, found: str, application: str):
    """The transformer from column `value` to column `found`; made once per Spark application."""
    from pyspark.ml.feature import Bucketizer, StringIndexerModel  # takes a second to import

    if _is_lookup(ranking):
        return StringIndexerModel.from_labels(
            list(ranking.cuts), inputCol=value, outputCol=found, handleInvalid="keep"
        )
    finite = [float(cut) for cut in search_cuts(ranking) if math.isfinite(cut)]
    splits = [-math.inf, *finite, math.inf]
    return Bucketizer(splits=splits, inputCol=value, outputCol=found, handleInvalid="keep")


@lru_cache(maxsize=CACHED)
def rank_sql(ranking: Ranking, value: str, found: str) -> str:
    """The rank, from the column of values and, if searched, the column that the search left."""
    if not is_searched(ranking):
        return f"CASE WHEN {value} IS NOT NULL THEN {_tree(ranking, value)} END"
    if _is_lookup(ranking):
        rank = f"IF({found} = {len(ranking.cuts)}, 0, CAST({found} AS INT) + 1)"
    elif ranking.is_points:
        ranks = ",".join(map(str, _points_by_rank(ranking)))
        rank = f"CAST(split('{ranks}', ',') AS ARRAY<INT>)[{_searched(ranking, value, found)}]"
    else:
        rank = _searched(ranking, value, found)
    return f"CASE WHEN {value} IS NOT NULL THEN {rank} END"


def search_cuts(ranking: Ranking) -> list[Value]:
    """The cuts to search among: a point p is what lies from p up to the next value."""
    if not ranking.is_points:
        return list(ranking.cuts)
    domain = ranking.domain
    cuts = {domain.order(cut): cut for cut in ranking.cuts}
    after = [domain.above(cut) for cut in ranking.cuts]
    cuts |= {domain.order(cut): cut for cut in after if cut is not Beyond.TOP}
    return [cut for _, cut in sorted(cuts.items())]


def _points_by_rank(ranking: Ranking) -> list[int]:
    """For each rank among the search cuts, the point that it is, or 0."""
    numbers = ranking.positions
    return [0, *(numbers.get(ranking.domain.order(cut), 0) for cut in search_cuts(ranking))]


def _searched(ranking: Ranking, value: str, found: str) -> str:
    """How many cuts are at most the value; Bucketizer is not asked about infinity and NaN."""
    if ranking.type != "double":
        return f"CAST({found} AS INT)"
    cuts = search_cuts(ranking)
    numbers = sum(not math.isnan(cut) for cut in cuts)
    infinity = f"WHEN {value} = CAST('Infinity' AS DOUBLE) THEN {numbers}"
    return f"CASE WHEN isnan({value}) THEN {len(cuts)} {infinity} ELSE CAST({found} AS INT) END"


def _is_lookup(ranking: Ranking) -> bool:
    return ranking.is_points and ranking.type == "string"


def _fits_double(ranking: Ranking) -> bool:
    if ranking.type == "string":
        return False
    if ranking.type == "double":
        return True
    if isinstance(ranking.domain, Decimals):
        return ranking.domain.precision <= EXACT_DIGITS
    return all(abs(cut) < EXACT for cut in search_cuts(ranking))


def _tree(ranking: Ranking, value: str) -> str:
    literals = [ranking.domain.literal(cut) for cut in ranking.cuts]
    return _branch(value, literals, 0, len(literals), ranking.is_points)


def _branch(value: str, literals: Sequence[str], low: int, high: int, is_points: bool) -> str:
    """How many of the literals are at most the value, known to be in low..high."""
    if low == high:
        if not is_points or low == 0:
            return str(low)
        return f"IF({value} = {literals[low - 1]}, {low}, 0)"
    middle = (low + high) // 2
    above = _branch(value, literals, middle + 1, high, is_points)
    below = _branch(value, literals, low, middle, is_points)
    return f"IF({value} >= {literals[middle]}, {above}, {below})"
