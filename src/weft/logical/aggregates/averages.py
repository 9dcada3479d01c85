"""AVG from a sum and a count, with Spark's own division.

Doubles: sum / count. Decimals: Spark gives avg(decimal(p, s)) the type decimal(p + 4, s + 4), at
most 38 digits, and rounds sum / count half up to its scale. SQL division would round twice, once to
the scale of the division and once to that of the result, so the whole part is split off first:
S = k·n + r with k whole and |r| < n, both exact; only r / n is rounded, to s + 16 places and then to
s + 4. Rounding twice then cannot differ from rounding once, since a quotient r / n that is not a tie
is at least 1 / (2·n·10^(s+4)) away from one, which is more than the first rounding moves it.
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
    """Spark's DecimalType.bounded(p + 4, s + 4)."""
    return f"decimal({min(38, precision + 4)},{min(38, scale + 4)})"


def divided_decimal(total: str, many: str, precision: int, scale: int) -> str:
    """Spark SQL for total / many, rounded half up once; total is of type decimal(p + 10, s).

    Beyond 27 digits, or 10 after the point, some step would need more than 38.
    """
    if precision > 27 or scale > 10:
        name = f"decimal({precision},{scale})"
        raise CannotShare(f"the average of {name} cannot be rounded as Spark does")
    digits, places = precision + 4, scale + 4
    n = f"CAST(nullif({many}, 0L) AS DECIMAL({ROW_DIGITS},0))"
    rest = f"CAST({total} % {n} AS DECIMAL({ROW_DIGITS + scale},{scale}))"
    whole = f"CAST(({total} - {rest}) / {n} AS DECIMAL({digits - places},0))"
    finer = f"CAST({total} % {n} AS DECIMAL({ROW_DIGITS + scale + 3},{scale + 3}))"
    fraction = f"CAST({finer} / {n} AS DECIMAL({places + 1},{places}))"
    return f"CAST({whole} + {fraction} AS DECIMAL({digits},{places}))"


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
