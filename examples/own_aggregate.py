"""An aggregate of one's own: the volume-weighted average price.

Declared by its algebra (what is kept, how it merges, how it is finished), it is incremental and
shared like the built-in ones: `volume` and `vwap` keep one sum of quantities between them.
"""

import sys
import tempfile

import weft

TRADES = [  # symbol, price, quantity, second
    ("ACME", 10.0, 100, 5),
    ("ACME", 11.0, 300, 20),
    ("INIT", 50.0, 10, 40),
    ("ACME", 12.0, 200, 70),
    ("INIT", 54.0, 30, 80),
]


def main(warehouse=None, spark=None):
    with weft.connect(warehouse or tempfile.mkdtemp(), spark=spark) as db:
        db.sql("""
            CREATE STREAM trades (sym STRING, price DOUBLE, qty INT, ts TIMESTAMP,
                                  WATERMARK FOR ts AS ts);

            CREATE AGGREGATE vwap(price DOUBLE, qty INT)
              WITH STATISTICS (pv DOUBLE = sum(price * qty), q BIGINT = sum(qty))
              FINISH pv / nullif(q, 0);

            CREATE CONTINUOUS QUERY weighted AS
            SELECT sym, vwap(price, qty) AS price
            FROM trades [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY sym;

            CREATE CONTINUOUS QUERY volume AS
            SELECT sym, sum(qty) AS qty
            FROM trades [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY sym;
        """)
        db.push("trades", [row(*trade) for trade in TRADES])
        db.run()
        db.advance("trades", "2026-01-01T10:02:00Z")
        for window in sorted(db.query("weighted").history().to_pylist(), key=str):
            end = window["window_end"]
            print(f"{end:%H:%M} {window['sym']} {window['price']}")
        shared = """
            SELECT c.statistic, count(DISTINCT q.name) AS readers
            FROM weft.group_columns c JOIN weft.routes r ON r.node_id = c.node_id
              JOIN weft.queries q ON q.class_id = r.class_id
            GROUP BY c.statistic ORDER BY c.statistic"""
        for found in db.sql(shared).to_pylist():
            print(f"kept: {found['statistic']}, in a node that {found['readers']} queries read")


def row(sym, price, qty, second):
    ts = f"2026-01-01T10:{second // 60:02}:{second % 60:02}Z"
    return {"sym": sym, "price": price, "qty": qty, "ts": ts}


if __name__ == "__main__":
    main(*sys.argv[1:2])
