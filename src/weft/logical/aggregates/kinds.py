"""What the aggregates need to know of Spark's types, from their DDL text."""

from __future__ import annotations

import re

from weft.logical.aggregates.algebra import CannotShare

INTEGERS = ("tinyint", "smallint", "int", "bigint")
FLOATS = ("float", "double")
# Ordered and compared the same by Spark and by DuckDB, NaN and all; nested types are not.
PORTABLE = frozenset(
    [*INTEGERS, *FLOATS, "string", "boolean", "date", "timestamp", "timestamp_ntz", "binary"]
)
DUCK_TYPES = {
    "tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER", "bigint": "BIGINT",
    "float": "FLOAT", "double": "DOUBLE", "string": "VARCHAR", "boolean": "BOOLEAN",
    "date": "DATE", "timestamp": "TIMESTAMPTZ", "timestamp_ntz": "TIMESTAMP", "binary": "BLOB",
}  # fmt: skip
UNSTORED = ("interval", "variant", "void", "collate", "geo", "time(")


def decimal(type_: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type."""
    found = re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", type_)
    return (int(found[1]), int(found[2])) if found else None


def is_portable(type_: str) -> bool:
    return type_ in PORTABLE or decimal(type_) is not None


def duck_type(type_: str) -> str | None:
    """DuckDB's type for the values that Spark stores under a scalar type."""
    return DUCK_TYPES.get(type_) or (type_.upper() if decimal(type_) else None)


def refuse_unstored(type_: str) -> None:
    """Refuse types that Parquet, or the reader of it, would change."""
    found = next((word for word in UNSTORED if word in type_), None)
    if found:
        raise CannotShare(f"values of type {type_} are not kept in partials")
