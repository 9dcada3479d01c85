"""The Query SteM: an index of predicates, probed by rows; a join, whatever the number of queries.

Each predicate is a conjunction of ranges of ranks and of bits (weft.optimizer.predicates). One of
its ranges, the narrowest, is its *access path*: the range is cut into nodes of a tree of fan-out 16
over the ranks, and each node is an entry. A row is looked up by the nodes on its path to the root,
a few for each expression that is compared, and what it finds is verified against the other ranges
and bits. So a row meets the predicates that its value is in the range of, not all of them.

    rank 0..n of an expression        16 ranks, 256 ranks, … : levels 1, 2, …
    range [lo, hi]                    at most 30 nodes a level
    row of rank r                     nodes (level l, r >> 4 l), for each level in use

Source: PSoup §4.2.2. The paper keeps a red-black tree of constants for each attribute, walks it for
inequalities, and counts satisfied factors in an array with a cell for each query. Differs: one
factor finds the candidates and the others are tested, so no array is reset for each row; ranges are
cut into nodes, so inequalities need no walk.
Sound because the nodes of a range are disjoint and cover it: a rank in the range lies under exactly
one of them, so a row finds a predicate once, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weft.optimizer.atoms import Atom, Bit, Ranking
from weft.optimizer.factors import Predicate
from weft.optimizer.predicates import Condition, Range, signatures

FANOUT_BITS = 4
LEVEL_BITS, COLUMN_SHIFT = 4, 40  # a key: column, level, node
WORD = 63  # bits of a mask that a BIGINT holds without its sign
EVERYWHERE = -1  # the key of predicates without a range: each row is tested


@dataclass(frozen=True)
class Target:
    """Rows of a predicate that somebody wants, of event times from low to high; None: no bound."""

    id: int
    predicate: Predicate
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class Entry:
    """One way to a target: a node of its access path, and all that has to be verified."""

    key: int
    target: int
    ranges: tuple[tuple[int, int] | None, ...]  # of each ranking; None: any value, and NULL
    masks: tuple[int, ...]  # bits that must be set, in words
    low: int | None
    high: int | None


@dataclass(frozen=True)
class Stem:
    """An index of targets: the atoms that a row is reduced to, and the entries it is joined with."""

    rankings: tuple[Ranking, ...]
    bits: tuple[Bit, ...]
    levels: tuple[tuple[int, int], ...]  # (ranking, level) under which there are entries
    has_everywhere: bool
    entries: tuple[Entry, ...]

    @property
    def atoms(self) -> tuple[Atom, ...]:
        return (*self.rankings, *self.bits)

    @property
    def words(self) -> tuple[tuple[Bit, ...], ...]:
        return tuple(self.bits[i : i + WORD] for i in range(0, len(self.bits), WORD))


def build(targets: Iterable[Target]) -> Stem:
    wanted = list(targets)
    found = signatures(t.predicate for t in wanted)
    rankings = tuple(a for a in found.atoms if isinstance(a, Ranking))
    bits = tuple(a for a in found.atoms if isinstance(a, Bit))
    places = {ranking.column: i for i, ranking in enumerate(rankings)}
    bit_places = {bit.column: i for i, bit in enumerate(bits)}
    entries: list[Entry] = []
    levels: set[tuple[int, int]] = set()
    for target in wanted:
        condition = found.conditions[target.predicate.key]
        nodes = _access(condition, rankings, places)
        levels |= {(column, level) for column, level, _ in nodes}
        entries += _entries(target, condition, nodes, places, bit_places)
    has_everywhere = any(e.key == EVERYWHERE for e in entries)
    return Stem(rankings, bits, tuple(sorted(levels)), has_everywhere, tuple(entries))


Node = tuple[int, int, int]  # ranking, level, number


def key_of(column: int, level: int, number: int) -> int:
    return (column << COLUMN_SHIFT) + (level << (COLUMN_SHIFT - LEVEL_BITS)) + number


def _access(
    condition: Condition, rankings: Sequence[Ranking], places: dict[str, int]
) -> list[Node]:
    """The nodes of the narrowest range; of none, if there is none."""
    if not condition.ranges:
        return []

    def share(found: Range) -> float:
        ranking = rankings[places[found[0]]]
        return (found[2] - found[1] + 1) / (len(ranking.cuts) + 1)

    column, low, high = min(condition.ranges, key=share)
    return [(places[column], level, number) for level, number in cut(low, high)]


def cut(low: int, high: int) -> list[tuple[int, int]]:
    """A closed range of ranks as nodes (level, number): rank r lies under (l, r >> 4 l)."""
    found, level = [], 0
    while low <= high:
        fan = (1 << FANOUT_BITS) - 1
        while low <= high and low & fan:
            found.append((level, low))
            low += 1
        while low <= high and (high + 1) & fan:
            found.append((level, high))
            high -= 1
        low, high, level = low >> FANOUT_BITS, ((high + 1) >> FANOUT_BITS) - 1, level + 1
    return found


def _entries(
    target: Target, condition: Condition, nodes: list[Node], places: dict[str, int],
    bit_places: dict[str, int],
) -> list[Entry]:  # fmt: skip
    ranges: list[tuple[int, int] | None] = [None] * len(places)
    for column, low, high in condition.ranges:
        ranges[places[column]] = (low, high)
    masks = [0] * -(-len(bit_places) // WORD)
    for column in condition.bits:
        word, bit = divmod(bit_places[column], WORD)
        masks[word] |= 1 << bit
    keys = [key_of(*node) for node in nodes] or [EVERYWHERE]
    about = (tuple(ranges), tuple(masks), target.low, target.high)
    return [Entry(key, target.id, *about) for key in keys]
