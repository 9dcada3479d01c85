"""Hundreds of standing selections over one stream: matched together, read on demand, at any instant.

Each customer watches one symbol above a price of their own, over the last minute. A customer who
comes back reads the answer of now, of any instant before, or what has changed since they left.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import weft

CUSTOMERS = 300
SYMBOLS = ("ACME", "INIT", "HOOL")


def watchlists() -> str:
    """One script for all of them: they are registered together."""
    return ";\n".join(
        f"CREATE CONTINUOUS QUERY customer_{n} AS SELECT sym, price, ts FROM trades [RANGE 1 MINUTE]"
        f" WHERE sym = '{SYMBOLS[n % 3]}' AND price > {n} ORDER BY ts"
        for n in range(CUSTOMERS)
    )


def main(warehouse: Path, spark=None) -> None:
    with weft.connect(warehouse, spark=spark) as db:
        db.sql("""
            CREATE STREAM trades (sym STRING, price DOUBLE, ts TIMESTAMP,
                                  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS)
        """)
        db.push("trades", [trade(second) for second in range(0, 60)])
        db.run()
        db.sql(watchlists())  # after the first minute: old data for new queries
        mine = db.query("customer_102")
        print(f"now: {mine.results().num_rows} trades of ACME above 102")
        token = mine.subscribe().token
        for change in mine.subscribe(token):
            token = change.token

        db.push("trades", [trade(second) for second in range(60, 120)])
        db.run()
        print(f"a minute later: {mine.results().num_rows}")
        print(f"at 10:00:30 it was: {mine.results(at='2026-01-01T10:00:30Z').num_rows}")
        kinds = [change.kind for change in mine.subscribe(token)]
        print(f"since then {kinds.count('insert')} came and {kinds.count('retract')} went")

        db.sql("ALTER QUERY customer_102 SET (materialize = 'complete')")
        db.advance("trades", "2026-01-01T10:01:56Z")
        keeps = [line for line in mine.explain().splitlines() if line.startswith("keeps")]
        print(*keeps)
        found = db.sql("SELECT count(*) AS n FROM weft.queries WHERE strategy LIKE 'selected%'")
        print(f"{found['n'][0]} queries, each read from the rows that are there once")


def trade(second: int) -> dict:
    minute, rest = divmod(second, 60)
    return {
        "sym": SYMBOLS[second % 3],
        "price": 100.0 + second % 7,
        "ts": f"2026-01-01T10:{minute:02}:{rest:02}Z",
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder) / "warehouse")
