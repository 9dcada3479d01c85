"""Predicates as signatures: many WHERE clauses, few columns, one pass.

A predicate is a conjunction of factors. Factors that compare one expression with constants become
one interval of that expression, decided by its rank among the constants of all queries; any other
factor is a bit (weft.optimizer.atoms). A predicate is then a Condition: closed ranges of ranks and
bits, which is data, so that thousands of classes are tested by one join of fixed shape.

Source: PSoup §4.2.2 (predicate index and predicateList); ARGUS §3.3 for canonical expressions.
Differs: PSoup probes per tuple and counts satisfied factors per query; here a row is reduced to its
signature once, rows of equal signature fold together, and queries test signatures, not rows.
Sound because coalesce(predicate, FALSE) = every factor is TRUE; a rank decides the intervals whose
ends are among its cuts; a bit is coalesce(factor, FALSE).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from weft.optimizer.atoms import Atom, Bit, Ranking
from weft.optimizer.domains import domain_of
from weft.optimizer.factors import Comparison, Predicate, factor
from weft.optimizer.literals import Value

__all__ = [
    "Atom",
    "AtomIndex",
    "Bit",
    "Comparison",
    "Condition",
    "Predicate",
    "Ranking",
    "Signatures",
    "condition_over",
    "extend",
    "factor",
    "signatures",
]

Range = tuple[str, int, int]  # a rank's column, and the closed range of ranks


@dataclass(frozen=True)
class Condition:
    """A predicate over signature columns: every rank in its range, and every bit set."""

    ranges: tuple[Range, ...] = ()
    bits: tuple[str, ...] = ()

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(column for column, _, _ in self.ranges) | frozenset(self.bits)

    @property
    def sql(self) -> str:
        """The same text in Spark SQL and DuckDB SQL."""
        ranges = [
            f"{column} = {low}" if low == high else f"{column} BETWEEN {low} AND {high}"
            for column, low, high in self.ranges
        ]
        return " AND ".join([*ranges, *self.bits]) or "TRUE"


@dataclass(frozen=True)
class Signatures:
    """Atoms, and the condition over them of each predicate, by its key."""

    atoms: tuple[Atom, ...]
    conditions: Mapping[str, Condition] = field(default_factory=dict)


def signatures(predicates: Iterable[Predicate]) -> Signatures:
    """The fewest atoms that decide all the predicates: one ranking by cuts and one by points per
    expression, one bit per other factor."""
    return _signatures(tuple(dict.fromkeys(predicates)))


@lru_cache(maxsize=4096)
def _signatures(predicates: tuple[Predicate, ...]) -> Signatures:
    return extend((), predicates)


def extend(atoms: Iterable[Atom], predicates: Iterable[Predicate]) -> Signatures:
    """The atoms that stand and decide the new predicates too: each ranking that lacks a constant
    gives way to a wider one (another column), all others stay as they are."""
    wanted, known = list(dict.fromkeys(predicates)), list(dict.fromkeys(atoms))
    index = AtomIndex(known)
    lacking = [part for each in wanted for part in each.factors if index.test(part) is None]
    constants: dict[tuple[str, str, bool], set[Value]] = {}
    for part in lacking:
        if isinstance(part, Comparison):
            group = (part.expression, part.type, part.is_point)
            constants.setdefault(group, set()).update(part.constants)
    stay = [a for a in known if not (isinstance(a, Ranking) and _group(a) in constants)]
    for old in known:
        if isinstance(old, Ranking) and _group(old) in constants:
            constants[_group(old)].update(old.cuts)
    wider = [_ranking(*group, values) for group, values in constants.items()]
    bits = dict.fromkeys(part for part in lacking if isinstance(part, Bit))
    final = AtomIndex([*stay, *wider, *bits])
    return Signatures(final.atoms, {each.key: final.required(each) for each in wanted})


def condition_over(atoms: Iterable[Atom], predicate: Predicate) -> Condition | None:
    """The predicate over these atoms; None if they do not decide it."""
    return AtomIndex(atoms).condition(predicate)


class AtomIndex:
    """Atoms by what they decide; of several that do, the one with the fewest constants is taken."""

    def __init__(self, atoms: Iterable[Atom]) -> None:
        self.atoms = tuple(atoms)
        self._bits = {atom for atom in self.atoms if isinstance(atom, Bit)}
        self._rankings: dict[tuple[str, str], list[Ranking]] = {}
        for atom in self.atoms:
            if isinstance(atom, Ranking):
                self._rankings.setdefault((atom.expression, atom.type), []).append(atom)
        for rankings in self._rankings.values():
            rankings.sort(key=lambda ranking: len(ranking.cuts))

    def condition(self, predicate: Predicate) -> Condition | None:
        tests = [self.test(part) for part in predicate.factors]
        if any(test is None for test in tests):
            return None
        ranges = sorted(test for test in tests if isinstance(test, tuple))
        return Condition(tuple(ranges), tuple(sorted(t for t in tests if isinstance(t, str))))

    def required(self, predicate: Predicate) -> Condition:
        condition = self.condition(predicate)
        assert condition is not None, f"the atoms do not decide {predicate.key}"
        return condition

    def test(self, part: Comparison | Bit) -> Range | str | None:
        """One factor over the atoms: a range of ranks, a bit, or None."""
        if isinstance(part, Bit):
            return part.column if part in self._bits else None
        for ranking in self._rankings.get((part.expression, part.type), ()):
            if found := _range(ranking, part):
                return ranking.column, *found
        return None


def _range(ranking: Ranking, part: Comparison) -> tuple[int, int] | None:
    if ranking.is_points:
        place = _place(ranking, part.interval.low) if part.is_point else None
        return (place, place) if place else None
    low, high = _place(ranking, part.interval.low), _place(ranking, part.interval.high)
    if None in (low, high) and set(part.interval.cuts()) - set(ranking.cuts):
        return None
    return low or 0, len(ranking.cuts) if high is None else high - 1


def _place(ranking: Ranking, value: Value | None) -> int | None:
    """A constant's number among the cuts, from 1."""
    return None if value is None else ranking.positions.get(ranking.domain.order(value))


def _group(ranking: Ranking) -> tuple[str, str, bool]:
    return ranking.expression, ranking.type, ranking.is_points


def _ranking(expression: str, type_: str, is_points: bool, values: Iterable[Value]) -> Ranking:
    domain = domain_of(type_)
    assert domain is not None
    ordered = sorted({domain.order(value): value for value in values}.items())
    return Ranking(expression, type_, tuple(value for _, value in ordered), is_points)
