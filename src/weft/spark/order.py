"""ORDER BY, LIMIT and OFFSET of answers."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window as Over

from weft.catalog.records import QueryRecord
from weft.plan.order import SortKey
from weft.spark.rows import END, NUMBER, START, quote

RANK = "_weft_rn"


def sort_keys(record: QueryRecord) -> tuple[SortKey, ...]:
    """How a registered query's answer is sorted."""
    return tuple(SortKey(*key[:3]) for key in record.order)


def sort_columns(order: tuple[SortKey, ...]) -> list[F.Column]:
    found = []
    for key in order:
        column = F.col(quote(key.column))
        ways = {
            (False, True): column.asc_nulls_first,
            (False, False): column.asc_nulls_last,
            (True, True): column.desc_nulls_first,
            (True, False): column.desc_nulls_last,
        }
        found.append(ways[key.is_descending, key.is_nulls_first]())
    return found


def ordered(answer: DataFrame, order: tuple[SortKey, ...]) -> DataFrame:
    return answer.orderBy(*sort_columns(order)) if order else answer


def limited(
    answer: DataFrame, order: tuple[SortKey, ...], limit: int | None, offset: int
) -> DataFrame:
    """ORDER BY … LIMIT … OFFSET, for each window."""
    if limit is None and not offset:
        return answer
    each = Over.partitionBy(START, END, NUMBER).orderBy(*(sort_columns(order) or [F.lit(1)]))
    answer = answer.withColumn(RANK, F.row_number().over(each)).where(F.col(RANK) > offset)
    if limit is not None:
        answer = answer.where(F.col(RANK) <= offset + limit)
    return answer.drop(RANK)


def sliced(answer: DataFrame, limit: int | None, offset: int) -> DataFrame:
    if offset:
        answer = answer.offset(offset)
    return answer if limit is None else answer.limit(limit)
