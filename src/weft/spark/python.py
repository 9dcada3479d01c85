"""The functions of Python aggregates in a Spark session: fold, merge and finish, on Arrow columns.

Each is a scalar function over what collect_list has gathered, so that it stands anywhere in Spark
SQL that a built-in aggregate does. Workers import the user's module by its name; where this process
finds modules goes along, since a worker starts with a path of its own. On a cluster the module must be
installed on every machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weft.logical import declared
from weft.logical.aggregates import PythonAggregate
from weft.logical.types import arrow_type

_known: WeakKeyDictionary[SparkSession, set[PythonAggregate]] = WeakKeyDictionary()


def register_aggregates(spark: SparkSession, definitions: Iterable[PythonAggregate]) -> None:
    """Give a session the functions of aggregates, each once."""
    known = _known.setdefault(spark, set())
    for definition in definitions:
        if definition not in known:
            _register(spark, definition)
            known.add(definition)


def _register(spark: SparkSession, definition: PythonAggregate) -> None:
    target, path = definition.target, tuple(map(os.path.abspath, sys.path))
    steps = {
        "fold": (_on_column(declared.fold_all, target, path), "binary"),
        "merge": (_on_column(declared.merge_all, target, path), "binary"),
        "finish": (_finish(target, path, arrow_type(definition.returns)), definition.returns),
    }
    for step, (function, type_) in steps.items():
        spark.udf.register(definition.function(step), F.arrow_udf(function, type_))


def _on_column(work: Callable, target: str, path: tuple[str, ...]) -> Callable:
    def run(column: pa.Array) -> pa.Array:
        return work(declared.instance(target, path), column)

    return run


def _finish(target: str, path: tuple[str, ...], type_: pa.DataType) -> Callable:
    def run(states: pa.Array) -> pa.Array:
        return declared.finish_all(declared.instance(target, path), states, type_)

    return run
