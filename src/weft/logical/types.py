"""Spark SQL types, their Arrow counterparts, and back."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.errors import TypeProblem
from weft.logical.relations import Column

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_schema(columns: tuple[Column, ...]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(column.name, arrow_type(column.type)) for column in columns])


@lru_cache(maxsize=1024)
def arrow_type(spark_type: str) -> pa.DataType:
    """The Arrow type of a Spark SQL type: instants are microseconds in UTC."""
    return _arrow(exp.DataType.build(spark_type, dialect="spark"), spark_type)


def _arrow(node: exp.DataType, text: str) -> pa.DataType:
    import pyarrow as pa

    kind = node.this
    types = exp.DataType.Type
    if kind in (types.ARRAY, types.LIST):
        return pa.list_(_arrow(node.expressions[0], text))
    if kind is types.MAP:
        return pa.map_(*(_arrow(child, text) for child in node.expressions))
    if kind is types.STRUCT:
        return pa.struct([(d.name, _arrow(d.args["kind"], text)) for d in node.expressions])
    if kind is types.DECIMAL:
        sizes = [int(p.this.this) for p in node.expressions]
        return pa.decimal128(*(sizes or [10, 0]))
    name = _SCALARS.get(kind.name)
    if name is None and kind.name == "INTERVAL":
        return pa.duration("us")
    if name is None:
        raise TypeProblem(f"columns of type {text} are not supported", hint="cast it to STRING")
    return pa.timestamp("us", tz="UTC") if name == "timestamptz" else _make(name)


def _make(name: str) -> pa.DataType:
    import pyarrow as pa

    return pa.timestamp("us") if name == "timestamp" else getattr(pa, name)()


_SCALARS = {
    "BOOLEAN": "bool_",
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INT": "int32",
    "BIGINT": "int64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "TEXT": "string",
    "VARCHAR": "string",
    "CHAR": "string",
    "BINARY": "binary",
    "VARBINARY": "binary",
    "DATE": "date32",
    "TIMESTAMP": "timestamptz",
    "TIMESTAMPTZ": "timestamptz",
    "TIMESTAMPLTZ": "timestamptz",
    "TIMESTAMPNTZ": "timestamp",
    "NULL": "null",
}
