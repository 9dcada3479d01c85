"""Statistics and dimensions: the columns of partials, as values named by what they mean.

A *statistic* is a mergeable number (or struct, set, sketch) that rows are folded into. Its law:
for every split of some rows into parts, merge(fold(part) …) equals fold(all the rows). A
*dimension* is an expression that rows are grouped by. Both are named by a digest of their canonical
text, so that equal things of different queries meet in one column without anybody handing out
numbers (ARGUS §3.1: GroupExprIndex, GroupColumns).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache


@lru_cache(maxsize=1 << 15)
def digest(text: str) -> str:
    """Twelve hex digits that stand for a canonical text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def long_digest(text: str) -> str:
    """As many hex digits as a BIGINT holds, whatever its sign."""
    return hashlib.sha256(text.encode()).hexdigest()[:15]


@dataclass(frozen=True, slots=True)
class Lift:
    """The fold of one row: DuckDB's SQL in which `{0}`, `{1}`, … stand for the arguments, which are
    Spark SQL over a stream's bare columns. Where the condition does not hold it is NULL.

    Law: the merge of the lifts of some rows is their fold. So a row is a partial of its own.
    """

    template: str
    arguments: tuple[str, ...] = ()
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class Statistic:
    """One mergeable column of partials.

    `fold` is a Spark SQL aggregate over a stream's bare columns and its helper columns _weft_time,
    _weft_tick and _weft_ord. `merge` is a Spark SQL aggregate over the stored column, for which
    `{}` stands; its result has exactly `type` again. NULL is the fold of no rows and the merge of
    no parts, or means the same: every finish gives for it what SQL gives for no rows.
    """

    key: str  # canonical text: "sum(price)", "sum(price) filter(qty > 3)"
    type: str  # Spark DDL type of the stored column
    fold: str
    merge: str
    duck_merge: str | None  # the same in DuckDB SQL; None: only Spark can merge it
    is_light: bool = True  # of fixed width while folding: one that is not makes Spark sort the fold
    # None: DuckDB cannot fold it from rows. Needed while a query is planned, so not stored.
    lift: Lift | None = field(default=None, compare=False, metadata={"stored": False})

    @property
    def column(self) -> str:
        return "s_" + digest(self.key)

    def merged(self) -> str:
        """The Spark SQL that merges this statistic's own column."""
        return self.merge.replace("{}", f"`{self.column}`")

    def duck_merged(self) -> str | None:
        """The DuckDB SQL that merges this statistic's own column."""
        return self.duck_merge and self.duck_merge.replace("{}", f'"{self.column}"')


@dataclass(frozen=True, slots=True)
class Dimension:
    """One group-by column of partials; `expression` is Spark SQL over a stream's bare columns."""

    key: str
    type: str
    expression: str

    @property
    def column(self) -> str:
        return "g_" + digest(self.key)
