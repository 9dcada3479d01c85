"""Workloads that differ in what decides between plans: slides, groups, predicates, reads, rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

START = 1_767_225_600  # 2026-01-01
COLUMNS = "few STRING, some INT, many INT, v DOUBLE, w INT, ts TIMESTAMP"
ODD = (7, 11, 13, 17, 19, 23, 29, 31)  # slides that have nothing in common
ROUND = (10, 20, 30, 60, 120, 300)


@dataclass(frozen=True, slots=True)
class Workload:
    """Queries over one stream. `rows` is a share of the rows that the command is given."""

    name: str
    about: str
    selects: tuple[str, ...]
    rows: float = 1.0
    seconds: int = 60  # of event time in a batch
    is_eager: bool = False

    def script(self) -> str:
        options = " WITH (answers = 'eager')" if self.is_eager else ""
        return ";\n".join(
            f"CREATE CONTINUOUS QUERY q{i}{options} AS {text}"
            for i, text in enumerate(self.selects)
        )


def select(by: str, slide: int, overlap: int = 1, where: str = "") -> str:
    keys, grouped = (f"{by}, ", f" GROUP BY {by}") if by else ("", "")
    text = f" WHERE {where}" if where else ""
    return (
        f"SELECT {keys}count(*) AS n, sum(v) AS total, max(v) AS top"
        f" FROM s [RANGE {slide * overlap} SECONDS SLIDE {slide} SECONDS]{text}{grouped}"
    )


def bits(count: int) -> tuple[str, ...]:
    """Predicates that no index takes apart, and that have nothing to do with each other."""
    return tuple(f"(w % {7 + 2 * i} < {3 + i}) <> (v > {40 * i})" for i in range(count))


WORKLOADS = (
    Workload("few slides", "4 round slides, 20 groups",
             tuple(select("few", s, 4) for s in ROUND[:4])),
    Workload("odd slides", "8 slides without a common divisor, 20 groups",
             tuple(select("few", s, 6) for s in ODD)),
    Workload("odd slides, slow", "the same with a hundredth of the rows",
             tuple(select("few", s, 6) for s in ODD), rows=0.01),
    Workload("many groups", "4 odd slides, as many groups as rows",
             tuple(select("many", s, 3) for s in ODD[:4])),
    Workload("groups and slides", "large groups at a round slide, small ones at odd slides",
             (select("some, few", 60), select("some, few", 120, 2),
              *(select("few", s, 4) for s in ODD[:4]), select("", 1, 60))),
    Workload("predicates", "24 predicates that no index takes apart, 20 groups",
             tuple(select("few", 60, 1, where) for where in bits(24))),
    Workload("predicates, many groups", "8 of them over 500 groups, two slides",
             tuple(select("some", s, 1, where) for s in (30, 60) for where in bits(8))),
    Workload("eager", "6 round slides, 500 groups, windows merged as they close",
             tuple(select("some", s, 4) for s in ROUND), is_eager=True),
    Workload("eager, odd slides", "4 odd slides, 500 groups, windows merged as they close",
             tuple(select("some", s, 4) for s in ODD[:4]), is_eager=True),
)  # fmt: skip


def batch(workload: Workload, number: int, rows: int) -> pa.Table:
    size = max(50, round(rows * workload.rows))
    dice = np.random.default_rng([5, number])
    span = workload.seconds * 1_000_000
    micros = START * 1_000_000 + number * span + np.arange(size) * span // size
    names = pa.array([f"group {i}" for i in range(20)])
    return pa.table(
        {
            "few": names.take(pa.array(dice.integers(0, 20, size))),
            "some": pa.array(dice.integers(0, 500, size, dtype=np.int32)),
            "many": pa.array(dice.integers(0, 10**7, size, dtype=np.int32)),
            "v": dice.random(size) * 1000,
            "w": pa.array(dice.integers(0, 1000, size, dtype=np.int32)),
            "ts": pa.array(micros, pa.timestamp("us", tz="UTC")),
        }
    )
