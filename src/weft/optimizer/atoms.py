"""Atoms of a signature: ranks and bits, each a column computed once per row for all queries.

A *rank* places a row's value among the constants that queries compare an expression with, so that
each of these comparisons is a range of ranks; a *bit* is one condition evaluated as it stands.
These are the two halves of PSoup's Query SteM (§4.2.2): its trees of constants per attribute and
its predicateList.

    Ranking, cuts c1 < … < cn:    rank(v) = how many ci <= v      v in [ci, cj) ⇔ rank in [i, j-1]
    Ranking, points p1 < … < pn:  rank(v) = i if v = pi, else 0   v = pi        ⇔ rank = i
    NULL has no rank (NULL), so no test on it holds.

Equalities have a ranking by points of their own: all other values then share one rank.
Columns are named by what they hold, constants included: other constants make another column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from weft.logical.statistics import digest
from weft.optimizer.domains import Domain, domain_of
from weft.optimizer.literals import Value, same_nan


@dataclass(frozen=True)
class Ranking:
    """The rank of an expression among constants, sorted, in the type they are compared in."""

    expression: str  # Spark SQL; also its key
    type: str
    cuts: tuple[Value, ...]
    is_points: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "cuts", tuple(map(same_nan, self.cuts)))

    @property
    def key(self) -> str:
        return self.expression

    @cached_property
    def domain(self) -> Domain:
        domain = domain_of(self.type)
        assert domain is not None, f"{self.type} is not ranked"
        return domain

    @cached_property
    def column(self) -> str:
        how = "points" if self.is_points else "cuts"
        constants = ", ".join(self.domain.literal(cut) for cut in self.cuts)
        return "r_" + digest(f"{self.expression} :: {self.type} {how} ({constants})")

    @cached_property
    def positions(self) -> dict[object, int]:
        """Each constant's number, from 1."""
        return {self.domain.order(cut): i for i, cut in enumerate(self.cuts, 1)}


@dataclass(frozen=True)
class Bit:
    """Whether a condition is TRUE for a row (neither FALSE nor NULL)."""

    expression: str  # Spark SQL; also its key

    @property
    def key(self) -> str:
        return self.expression

    @cached_property
    def column(self) -> str:
        return "b_" + digest(self.expression)


Atom = Ranking | Bit
