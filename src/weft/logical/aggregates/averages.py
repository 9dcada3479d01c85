"""AVG from a sum and a count, with Spark's own division.

Doubles: sum / count. Decimals: Spark gives avg(decimal(p, s)) the type decimal(p + 4, s + 4), at
most 38 digits, and rounds sum / count half up to its scale. SQL division would round twice, once to
the scale of the division and once to that of the result, so the whole part is split off first:
S = k·n + r with k whole and |r| < n, both exact; only r / n is rounded, and far finer than s + 4.
Rounding twice then cannot differ from rounding once, since a quotient r / n that is not a tie is at
least 1 / (2·n·10^(s+4)) away from one, and r / n is kept to MOST_ROWS times that.
"""

from __future__ import annotations

from weft.logical.aggregates.algebra import CannotShare, Lowered
from weft.logical.aggregates.kinds import decimal
from weft.logical.statistics import Statistic

ROW_DIGITS = 12  # a group of 10^12 rows is not met


def average(total: Statistic, many: Statistic, type_: str) -> Lowered:
    found = decimal(type_)
    s, n = f"`{total.column}`", f"`{many.column}`"
    if found is None:
        spark = f"(CAST({s} AS DOUBLE) / nullif({n}, 0L))"
        duck = f'(CAST("{total.column}" AS DOUBLE) / nullif("{many.column}", 0))'
        return Lowered((total, many), spark, duck, "double")
    spark = divided_decimal(s, n, *found)
    duck = duck_divided_decimal(f'"{total.column}"', f'"{many.column}"', *found)
    return Lowered((total, many), spark, duck, average_type(*found))


def average_type(precision: int, scale: int) -> str:
    """Spark's DecimalType.adjustPrecisionScale(p + 4, s + 4)."""
    p, s = precision + 4, scale + 4
    if p > 38:
        s = max(38 - (p - s), min(s, 6))
        p = 38
    return f"decimal({p},{s})"


def divided_decimal(total: str, many: str, precision: int, scale: int) -> str:
    """Spark SQL for total / many, rounded half up once; total is of type decimal(p + 10, s)."""
    result = average_type(precision, scale)
    places = decimal(result)[1]
    if (
        38 - ROW_DIGITS - places < ROW_DIGITS
    ):  # digits after the point of r / n, beyond the result's
        raise CannotShare(
            f"the average of decimal({precision},{scale}) cannot be rounded as Spark does"
        )
    n = f"CAST(nullif({many}, 0L) AS DECIMAL({ROW_DIGITS},0))"
    whole = min(38, precision + 10)
    rest = f"CAST({total} % {n} AS DECIMAL({ROW_DIGITS + scale},{scale}))"
    exact = f"CAST(({total} - {rest}) / {n} AS DECIMAL({whole - scale},0))"
    fraction = f"CAST({rest} / {n} AS DECIMAL({places + 1},{places}))"
    return f"CAST({exact} + {fraction} AS {result.upper()})"


def duck_divided_decimal(total: str, many: str, precision: int, scale: int) -> str | None:
    """The same in DuckDB, in whole numbers of 128 bits: its own decimal division gives a double."""
    result = average_type(precision, scale)
    digits, places = decimal(result)
    if precision + 10 + (places - scale) + 1 > 38:
        return None
    units = f"CAST(replace(CAST({total} AS VARCHAR), '.', '') AS HUGEINT)"
    scaled = f"(2 * abs({units}) * {10 ** (places - scale)} + {many})"
    rounded = f"({scaled} // (2 * CAST(nullif({many}, 0) AS HUGEINT)))"
    whole, rest = (
        f"CAST({rounded} // {10**places} AS VARCHAR)",
        f"CAST({rounded} % {10**places} AS VARCHAR)",
    )
    sign = f"CASE WHEN {total} < 0 THEN '-' ELSE '' END"
    number = f"{sign} || {whole} || '.' || lpad({rest}, {places}, '0')"
    return f"CAST({number} AS DECIMAL({digits},{places}))"
