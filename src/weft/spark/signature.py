"""Signature columns of a DataFrame: the ranks and bits of its rows. Runs no job.

Expressions are evaluated once per row, into columns that are dropped again; see weft.spark.ranks
for how ranks are found. Bits are plain boolean expressions. Between 30 and 60 of them the generated
method passes 8,000 bytes, which HotSpot never compiles; with spark.sql.codegen.hugeMethodLimit =
8000 Spark notices and generates many small methods instead. CPU seconds for 300,000 rows, bits of
the form `s LIKE '%1%' OR a < 1000`, after warming up:

    bits                           10     30     60     95    300   1,000
    Spark's default limit         0.3    0.4    2.5    4.0    2.8       -
    limit of 8,000                0.3    0.3    0.8    1.0    2.8      15

Above 100 columns Spark splits by itself, and the cost is some 30 to 50 ns for each row and bit. The
first run after a change of 1,000 bits takes some 40 s more, to compile and to warm up. Tried and
left: evaluating bits without generated code (inside `transform(array(…), x -> x)`) is five times as
slow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import DataFrame

from weft.logical.statistics import digest
from weft.optimizer.atoms import Atom, Bit, Ranking
from weft.spark.ranks import input_sql, is_searched, rank_sql, searcher

NAME = re.compile(r"\w+|`[^`]+`")


def with_signature(rows: DataFrame, atoms: Sequence[Atom]) -> DataFrame:
    """Add a column for each atom: ranks as int (NULL for NULL), bits as boolean."""
    if not atoms:
        return rows
    rankings = [atom for atom in atoms if isinstance(atom, Ranking)]
    values = {_value(r): input_sql(r) for r in rankings if not NAME.fullmatch(input_sql(r))}
    signed = rows.selectExpr("*", *(f"{sql} AS {name}" for name, sql in values.items()))
    application = rows.sparkSession.sparkContext.applicationId
    found = []
    for ranking in filter(is_searched, rankings):
        found.append(_found(ranking))
        signed = searcher(ranking, _value(ranking), found[-1], application).transform(signed)
    columns = [f"{_sql(atom)} AS {atom.column}" for atom in atoms]
    return signed.selectExpr("*", *columns).drop(*values, *found)


def _sql(atom: Atom) -> str:
    if isinstance(atom, Bit):
        return f"coalesce({atom.expression}, FALSE)"
    return rank_sql(atom, f"`{_value(atom)}`", _found(atom))


def _value(ranking: Ranking) -> str:
    """The column of the values to rank: the stream's own, or a helper."""
    sql = input_sql(ranking)
    return sql.strip("`") if NAME.fullmatch(sql) else f"_weft_value_{digest(sql)}"


def _found(ranking: Ranking) -> str:
    return f"_weft_found_{digest(ranking.column)}"
