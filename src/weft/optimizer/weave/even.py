"""Even panes: a tree's panes all have one width, so a set of edges is (width, offset).

Weft's panes are uniform (logical/panes.py): the union of two sets of edges is not their union but
the widest even panes that have all of them, width gcd(w, w′, |o − o′|). This is a space like those of
edge bitmaps, with the same questions answered by arithmetic: no bits, no samples, exact for any
slides. Differs from Weave Share §4.1, whose trees cut only where some window does.

Not a measure: |(x ∪ y) ∩ w| does not follow from the pairs, so `common` is asked anew after a merge.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from weft.optimizer.weave.windows import Class, Query

Edges = tuple[Class, ...]


def even_panes(edges: Edges) -> tuple[int, int]:
    """The widest even panes, (width, offset), that have these edges."""
    (width, offset), *rest = edges
    for modulus, residue in rest:
        width = math.gcd(width, modulus, abs(offset - residue))
        offset %= width
    return width, offset


@dataclass(frozen=True)
class EvenSpace:
    """Rows are columns of (width, offset); width 0 is no edges at all."""

    scale = 1.0
    words = 2
    is_even = True

    def row(self, edges: Edges) -> np.ndarray:
        return np.array(even_panes(edges), dtype=np.uint64)

    def union(self, sets: Iterable[Edges]) -> np.ndarray:
        return np.array(even_panes(tuple(e for edges in sets for e in edges)), dtype=np.uint64)

    def join(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The panes of two trees put together; either may be many columns."""
        (w, o), (v, p) = one.astype(np.int64), other.astype(np.int64)
        width = np.gcd(np.gcd(w, v), np.abs(o - p))
        width = np.where(w == 0, v, np.where(v == 0, w, width))
        offset = np.where(w == 0, p, o) % np.maximum(width, 1)
        return np.array([width, offset], dtype=np.uint64)

    def mass(self, rows: np.ndarray) -> np.ndarray:
        """Panes per tick."""
        width = rows[0].astype(float)
        return np.divide(1.0, width, out=np.zeros_like(width), where=width > 0)

    def common(self, row: np.ndarray, rows: np.ndarray) -> np.ndarray:
        both = self.mass(self.join(row[:, None], rows))
        return self.mass(row[:, None]) + self.mass(rows) - both

    def holds(self, edges: Edges) -> bool:
        return True


class Members:
    """The bundles of one tree, ready to say what it would be without any one of them."""

    def __init__(self, bundles: Sequence[tuple[Query, ...]]) -> None:
        self._place = {id(bundle): i for i, bundle in enumerate(bundles)}
        panes = [even_panes(bundle[0].classes) for bundle in bundles]
        self._before = _running(panes)
        self._after = _running(panes[::-1])[::-1]
        self._kinds = Counter(bundle[0].dimensions for bundle in bundles)
        self._longest = sorted(max(q.length for q in bundle) for bundle in bundles)

    def panes_without(self, bundle: tuple[Query, ...]) -> tuple[int, int]:
        i = self._place[id(bundle)]
        found = [p for p in (self._before[i], self._after[i + 1]) if p is not None]
        return even_panes(tuple(found))

    def kinds_without(self, bundle: tuple[Query, ...]) -> frozenset[str]:
        gone = bundle[0].dimensions
        kept = (kinds for kinds, n in self._kinds.items() if kinds != gone or n > 1)
        return frozenset().union(*kept)

    def longest_without(self, bundle: tuple[Query, ...]) -> int:
        is_longest = max(q.length for q in bundle) == self._longest[-1]
        return self._longest[-2 if is_longest else -1]


def _running(panes: list[tuple[int, int]]) -> list[tuple[int, int] | None]:
    """The panes of the first i, for every i; none of none."""
    found: list[tuple[int, int] | None] = [None]
    for each in panes:
        found.append(each if found[-1] is None else even_panes((found[-1], each)))
    return found


def even_rate(queries: Iterable[Query]) -> float:
    """Panes per tick of a tree that holds these queries."""
    return 1 / even_panes(tuple(found for query in queries for found in query.classes))[0]
