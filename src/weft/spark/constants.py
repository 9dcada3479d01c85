"""What changes from batch to batch, as data.

Spark writes numbers into the code that it generates, so a plan with this batch's tick or clock in it
is compiled anew for every batch, and run cold: here a fold took nearly twice the processor time. One
row, joined to all, gives the same plan the same code (architecture §1: constants travel as small
relations).
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def with_constants(frame: DataFrame, **values: int | None) -> DataFrame:
    """Give each row some BIGINT columns that are the same for all."""
    row = pa.table({name: pa.array([value], pa.int64()) for name, value in values.items()})
    return frame.crossJoin(F.broadcast(frame.sparkSession.createDataFrame(row)))
