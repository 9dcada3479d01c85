"""Streams → Structured Streaming sources, all in one shape.

Whatever the source, the DataFrame has the stream's columns and five helpers: when the row arrived,
its tick and order (null where the batch decides), and, for a row that does not parse, its raw text
and the reason. Structured Streaming owns offsets, triggers and rate limits.
"""

from __future__ import annotations

from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.catalog.records import StreamRecord
from weft.errors import SourceError, did_you_mean
from weft.logical.relations import Column, StreamDefinition
from weft.spark.problems import missing_connector
from weft.spark.rows import ddl_of, quote, struct_of
from weft.storage.coerce import RAW, REASON
from weft.storage.inbox import ARRIVED, ORDER, TICK

HELPERS = (
    Column(ARRIVED, "TIMESTAMP"),
    Column(TICK, "BIGINT"),
    Column(ORDER, "BIGINT"),
    Column(RAW, "STRING"),
    Column(REASON, "STRING"),
)
OURS = {"source", "path", "format"}  # options that are Weft's, not the source's
ANY_AGE = "36500d"  # Spark would pass over files a week older than the newest it has seen


def open_source(spark: SparkSession, record: StreamRecord, inbox: Path) -> DataFrame:
    """The streaming DataFrame of a stream."""
    definition = record.definition
    try:
        if definition.source == "push":
            return _pushed(spark, definition, inbox)
        if definition.source == "files":
            return _files(spark, definition)
        return _other(spark, definition)
    except (PySparkException, Py4JJavaError) as error:  # an unknown format comes as the latter
        raise missing_connector(error, definition.source) or SourceError(
            f'stream "{definition.name}" cannot be read',
            detail=str(error).split("\n")[0],
            hint="check the options in WITH (...)",
        ) from error


def _pushed(spark: SparkSession, definition: StreamDefinition, inbox: Path) -> DataFrame:
    """The gathered pushes. A batch takes all that are ready: Spark orders files by the wall clock,
    which may jump, and what is older than the newest committed push is deleted."""
    reader = spark.readStream.schema(struct_of(definition.columns + HELPERS))
    return reader.option("maxFileAge", ANY_AGE).parquet(str(inbox))


def file_reader(reader, definition: StreamDefinition):
    """Set up a reader, streaming or batch, for the files of a stream."""
    kind = definition.options.get("format", "parquet").lower()
    options = {k: v for k, v in definition.options.items() if k not in OURS}
    if kind in ("csv", "json"):
        columns = (*definition.columns, Column(RAW, "STRING"))
        options = {"mode": "PERMISSIVE", **options, "columnNameOfCorruptRecord": RAW}
    else:
        columns = definition.columns
    return reader.format(kind).schema(struct_of(columns)).options(**options)


def _files(spark: SparkSession, definition: StreamDefinition) -> DataFrame:
    path = definition.options["path"]
    if path.startswith("/"):
        Path(path).mkdir(
            parents=True, exist_ok=True
        )  # Spark refuses a folder that is not there yet
    reader = file_reader(spark.readStream, definition)
    given = {k.lower() for k in definition.options}
    for option, value in (("maxFilesPerTrigger", "1000"), ("maxFileAge", ANY_AGE)):
        if option.lower() not in given:
            reader = reader.option(option, value)
    return with_helpers(reader.load(definition.options["path"]))


def _other(spark: SparkSession, definition: StreamDefinition) -> DataFrame:
    reader = spark.readStream.format(definition.source)
    options = {k: v for k, v in definition.options.items() if k not in ("source", "format")}
    frame = reader.options(**options).load()
    if definition.source in ("kafka", "socket"):
        return with_helpers(_decode(frame, definition))
    return with_helpers(_by_name(frame, definition))


def _decode(frame: DataFrame, definition: StreamDefinition) -> DataFrame:
    """Kafka's and a socket's payload: JSON or CSV text, or the source's own columns (raw)."""
    kind = definition.options.get("format", "json").lower()
    if kind in ("raw", "text"):
        return _by_name(frame, definition)
    schema = ddl_of((*definition.columns, Column(RAW, "STRING")))
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": RAW}
    text = F.col("value").cast("string")
    parsed = (
        F.from_json(text, schema, options) if kind == "json" else F.from_csv(text, schema, options)
    )
    frame = frame.select(parsed.alias("_weft_row"))
    names = [*definition.relation().column_names(), RAW]
    return frame.select(*[F.col(f"_weft_row.{quote(name)}").alias(name) for name in names])


def _by_name(frame: DataFrame, definition: StreamDefinition) -> DataFrame:
    found = {name.lower(): name for name in frame.columns}
    columns = []
    for column in definition.columns:
        if column.name.lower() not in found:
            raise SourceError(
                f'source "{definition.source}" has no column "{column.name}"',
                detail="its columns are " + ", ".join(frame.columns),
                hint=did_you_mean(column.name, frame.columns)
                or "name the columns as the source does",
                code="WEFT_UNKNOWN_COLUMN",
            )
        value = F.col(quote(found[column.name.lower()]))
        columns.append(value.cast(column.type).alias(column.name))
    return frame.select(*columns)


def with_helpers(frame: DataFrame) -> DataFrame:
    for helper in HELPERS:
        if helper.name not in frame.columns:
            frame = frame.withColumn(helper.name, F.lit(None).cast(helper.type))
    return frame
