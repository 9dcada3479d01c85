"""Plans as readable text: what a query becomes before Spark sees it.

Each file in plans/ holds blocks: the query, an arrow, and what the planner makes of it.
`WEFT_GOLDEN=write pytest tests/golden` (or `make golden`) rewrites what follows the arrows.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import weft
from weft.errors import WeftError
from weft.logical.relations import Column, Kind, Relation
from weft.plan.recompute import RecomputePlan, plan_recompute
from weft.sql.bind import bind
from weft.sql.parse import parse

FOLDER = Path(__file__).with_name("plans")
ARROW = "---->"


def columns(text: str) -> tuple[Column, ...]:
    return tuple(Column(*part.split(" ", 1)) for part in text.split(", "))


class FixedNames:
    relations = (
        Relation(Kind.STREAM, "s", columns("k STRING, v INT, ts TIMESTAMP"), "ts"),
        Relation(Kind.STREAM, "r", columns("k STRING, w INT, ts TIMESTAMP"), "ts"),
        Relation(Kind.TABLE, "t", columns("k STRING, name STRING")),
        Relation(Kind.TABLE, "u", columns("k STRING, lim INT"), is_retroactive=True),
    )

    def find(self, name: str) -> Relation | None:
        return next((r for r in self.relations if r.name == name.lower()), None)

    def all(self) -> list[str]:
        return [r.name for r in self.relations]


def plan_of(text: str) -> RecomputePlan:
    statement = parse(f"CREATE CONTINUOUS QUERY q AS {text}")[0]
    return plan_recompute(bind(statement.select, FixedNames(), statement.emit))


def lifted(text: str) -> str:
    """The shape and why, then the tree that Spark runs."""
    plan = plan_of(text)
    return f"{plan.shape}: {plan.reason}\n{plan.tree.sql('spark', pretty=True)}"


def arrival(text: str) -> str:
    """The tree, then the helper columns each source must bring."""
    plan = plan_of(text)
    helpers = [
        f"{p.source.placeholder} = {p.source.relation.name}, tick {p.tick}, validity {p.validity}"
        for p in plan.sources
    ]
    return "\n".join([plan.tree.sql("spark", pretty=True), *helpers])


def order(text: str) -> str:
    """How the answer is sorted and cut when it is read."""
    plan = plan_of(text)
    keys = [
        f"{k.column} {'desc' if k.is_descending else 'asc'} nulls {'first' if k.is_nulls_first else 'last'}"
        for k in plan.order
    ]
    found = [plan.tree.sql("spark"), f"sort   {', '.join(keys) or '-'}"]
    if plan.limit is not None or plan.offset:
        found.append(f"limit  {plan.limit} offset {plan.offset}, for each window")
    return "\n".join(found)


def explained(text: str, db: weft.Database) -> str:
    return "\n".join(db.sql(f"EXPLAIN {text}").column("plan").to_pylist())


def blocks(path: Path) -> list[tuple[str, str]]:
    pairs = []
    for block in path.read_text("utf-8").strip().split("\n\n"):
        query, _, expected = block.partition(f"\n{ARROW}")
        pairs.append((query, expected.strip("\n")))
    return pairs


@pytest.fixture
def renderers(tmp_path: Path):
    with weft.connect(tmp_path) as db:
        db.sql("""
            CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
            CREATE STREAM r (k STRING, w INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
            CREATE TABLE t (k STRING, name STRING);
            CREATE TABLE u (k STRING, lim INT) RETROACTIVE""")
        yield {
            "lift": lifted,
            "arrival": arrival,
            "order": order,
            "explain": lambda text: explained(text, db),
        }


@pytest.mark.parametrize("topic", ["lift", "arrival", "order", "explain"])
def test_plans(topic: str, renderers) -> None:
    path = FOLDER / f"{topic}.txt"
    made = []
    for query, _ in blocks(path):
        try:
            found = renderers[topic](query)
        except WeftError as error:
            found = str(error)
        made.append((query, "\n".join(line for line in found.split("\n") if line.strip())))
    if os.environ.get("WEFT_GOLDEN") == "write":
        path.write_text("\n\n".join(f"{q}\n{ARROW}\n{f}" for q, f in made) + "\n", "utf-8")
    assert made == blocks(path), "if the change is meant, run make golden and review the diff"
