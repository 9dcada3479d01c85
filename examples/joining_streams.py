"""Joining streams: orders and payments, within an hour of each other.

`paid` pairs them inside a sliding window; `unpaid` is what is left: orders without a payment.
Both are answers as of the streams' clock, the smaller of the two.
"""

import sys
import tempfile

import weft


def main(warehouse=None, spark=None):
    with weft.connect(warehouse or tempfile.mkdtemp(), spark=spark) as db:
        db.sql("""
            CREATE STREAM orders (id INT, customer STRING, amount DOUBLE, at TIMESTAMP,
                                  WATERMARK FOR at AS at);
            CREATE STREAM payments (order_id INT, amount DOUBLE, at TIMESTAMP,
                                    WATERMARK FOR at AS at);

            CREATE CONTINUOUS QUERY paid AS
            SELECT o.id, o.customer, p.amount, p.at
            FROM orders [RANGE 1 HOUR] AS o JOIN payments [RANGE 1 HOUR] AS p ON o.id = p.order_id
            ORDER BY id;

            CREATE CONTINUOUS QUERY unpaid AS
            SELECT o.id, o.customer, o.amount
            FROM orders [RANGE 1 HOUR] AS o
            WHERE NOT EXISTS (SELECT 1 FROM payments [RANGE 1 HOUR] AS p WHERE p.order_id = o.id)
            ORDER BY id;
        """)
        db.push(
            "orders",
            [
                order(1, "Ada", 20, "10:00"),
                order(2, "Ben", 35, "10:10"),
                order(3, "Cem", 15, "10:30"),
            ],
        )
        db.push("payments", [payment(1, 20, "10:05"), payment(3, 15, "10:30")])
        db.run()
        show(db, "10:30")

        db.push("payments", [payment(2, 35, "10:40")])
        db.advance("orders", "2026-01-01T10:40:00Z")  # no new order came: say so
        db.run()
        show(db, "10:40")


def order(number, customer, amount, time):
    return {
        "id": number,
        "customer": customer,
        "amount": float(amount),
        "at": f"2026-01-01T{time}:00Z",
    }


def payment(number, amount, time):
    return {"order_id": number, "amount": float(amount), "at": f"2026-01-01T{time}:00Z"}


def show(db, time):
    names = {name: db.query(name).results()["customer"].to_pylist() for name in ("paid", "unpaid")}
    print(f"at {time}: paid {names['paid']}, unpaid {names['unpaid']}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
