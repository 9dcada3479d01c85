"""Signature columns of a DataFrame: ranks and bits, computed by the JVM. Runs no job.

A rank is found in one of three ways, none of which compiles many constants into generated code:

* up to 16 constants, or a type that a double does not hold: a balanced tree of CASE comparisons;
* numbers, dates and instants: binary search in the JVM (Spark ML's Bucketizer). A double holds them
  exactly: integers, days and microseconds where the constants are below 2^53 (rounding is monotone,
  so larger values fall right), decimals of at most 15 digits;
* equality with strings: a hash lookup in the JVM (Spark ML's StringIndexerModel).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pyspark.ml.feature import Bucketizer, StringIndexerModel
from pyspark.sql import DataFrame

from weft.optimizer.atoms import Atom, Bit, Ranking
from weft.optimizer.domains import Beyond
from weft.optimizer.literals import Value

FEW = 16  # constants up to which a tree of comparisons beats a call into a search
EXACT = 2**53  # below it a double holds every integer
EXACT_DIGITS = 15  # decimals of so many digits have different doubles
INFINITY = float("inf")


def with_signature(rows: DataFrame, atoms: Sequence[Atom]) -> DataFrame:
    """Add a column for each atom: ranks as int (NULL for NULL), bits as boolean."""
    searched = [atom for atom in atoms if isinstance(atom, Ranking) and _search(atom) is not None]
    if searched:
        inputs = [f"{_search_input(ranking)} AS {_input(ranking)}" for ranking in searched]
        rows = rows.selectExpr("*", *inputs)
    for ranking in searched:
        rows = _searcher(ranking, rows.sparkSession.sparkContext.applicationId).transform(rows)
    held = [name for r in searched for name in (_input(r), _output(r))]
    texts = [f"{_column(atom, atom in searched)} AS {atom.column}" for atom in atoms]
    return rows.selectExpr("*", *texts).drop(*held) if texts else rows
