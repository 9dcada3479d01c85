"""The queries of the windows benchmark: the same ones, in the same order, on every machine."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

SLIDES = (10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900)
KEYS = ("sym", "venue", None)  # grouped by symbol, venue or nothing, in turn
SEED = 3
DISTINCT_OF_1000 = 841  # of the plain ones; says that the generator is the issue's

AGGREGATES = (
    "count(*) AS n",
    "sum(price) AS total",
    "min(price) AS lowest",
    "max(price) AS highest",
)
# What different people want of one class: they differ in the SELECT list and in HAVING alone.
FINISHES = (
    (AGGREGATES, ""),
    (("count(*) AS n", "sum(price) AS total"), ""),
    (("max(price) - min(price) AS spread",), ""),
    (("sum(price) / count(*) AS mean", "count(*) AS n"), " HAVING count(*) > 10"),
)


@dataclass(frozen=True, slots=True)
class WindowQuery:
    """A hopping window of so many seconds, a group-by, and perhaps a bound on the quantity."""

    slide: int
    length: int
    key: str | None
    at_least: int | None = None
    finish: int = 0

    def select(self) -> str:
        """The query in Weft's SQL."""
        aggregates, having = FINISHES[self.finish]
        columns = ", ".join(([self.key] if self.key else []) + list(aggregates))
        where = f" WHERE qty >= {self.at_least}" if self.at_least is not None else ""
        group = f" GROUP BY {self.key}" if self.key else ""
        window = f"[RANGE {self.length} SECONDS SLIDE {self.slide} SECONDS]"
        return f"SELECT {columns} FROM trades {window}{where}{group}{having}"


def generate(count: int, mix: str = "plain") -> list[WindowQuery]:
    """Queries 0 … count − 1. In `mixed`, every second one also has a bound on the quantity."""
    dice = random.Random(SEED)
    found = []
    for i in range(count):
        slide = dice.choice(SLIDES)
        length = slide + 5 * dice.randint(0, 9 * slide // 5)
        at_least = 100 * dice.randint(1, 9) if mix == "mixed" and i % 2 else None
        found.append(WindowQuery(slide, length, KEYS[i % len(KEYS)], at_least))
    check_generator(found, mix)
    return found


def check_generator(queries: list[WindowQuery], mix: str) -> None:
    if mix == "plain" and len(queries) >= 1000:
        distinct = len(set(queries[:1000]))
        assert distinct == DISTINCT_OF_1000, f"{distinct} distinct queries, not {DISTINCT_OF_1000}"


def generate_of_classes(count: int, classes: int) -> list[WindowQuery]:
    """`count` queries of the first `classes` distinct windows, which come round in turn.

    Each round has another finish, so that queries of a class are not copies of one text.
    """
    distinct = list(dict.fromkeys(generate(classes * 3)))[:classes]
    assert len(distinct) == classes, f"only {len(distinct)} distinct queries were generated"
    return [
        replace(distinct[i % classes], finish=i // classes % len(FINISHES)) for i in range(count)
    ]


def script(queries: list[WindowQuery], answers: str) -> str:
    """One script that registers them all, q0 … qN."""
    return ";\n".join(
        f"CREATE CONTINUOUS QUERY q{i} WITH (answers = '{answers}') AS {query.select()}"
        for i, query in enumerate(queries)
    )
