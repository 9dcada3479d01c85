"""Shared queries as readable text: what a query becomes in the relation of queries.

plans/share.txt holds blocks: the query, an arrow, and its decomposition. `WEFT_GOLDEN=write pytest
tests/golden` (or `make golden`) rewrites what follows the arrows. Types that Spark would be asked for
are written down in TYPES; tests/spark asks Spark itself.
"""

from __future__ import annotations

import os
from pathlib import Path

from weft.logical.relations import Column, Kind, Relation
from weft.plan.recompute import plan_recompute
from weft.plan.share import CannotShare, share
from weft.sql.bind import bind
from weft.sql.parse import parse

FILE = Path(__file__).with_name("plans") / "share.txt"
ARROW = "---->"
COLUMNS = "sym STRING, venue STRING, price DOUBLE, qty INT, amount DECIMAL(10,2), ts TIMESTAMP"
STREAM = Relation(
    Kind.STREAM, "trades", tuple(Column(*c.split(" ", 1)) for c in COLUMNS.split(", ")), "ts"
)
TABLE = Relation(Kind.TABLE, "symbols", (Column("sym", "STRING"), Column("company", "STRING")))
TYPES = {
    "1 / qty": "double",
    "TRY_DIVIDE(1, qty)": "double",
    "TRY_CAST(venue AS INT)": "int",
    "CAST(venue AS INT)": "int",
    "DATE_TRUNC('DAY', ts)": "timestamp",
    "LOWER(sym)": "string",
    "CAST(NULL AS double) - CAST(NULL AS double)": "double",
    "STRUCT(price AS price, qty AS qty)": "struct<price:double,qty:int>",
    "CAST(NULL AS decimal(20,2)) / CAST(NULL AS bigint)": "decimal(38,20)",
    "CAST(NULL AS double) / CAST(NULL AS bigint)": "double",
    "price * qty": "double",
    "qty * price": "double",
}


class Names:
    def find(self, name: str) -> Relation | None:
        return {"trades": STREAM, "symbols": TABLE}.get(name.lower())

    def all(self) -> list[str]:
        return ["trades", "symbols"]


def type_of(text: str) -> str:
    return TYPES[text.strip("()")] if text not in TYPES else TYPES[text]


def shown(text: str) -> str:
    statement = parse(f"CREATE CONTINUOUS QUERY q AS {text}")[0]
    plan = plan_recompute(bind(statement.select, Names(), statement.emit))
    try:
        query = share(plan, type_of)
    except CannotShare as obstacle:
        return f"not shared: {obstacle.reason}"
    where = query.predicate.sql("spark") if query.predicate is not None else "-"
    notes = [
        *(["one row, also over nothing"] if query.is_global else []),
        *([] if query.is_row_local else ["all rows at once"]),
        *([] if query.is_total else ["may raise an error"]),
    ]
    lines = [f"{query.stream}, {query.window}", f"where      {where}"]
    lines += [f"dimension  {d.column} {d.type} = {d.expression}" for d in query.dimensions]
    for s in query.statistics:
        lines.append(f"statistic  {s.column} {s.type} = {s.fold}")
        lines.append(f"    merge  {s.merge}")
    lines.append(f"finish     {query.finish_spark}")
    lines.append(f"duckdb     {query.finish_duck or '-'}")
    lines += [f"may fail   {column} = {text}" for column, text in query.failures]
    return "\n".join([*lines, *(f"note       {note}" for note in notes)])


def blocks() -> list[tuple[str, str]]:
    pairs = []
    for block in FILE.read_text("utf-8").strip().split("\n\n"):
        query, _, expected = block.partition(f"\n{ARROW}")
        pairs.append((query, expected.strip("\n")))
    return pairs


def test_shares() -> None:
    made = [(query, shown(query)) for query, _ in blocks()]
    if os.environ.get("WEFT_GOLDEN") == "write":
        FILE.write_text("\n\n".join(f"{q}\n{ARROW}\n{f}" for q, f in made) + "\n", "utf-8")
    assert made == blocks(), "if the change is meant, run make golden and review the diff"
