"""A stream's profile: a sample of its rows, each column of the network coded as a small number.

Why: how many cells a node would have, for any set of columns, also sets that no node has, without
asking Spark again (Weave Share §5.3: measured, not guessed). A few thousand rows are enough, since a
curve says what more rows would bring (weave/curves.py).
A column that was never sampled is guessed: a dimension has 1,000 values, a rank one more than it
has constants, a bit two; where the same expression was sampled with other constants, that is used.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from weft.logical.statistics import Dimension
from weft.optimizer.nodes import Atom
from weft.optimizer.predicates import Ranking
from weft.optimizer.weave.curves import ONE, Curve, measured

SAMPLED = 4096  # rows
GUESS = 1000.0  # values of a dimension that was never sampled


@dataclass(frozen=True, eq=False)
class Profile:
    """Codes of sampled rows, one column of them for each atom."""

    codes: Mapping[str, np.ndarray] = field(default_factory=dict)  # by the atom's column
    expressions: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # → column, constants
    _curves: dict[frozenset[str], Curve] = field(default_factory=dict)
    _asked: dict[tuple, Curve] = field(default_factory=dict)

    def __len__(self) -> int:
        return max(map(len, self.codes.values()), default=0)

    def knows(self, atoms: Iterable[Atom]) -> bool:
        return all(atom.column in self.codes for atom in atoms)

    def curve(self, atoms: Iterable[Atom]) -> Curve:
        """Distinct values of these columns among so many rows."""
        atoms = tuple(atoms)
        asked = tuple(atom.column for atom in atoms)
        return self._kept(asked, (self._stand_in(atom) for atom in atoms))

    def curve_of(self, asked: Mapping[str, int]) -> Curve:
        """The same by expressions, each with how many constants it is compared with."""
        return self._kept(tuple(asked.items()), (self._sampled_as(*each) for each in asked.items()))

    def _kept(self, asked: tuple, found: Iterable[tuple[str | None, float]]) -> Curve:
        """The curve of sampled columns and what is unknown of them; made once."""
        if asked not in self._asked:
            names, unknown = set(), 1.0
            for name, factor in found:
                unknown *= factor
                names |= {name} - {None}
            self._asked[asked] = self._sampled(frozenset(names)).times(unknown)
        return self._asked[asked]

    def _stand_in(self, atom: Atom) -> tuple[str | None, float]:
        """A sampled column, and how many times more values to expect."""
        if atom.column in self.codes:
            return atom.column, 1.0
        return self._sampled_as(expression_of(atom), constants_of(atom))

    def _sampled_as(self, expression: str, constants: int) -> tuple[str | None, float]:
        if expression in self.expressions:
            name, known = self.expressions[expression]
            return name, max(1.0, (constants + 1) / (known + 1))
        return None, GUESS if expression.startswith("dimension ") else constants + 1.0

    def _sampled(self, names: frozenset[str]) -> Curve:
        if not names:
            return ONE
        if names not in self._curves:
            self._curves[names] = measured(np.bincount(self._joint(names)))
        return self._curves[names]

    def _joint(self, names: frozenset[str]) -> np.ndarray:
        return reduce(_paired, [self.codes[name] for name in sorted(names)])

    def dump(self) -> bytes:
        names = sorted(self.codes)
        head = {"names": names, "rows": len(self), "expressions": dict(self.expressions)}
        body = b"".join(self.codes[name].astype("<u2").tobytes() for name in names)
        return zlib.compress(json.dumps(head).encode() + b"\n" + body, 1)


def load_profile(data: bytes | None) -> Profile:
    if not data:
        return Profile()
    head, body = zlib.decompress(data).split(b"\n", 1)
    said = json.loads(head)
    codes = np.frombuffer(body, "<u2").reshape(len(said["names"]), said["rows"]).astype(np.int64)
    expressions = {key: tuple(value) for key, value in said["expressions"].items()}
    return Profile(dict(zip(said["names"], codes, strict=True)), expressions)


def profile_of(atoms: Iterable[Atom], values: Mapping[str, np.ndarray]) -> Profile:
    """From the sampled values (or hashes of them) of each atom's column."""
    codes, expressions = {}, {}
    for atom in atoms:
        codes[atom.column] = np.unique(values[atom.column], return_inverse=True)[1].reshape(-1)
        found = (atom.column, constants_of(atom))
        known = expressions.setdefault(expression_of(atom), found)
        expressions[expression_of(atom)] = max(known, found, key=lambda pair: pair[1])
    return Profile(codes, expressions)


def expression_of(atom: Atom) -> str:
    if isinstance(atom, Ranking):
        return f"rank {atom.is_points} {atom.type} {atom.expression}"
    return f"{'dimension' if isinstance(atom, Dimension) else 'bit'} {atom.key}"


def constants_of(atom: Atom) -> int:
    return len(atom.cuts) if isinstance(atom, Ranking) else 1


def _paired(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    both = one * (int(other.max(initial=0)) + 1) + other
    return np.unique(both, return_inverse=True)[1].reshape(-1)
