"""The query sets: seed queries as an analyst would write them, varied in their parameters.

As in the paper, few shapes and many variants: other dimensions, other statistics, other selections,
some of which select nothing. The paper's self-joins are left out: they are no aggregates of one
stream, and Weft recomputes them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from bench.argus.data import FED, Dataset

SEED = 3
ATTEMPTS = 200  # draws for each query before the seeds are called exhausted


@dataclass(frozen=True, slots=True)
class Seed:
    """A question: by what it may be grouped, what is asked, which rows it may be about."""

    dimensions: tuple[tuple[str, ...], ...]
    statistics: tuple[tuple[str, ...], ...]
    selections: tuple[tuple[str, tuple], ...]  # a condition and the values of its parameter

    def vary(self, dice: random.Random, stream: str) -> str:
        condition, values = dice.choice(self.selections)
        where = condition.format(dice.choice(values)) if values else condition
        return select(stream, dice.choice(self.dimensions), dice.choice(self.statistics), where)


def select(
    stream: str, dimensions: tuple[str, ...], statistics: tuple[str, ...], where: str = ""
) -> str:
    names = [f"{expression} AS d{i}" for i, expression in enumerate(dimensions)]
    names += [f"{expression} AS a{i}" for i, expression in enumerate(statistics)]
    condition = f" WHERE {where}" if where else ""
    return f"SELECT {', '.join(names)} FROM {stream}{condition} GROUP BY {', '.join(dimensions)}"


DAY, WEEK, MONTH = (f"date_trunc('{unit}', ts)" for unit in ("day", "week", "month"))
ALL = ("", ())
AMOUNTS = (500, 1_000, 5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000)

FED_SEEDS = (
    Seed(  # who moves much money
        (("account_id",), ("account_id", "type"), ("account_id", MONTH), ("account_id", WEEK)),
        (
            ("avg(amount)", "count(*)"),
            ("sum(amount)",),
            ("max(amount)", "min(amount)"),
            ("stddev(amount)", "avg(amount)"),
        ),
        (ALL, ("amount > {}", AMOUNTS), ("type = '{}'", ("PRIJEM", "VYDAJ", "VYBER"))),
    ),
    Seed(  # what kinds of transfers there are, and how they change
        (("type",), ("type", "operation"), ("operation", MONTH), ("type", "operation", DAY)),
        (("count(*)", "sum(amount)"), ("avg(amount)",), ("stddev(amount)", "max(amount)")),
        (ALL, ("amount > {}", AMOUNTS), ("balance < {}", (-1_000, 0, 10_000, 50_000))),
    ),
    Seed(  # transfers to other banks
        (("bank",), ("bank", MONTH), ("bank", "k_symbol"), ("account_id", "bank")),
        (("sum(amount)", "count(*)"), ("avg(amount)", "stddev(amount)"), ("max(amount)",)),
        (("bank IS NOT NULL", ()), ("bank = '{}'", ("AB", "EF", "OP", "ST", "ZZ"))),
    ),
    Seed(  # standing orders and pensions
        (("k_symbol",), ("k_symbol", MONTH), ("account_id", "k_symbol"), ("k_symbol", WEEK)),
        (("avg(amount)", "count(*)"), ("sum(amount)",), ("min(amount)", "max(amount)")),
        (ALL, ("k_symbol = '{}'", ("SIPO", "UROK", "DUCHOD", "UVER", "LEASING"))),
    ),
    Seed(  # accounts that run low
        (("account_id",), ("account_id", MONTH), (MONTH,), (DAY,), (WEEK, "type")),
        (("min(balance)", "avg(balance)"), ("stddev(balance)", "count(*)"), ("max(balance)",)),
        (ALL, ("balance < {}", (-5_000, -1_000, 0, 1_000, 5_000, 20_000))),
    ),
)
MED_SEEDS = (
    Seed(  # how long they stay
        (("gender",), ("age", "gender"), ("admission", MONTH), ("outcome", "rural", "gender")),
        (("avg(stay)", "count(*)"), ("stddev(stay)", "max(stay)"), ("sum(icu)", "avg(icu)")),
        (ALL, ("age > {}", (40, 60, 80, 100, 120)), ("stay > {}", (3, 7, 14, 30, 99))),
    ),
    Seed(  # outbreaks: admissions by day
        ((DAY,), (DAY, "admission"), (WEEK, "rural"), (MONTH, "outcome", "gender")),
        (("count(*)",), ("count(*)", "avg(age)"), ("avg(stay)", "max(icu)")),
        (
            ALL,
            ("acs = {}", (0, 1)),
            ("heart_failure = {}", (0, 1)),
            ("outcome = '{}'", ("EXPIRY", "DAMA", "DISCHARGE", "UNKNOWN")),
        ),
    ),
    Seed(  # patients who come again
        (("patient",), ("patient", "outcome"), ("patient", MONTH), ("patient", "admission")),
        (("count(*)",), ("sum(stay)", "count(*)"), ("max(stay)", "min(age)")),
        (ALL, ("dm = {}", (0, 1)), ("ckd = {}", (0, 1)), ("age > {}", (70, 80, 90, 111))),
    ),
    Seed(  # values of the laboratory
        (("age",), ("age", "gender"), ("dm", "htn", "cad"), ("outcome", MONTH), ("age", DAY)),
        (
            ("avg(glucose)", "stddev(glucose)"),
            ("avg(urea)", "max(urea)"),
            ("avg(hb)", "min(hb)", "count(hb)"),
        ),
        (ALL, ("glucose > {}", (100, 150, 200, 400, 5_000)), ("urea > {}", (40, 80, 200))),
    ),
)
SEEDS = {"fed": FED_SEEDS, "med": MED_SEEDS}


def generate(dataset: Dataset, count: int) -> list[str]:
    """`count` distinct queries; more of them begin with the same ones."""
    dice = random.Random(SEED)
    seeds = SEEDS[dataset.name]
    found: dict[str, None] = {}
    for attempt in range(count * ATTEMPTS):
        if len(found) == count:
            break
        found.setdefault(seeds[attempt % len(seeds)].vary(dice, dataset.name))
    assert len(found) == count, f"the seeds of {dataset.name} give only {len(found)} queries"
    return list(found)


ASKED = ("avg(amount)", "sum(amount)", "count(*)")
# B follows from A: it has fewer of its dimensions and the same statistics (Table 5).
PAIRS = {
    "account by month → account": (
        select(FED.name, ("account_id", MONTH), ASKED),
        select(FED.name, ("account_id",), ASKED),
    ),
    "account by type and operation → account by type": (
        select(FED.name, ("account_id", "type", "operation"), ASKED),
        select(FED.name, ("account_id", "type"), ASKED),
    ),
}
# C follows from neither A: what two queries in one batch gain without any derivation. It has about
# as many groups as B.
CONTROL = select(FED.name, ("floor(amount / 10)",), ASKED)
