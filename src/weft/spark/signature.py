"""Signature columns of a DataFrame: ranks and bits, computed by the JVM. Runs no job."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from weft.optimizer.atoms import Atom, Bit, Ranking


def with_signature(rows: DataFrame, atoms: Sequence[Atom]) -> DataFrame:
    """Add a column for each atom: ranks as int (NULL for NULL), bits as boolean."""
    texts = [f"{_sql(atom)} AS {atom.column}" for atom in atoms]
    return rows.selectExpr("*", *texts) if texts else rows


def _sql(atom: Atom) -> str:
    return f"coalesce({atom.expression}, FALSE)" if isinstance(atom, Bit) else _rank(atom)


def _rank(ranking: Ranking) -> str:
    constants = [ranking.domain.literal(cut) for cut in ranking.cuts]
    value = f"({ranking.expression})"
    if ranking.is_points:
        whens = " ".join(f"WHEN {value} = {c} THEN {i}" for i, c in enumerate(constants, 1))
        return f"CASE WHEN {value} IS NULL THEN NULL {whens} ELSE 0 END"
    return f"CASE WHEN {value} IS NOT NULL THEN {_tree(value, constants, 0, len(constants))} END"


def _tree(value: str, constants: Sequence[str], low: int, high: int) -> str:
    """Binary search as nested CASE: how many constants are at most the value."""
    if low == high:
        return str(low)
    middle = (low + high) // 2
    above, below = _tree(value, constants, middle + 1, high), _tree(value, constants, low, middle)
    return f"CASE WHEN {value} >= {constants[middle]} THEN {above} ELSE {below} END"
