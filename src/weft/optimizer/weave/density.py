"""The edge rate of a tree: how much of the time line a union of residue classes covers.

    E = |edges within the composite slide| / CS          (Weave Share §4.1)

The composite slide of slides up to 100,000 has thousands of digits, and deciding whether such a
union covers everything is NP-hard, so the question is answered by the first route that is cheap:

    bitmap      mark one composite slide, when it has at most 2²² ticks
    thinned     the part of a slide that no other slide shares only thins its edges out: given the
                time modulo the shared part s′, an edge falls with chance n(s′)/u, u = s/s′, apart
                from all others. Then E = 1 − mean over one *shared* period of Π (1 − n/u);
                groups of slides without common factors multiply (Chinese remainder theorem)
    inclusion   inclusion–exclusion over the classes that do meet, up to a budget of terms
    estimated   stratified sampling: Σ (1/s)·mean(1/number of classes that hold the sampled edge)

The first three are exact up to rounding. The last states a bound that holds with chance 99.9 %, by
Hoeffding's inequality: each sample of a class of slide s lies in [0, 1/(m·s)]. Its samples are
times below 2⁶², so what is estimated is the edge rate over that span. It is deterministic: the
random numbers are the same in every run. No route takes more than about a second or 64 MiB.

Differs from the paper, which counts edges one by one (§8, naive) or in a bitmap (§8.2) only.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from weft.optimizer.weave.windows import Class, Query, meet

BITMAP_TICKS = 1 << 22  # one byte each while counting
INCLUSION_TERMS = 20_000  # about 30 ms
SAMPLE_TESTS = 1 << 25  # divisions done by one estimate, about 0.3 s
CONFIDENCE = 0.999
SPAN_BITS = 62


@dataclass(frozen=True, slots=True)
class Density:
    """A share of the time line; the true one is within `error` of `value` (see the routes)."""

    value: float
    error: float
    route: str

    @property
    def is_exact(self) -> bool:
        return self.error == 0


def edge_rate(queries: Iterable[Query]) -> Density:
    """E of a tree that holds these queries: its edges per tick."""
    return density({found for query in queries for found in query.classes})


def density(classes: Iterable[Class]) -> Density:
    """The share of all integers that lie in at least one of the classes."""
    residues = without_contained(classes)
    if not residues:
        return Density(0.0, 0.0, "bitmap")
    if math.lcm(*residues) <= BITMAP_TICKS:
        return Density(_bitmap(residues), 0.0, "bitmap")
    shared = _shared_parts(list(residues))
    parts = [_component(group, residues, shared) for group in _components(residues, shared)]
    uncovered = math.prod(1 - part.value for part in parts)
    # every factor is at most 1, so the errors of a product add up at most
    error = sum(part.error for part in parts)
    routes = {part.route for part in parts}
    names = ("estimated", "inclusion", "thinned")
    return Density(1 - uncovered, error, next(name for name in names if name in routes))


def without_contained(classes: Iterable[Class]) -> dict[int, list[int]]:
    """Residues by modulus, without the classes that lie inside another one."""
    found = np.array(sorted(set(classes)), dtype=np.int64).reshape(-1, 2)
    moduli, residues = found[:, 0], found[:, 1]
    keep = np.ones(len(found), dtype=bool)
    for modulus in np.unique(moduli):
        own = keep & (moduli == modulus)
        if not own.any():
            continue
        inside = keep & (moduli > modulus) & (moduli % modulus == 0)
        keep[inside] = ~np.isin(residues[inside] % modulus, residues[own])
    kept: dict[int, list[int]] = defaultdict(list)
    for modulus, residue in found[keep].tolist():
        kept[modulus].append(residue)
    return dict(kept)


def _bitmap(residues: dict[int, list[int]]) -> float:
    period = math.lcm(*residues)
    marks = np.zeros(period, dtype=bool)
    for modulus, own in residues.items():
        for residue in own:
            marks[residue::modulus] = True
    return int(np.count_nonzero(marks)) / period


def _shared_parts(moduli: list[int]) -> dict[int, int]:
    """s′ = gcd(s, lcm of all other moduli), by prefix and suffix multiples."""
    before, after = [1], [1]
    for modulus in moduli:
        before.append(math.lcm(before[-1], modulus))
    for modulus in reversed(moduli):
        after.append(math.lcm(after[-1], modulus))
    after.reverse()
    return {
        modulus: math.gcd(modulus, math.lcm(before[i], after[i + 1]))
        for i, modulus in enumerate(moduli)
    }


def _components(residues: dict[int, list[int]], shared: dict[int, int]) -> list[list[int]]:
    """Moduli grouped so that the shared parts of different groups have no common factor."""
    groups: list[tuple[int, list[int]]] = []
    for modulus in residues:
        period, members = shared[modulus], [modulus]
        apart = []
        for other_period, other in groups:
            if math.gcd(period, other_period) > 1:
                period, members = math.lcm(period, other_period), members + other
            else:
                apart.append((other_period, other))
        groups = [*apart, (period, members)]
    return [members for _, members in groups]


def _component(
    moduli: list[int], residues: dict[int, list[int]], shared: dict[int, int]
) -> Density:
    own = {modulus: residues[modulus] for modulus in moduli}
    if math.lcm(*(shared[modulus] for modulus in moduli)) <= BITMAP_TICKS:
        return Density(_thinned(own, shared), 0.0, "thinned")
    classes = [(modulus, residue) for modulus, found in own.items() for residue in found]
    exact = inclusion_exclusion(classes, INCLUSION_TERMS)
    if exact is not None:
        return Density(exact, 0.0, "inclusion")
    return estimate(own)


def _thinned(residues: dict[int, list[int]], shared: dict[int, int]) -> float:
    """1 − mean over the shared period of Π (1 − n/u). Sound: given the time modulo every shared
    part, its residue modulo s is uniform over u lifts, independently for each s."""
    period = math.lcm(*(shared[modulus] for modulus in residues))
    uncovered = np.ones(period)
    for modulus, own in residues.items():
        part = shared[modulus]
        counts = np.bincount(np.array(own) % part, minlength=part)
        view = uncovered.reshape(-1, part)
        view *= 1 - counts * (part / modulus)
    return 1 - float(uncovered.mean())


def inclusion_exclusion(classes: Sequence[Class], budget: int) -> float | None:
    """Σ ±1/lcm over the sets of classes that meet; None if that takes more than `budget` terms."""
    left = budget

    def covered(inside: Class, start: int) -> float:
        """The density of `inside` ∩ (the union of classes[start:])."""
        nonlocal left
        total = 0.0
        for i in range(start, len(classes)):
            left -= 1
            if left < 0:
                raise OverflowError
            met = meet(inside, classes[i])
            if met is not None:
                total += 1 / met[0] - covered(met, i + 1)
        return total

    try:
        return covered((1, 0), 0)
    except (OverflowError, RecursionError):
        return None


def estimate(residues: dict[int, list[int]], tests: int = SAMPLE_TESTS) -> Density:
    """Stratified sampling: as many sampled edges of each class as the budget of tests allows."""
    classes = np.array([(m, r) for m, own in residues.items() for r in own], dtype=np.int64)
    each = max(4, min(4096, tests // (len(classes) * len(residues))))
    points = sampled_edges(classes, each)
    holders = np.zeros(points.shape, dtype=np.int64)
    for modulus, own in residues.items():
        holders += is_edge(points, modulus, own)
    rates = 1 / classes[:, 0]
    value = float(rates @ (1 / holders).mean(axis=1))
    spread = float((rates**2).sum()) / each
    error = math.sqrt(math.log(2 / (1 - CONFIDENCE)) / 2 * spread)
    low, high = float(rates.max()), min(1.0, float(rates.sum()))
    return Density(min(max(value, low), high), error, "estimated")


def sampled_edges(classes: np.ndarray, each: int) -> np.ndarray:
    """[class, sample]: times drawn from each class, below 2⁶² and the same in every run."""
    moduli = classes[:, :1]
    generator = np.random.default_rng([20111024, *classes[0].tolist()])
    steps = generator.integers(0, (1 << SPAN_BITS) // moduli, (len(classes), each))
    return classes[:, 1:] + moduli * steps


def is_edge(times: np.ndarray, modulus: int, residues: Sequence[int]) -> np.ndarray:
    """Which of the times fall in one of the residues of one modulus."""
    rest = times % modulus
    if len(residues) <= 4:
        hits = rest == residues[0]
        for residue in residues[1:]:
            hits |= rest == residue
        return hits
    return np.isin(rest, np.array(residues))
