"""Fitting what work costs to what batches took: for `weft calibrate`, and as batches run.

A batch did so much work of each sort (costing.py) in so many milliseconds. Costs that explain many
such batches are found by least squares of the relative errors, with three precautions: no cost is
negative; an odd batch (another process, a compaction) counts less the odder it is (Huber); and what
the batches say nothing about, because the plan never changed, stays near what was believed before
(ridge), but for one factor: a machine that is slower than believed is slower in everything. So one
plan run for long says how fast the machine is, and leaves alone how costs compare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weft.optimizer.weave.batch import BatchCosts

LEAST = 0.02  # of what was believed: no cost vanishes
ODD = 0.15  # relative error from which a batch counts less
ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Observation:
    """A batch: the work that its plan had, and what it took."""

    work: Mapping[str, float]
    ms: float


def fit(
    observations: Sequence[Observation], believed: BatchCosts, trust: float = 1.0
) -> BatchCosts:
    """Costs by what batches took. `trust`: how many batches the old beliefs are worth."""
    seen = [each for each in observations if each.ms > 0]
    if not seen:
        return believed
    names = BatchCosts.names()
    prior = np.array([getattr(believed, name) for name in names])
    work = np.array([[each.work.get(name, 0.0) for name in names] for each in seen])
    took = np.array([each.ms for each in seen])
    prior = prior * np.median(took / np.maximum(work @ prior, 1e-9))
    shares = work * prior / took[:, None]
    factors, weights = np.ones(len(names)), np.ones(len(seen))
    for _ in range(ROUNDS):
        factors = _solved(shares, weights, trust, factors)
        errors = np.abs(shares @ factors - 1)
        weights = np.where(errors <= ODD, 1.0, ODD / np.maximum(errors, ODD))
    found = dict(zip(names, (prior * factors).tolist(), strict=True))
    return BatchCosts(**found)


def _solved(shares: np.ndarray, weights: np.ndarray, trust: float, start: np.ndarray) -> np.ndarray:
    """Weighted ridge regression about 1 with a lower bound, coordinate by coordinate."""
    factors = start.copy()
    for _ in range(200):
        before = factors.copy()
        for j in range(len(factors)):
            rest = 1 - shares @ factors + shares[:, j] * factors[j]
            top = (weights * shares[:, j] * rest).sum() + trust
            factors[j] = max(LEAST, top / ((weights * shares[:, j] ** 2).sum() + trust))
        if np.abs(factors - before).max() < 1e-6:
            break
    return factors


def errors(observations: Sequence[Observation], costs: BatchCosts) -> list[float]:
    """Predicted over measured, for each batch."""
    return [float(costs.of(dict(each.work))) / each.ms for each in observations if each.ms > 0]
