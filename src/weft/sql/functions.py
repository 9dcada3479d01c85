"""The function check: unknown functions, and those whose value depends on when or where they run."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import cache
from importlib.resources import files

from sqlglot import exp

from weft.errors import UnknownName, Unsupported, did_you_mean
from weft.sql.scope import position

# Read by Spark's parser or by its resolver rather than from the function registry.
BEYOND_THE_LIST = frozenset({"identifier", "outer", "current_catalog", "cast", "if", "struct"})

CLOCKS = frozenset({
    "now", "current_timestamp", "current_date", "current_time", "curdate", "localtimestamp",
    "unix_timestamp", "getdate",
})  # fmt: skip
CHANCES = frozenset({
    "rand", "randn", "random", "uuid", "shuffle", "uniform", "randstr",
    "monotonically_increasing_id", "spark_partition_id", "input_file_name",
    "input_file_block_start", "input_file_block_length",
})  # fmt: skip
BY_CLASS = {
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentDate: "current_date",
    exp.CurrentTime: "current_time",
    exp.CurrentDatetime: "current_timestamp",
    exp.Localtimestamp: "localtimestamp",
    exp.Rand: "rand",
    exp.Randn: "randn",
    exp.Uuid: "uuid",
    exp.Shuffle: "shuffle",
    exp.Uniform: "uniform",
    exp.Randstr: "randstr",
}


@cache
def spark_functions() -> frozenset[str]:
    """Spark 4.3's own list, written down once from SHOW FUNCTIONS: no session is needed to check."""
    text = files("weft.sql").joinpath("spark_functions.txt").read_text("utf-8")
    return frozenset(text.split()) | BEYOND_THE_LIST


def no_other(name: str) -> bool:
    """No function is known besides Spark's and those that are named."""
    return False


def check_function(
    node: exp.Expression,
    also_known: Container[str] | Iterable[str] = (),
    is_other: Callable[[str], bool] = no_other,
) -> None:
    """Refuse a function that neither sqlglot nor Spark knows, nor the session (`is_other`)."""
    if not isinstance(node, exp.Anonymous) or isinstance(node.parent, exp.Dot):
        return
    name = node.name
    if name.lower() in spark_functions() or name.lower() in also_known or is_other(name.lower()):
        return
    raise UnknownName(
        f'function "{name}" does not exist',
        hint=did_you_mean(name, sorted(spark_functions())),
        code="WEFT_UNKNOWN_FUNCTION",
        **position(node),
    )


def check_reproducible(node: exp.Expression) -> None:
    """Refuse wall clocks and dice in a standing query: the same rows must give the same answers."""
    name = _impure_name(node)
    if name is None:
        return
    is_clock = name in CLOCKS
    raise Unsupported(
        f"{name}() cannot be used in a continuous query",
        detail="answers must be reproducible, and this "
        + (
            "reads the wall clock"
            if is_clock
            else "depends on chance or on how the rows are spread"
        ),
        hint="use the stream's own clock: a window such as [RANGE 1 HOUR], and window_end for its time"
        if is_clock
        else "compute it before the rows are pushed, and keep it in a column",
        code="WEFT_NOT_REPRODUCIBLE",
        **position(node),
    )


def _impure_name(node: exp.Expression) -> str | None:
    if isinstance(node, exp.StrToUnix) and isinstance(node.this, exp.CurrentTimestamp):
        return "unix_timestamp"
    if isinstance(node, exp.Anonymous) and node.name.lower() in CLOCKS | CHANCES:
        return node.name.lower()
    if isinstance(node, exp.Column) and not node.table and node.name.lower() == "current_time":
        return None  # may as well be a column: the column check decides
    return next((name for kind, name in BY_CLASS.items() if isinstance(node, kind)), None)
