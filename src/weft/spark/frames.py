"""Answers as Spark DataFrames, for those who go on in Spark."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.catalog.records import QueryRecord
from weft.spark import rows as stored
from weft.spark.evaluate import Evaluator
from weft.spark.order import ordered, sort_keys
from weft.spark.rows import END, NUMBER, START, instant, quote, struct_of
from weft.spark.world import load_world


def answer_frame(engine, record: QueryRecord) -> DataFrame:
    """The current answer: the newest emitted window, or the rows valid now."""
    spark = engine.spark
    with engine.catalog.read() as view:
        world = load_world(view, engine.root, {record.id: engine.plan_of(view, record)})
    state = world.queries[record.name.lower()]
    answer = stored.settle(stored.answer_log(spark, world, state))
    if state.record.forgotten is not None:
        answer = answer.where(F.col(END) > instant(state.record.forgotten))
    if record.is_per_window:
        newest = answer.agg(F.max(F.struct(END, NUMBER)).alias("_weft_newest"))
        answer = answer.join(newest, F.struct(END, NUMBER) == F.col("_weft_newest"), "left_semi")
    answer = ordered(answer, sort_keys(record))
    columns = [F.col(quote(c.name)) for c in record.columns]
    if record.shows_window:
        columns = [F.col(START).alias("window_start"), F.col(END).alias("window_end"), *columns]
    return answer.select(*columns)


def frame_of(engine, table, record: QueryRecord) -> DataFrame:
    """An answer that was read, as a DataFrame of its declared types."""
    return engine.spark.createDataFrame(table, struct_of(record.output_columns()))


def answer_at(engine, record: QueryRecord, micros: int):
    """The answer of a standing query at an instant, as an Arrow table."""
    spark = engine.spark
    with engine.catalog.read() as view:
        plan = engine.plan_of(view, record)
        world = load_world(view, engine.root, engine.plans.load())
    answer = Evaluator(spark, world, plan, record.horizons).standing(micros)
    answer = ordered(answer, plan.order)
    return answer.select(*[F.col(quote(c.name)).cast(c.type) for c in record.columns]).toArrow()
