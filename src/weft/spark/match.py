"""Matching rows against the Query SteM: one join of fixed shape, however many queries there are.

    rows ──ranks and bits──▶ rows with a signature ──explode──▶ one row for each node on its paths
         ──broadcast join with the entries on the node──▶ candidates ──verify──▶ (target, row)

Constants are searched for in the JVM (weft.spark.ranks); entries are data that is broadcast. No
Python per row. Compilers only: DataFrames in, a DataFrame out.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from weft.optimizer.stem import COLUMN_SHIFT, EVERYWHERE, FANOUT_BITS, LEVEL_BITS, Stem
from weft.spark.rows import TIME, quote
from weft.spark.signature import with_signature

TARGET, KEY = "_weft_target", "_weft_key"


def match(rows: DataFrame, stem: Stem) -> DataFrame:
    """The rows that satisfy a target's predicate, once for each such target, with its number."""
    shown = [quote(name) for name in rows.columns]
    signed = with_signature(rows, stem.atoms)
    words = [f"{_word(word)} AS _weft_word_{i}" for i, word in enumerate(stem.words)]
    ranks = [ranking.column for ranking in stem.rankings]
    signed = signed.selectExpr(*shown, *ranks, *words)
    keyed = signed.withColumn(KEY, F.explode(F.expr(_keys(stem))))
    joined = keyed.join(F.broadcast(_entries(rows, stem)), KEY)
    return joined.where(_verified(stem)).selectExpr(*shown, TARGET)


def _word(bits: tuple) -> str:
    terms = [f"shiftleft(CAST({bit.column} AS BIGINT), {i})" for i, bit in enumerate(bits)]
    return " | ".join(terms)


def _keys(stem: Stem) -> str:
    keys = [f"{EVERYWHERE}L"] if stem.has_everywhere else []
    for column, level in stem.levels:
        base = (column << COLUMN_SHIFT) + (level << (COLUMN_SHIFT - LEVEL_BITS))
        rank = stem.rankings[column].column
        keys.append(f"{base}L + shiftright({rank}, {FANOUT_BITS * level})")
    return f"array({', '.join(keys)})"


def _entries(rows: DataFrame, stem: Stem) -> DataFrame:
    """The entries as a local relation: it is data, and never part of generated code."""
    import pyarrow as pa

    columns = {KEY: [e.key for e in stem.entries], TARGET: [e.target for e in stem.entries]}
    for i in range(len(stem.rankings)):
        columns[f"_weft_lo_{i}"] = [e.ranges[i] and e.ranges[i][0] for e in stem.entries]
        columns[f"_weft_hi_{i}"] = [e.ranges[i] and e.ranges[i][1] for e in stem.entries]
    for i in range(len(stem.words)):
        columns[f"_weft_mask_{i}"] = [e.masks[i] for e in stem.entries]
    columns["_weft_from"] = [e.low for e in stem.entries]
    columns["_weft_to"] = [e.high for e in stem.entries]
    kinds = {
        n: pa.int32() if n.startswith(("_weft_lo", "_weft_hi")) else pa.int64() for n in columns
    }
    table = pa.table({n: pa.array(v, kinds[n]) for n, v in columns.items()})
    return rows.sparkSession.createDataFrame(table, _schema(kinds))


def _schema(kinds: dict) -> StructType:
    types = {name: "INT" if str(kind) == "int32" else "BIGINT" for name, kind in kinds.items()}
    return StructType.fromDDL(", ".join(f"{name} {kind}" for name, kind in types.items()))


def _verified(stem: Stem) -> str:
    tests = [
        f"(_weft_lo_{i} IS NULL OR {r.column} BETWEEN _weft_lo_{i} AND _weft_hi_{i})"
        for i, r in enumerate(stem.rankings)
    ]
    tests += [f"(_weft_word_{i} & _weft_mask_{i}) = _weft_mask_{i}" for i in range(len(stem.words))]
    tests.append(f"(_weft_from IS NULL OR unix_micros({TIME}) >= _weft_from)")
    tests.append(f"(_weft_to IS NULL OR unix_micros({TIME}) <= _weft_to)")
    return " AND ".join(tests)
