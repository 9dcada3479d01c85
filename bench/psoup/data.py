"""Rows and queries of the PSoup paper, section 5.2.1: values and constants in 0 to 255."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

ATTRIBUTES = "abcd"
START = 1_767_225_600_000_000  # 2026-01-01, microseconds
STEP = 1_000  # a row each millisecond, so that a window of n tuples is one of n milliseconds
STREAM = (
    "CREATE STREAM r (a BIGINT, b BIGINT, c BIGINT, d BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
)


def rows(first: int, count: int) -> pa.Table:
    """Rows number `first` and following; the same every time."""
    rng = np.random.default_rng(first)
    columns = {name: pa.array(rng.integers(0, 256, count)) for name in ATTRIBUTES}
    times = START + np.arange(first, first + count) * STEP
    return pa.table({**columns, "ts": pa.array(times, pa.timestamp("us", "UTC"))})


@dataclass(frozen=True, slots=True)
class Query:
    """A selection: its bounds by attribute, both inclusive; an equality has equal ones."""

    bounds: tuple[tuple[str, int, int], ...]
    window: int  # tuples

    @property
    def where(self) -> str:
        tests = [
            f"{name} = {low}" if low == high else f"{name} >= {low} AND {name} <= {high}"
            for name, low, high in self.bounds
        ]
        return " AND ".join(tests)

    def create(self, name: str, policy: str = "auto") -> str:
        return (
            f"CREATE CONTINUOUS QUERY {name} WITH (materialize = '{policy}') AS"
            f" SELECT * FROM r [RANGE {self.window * STEP} MICROSECONDS] WHERE {self.where}"
        )

    def count(self, table: pa.Table) -> int:
        """How many of the last rows satisfy it: the answer's size, found without any engine."""
        part = table.slice(max(0, table.num_rows - self.window))
        found = np.ones(part.num_rows, bool)
        for name, low, high in self.bounds:
            values = part[name].to_numpy()
            found &= (values >= low) & (values <= high)
        return int(found.sum())


def constant(rng: random.Random) -> int:
    """A multiple of 32 in one case of five: some items are more interesting than others."""
    return rng.choice(range(0, 256, 32)) if rng.random() < 0.2 else rng.randint(0, 255)


def equality(rng: random.Random, factors: int, window: int) -> Query:
    names = rng.sample(ATTRIBUTES, factors)
    return Query(tuple((name, c := constant(rng), c) for name in names), window)


def interval(rng: random.Random, factors: int, window: int) -> Query:
    names, bounds = rng.sample(ATTRIBUTES, factors), []
    for name in names:
        low = constant(rng)
        bounds.append((name, low, low + rng.randint(1, 255)))
    return Query(tuple(bounds), window)
