"""Tables and time: the price that held when the order came, or today's name for the product.

`prices` is non-retroactive, the default: an order is worth what its product cost when the order
arrived. `products` is RETROACTIVE: a corrected name shows in answers about the past, too.
"""

import sys
import tempfile

import weft


def main(warehouse=None, spark=None):
    with weft.connect(warehouse or tempfile.mkdtemp(), spark=spark) as db:
        db.sql("""
            CREATE STREAM orders (product INT, pieces INT, at TIMESTAMP, WATERMARK FOR at AS at);
            CREATE TABLE prices (product INT, price DOUBLE);
            CREATE TABLE products (product INT, name STRING) RETROACTIVE;
            INSERT INTO prices VALUES (1, 10.0);
            INSERT INTO products VALUES (1, 'Choclate');

            CREATE CONTINUOUS QUERY turnover AS
            SELECT n.name, sum(o.pieces * p.price) AS turnover
            FROM orders AS o
            JOIN prices AS p ON o.product = p.product
            JOIN products AS n ON o.product = n.product
            GROUP BY n.name;
        """)
        order(db, "10:00")
        show(db, "one order of 2 at 10.0")

        db.sql("UPDATE prices SET price = 20.0 WHERE product = 1")
        order(db, "11:00")
        show(db, "another after the price has doubled: the first still counts at 10.0")

        db.sql("UPDATE products SET name = 'Chocolate' WHERE product = 1")
        show(db, "the name corrected: all of it is renamed")


def order(db, time):
    db.push("orders", [{"product": 1, "pieces": 2, "at": f"2026-01-01T{time}:00Z"}])
    db.run()


def show(db, what):
    print(f"{what}: {db.query('turnover').results().to_pylist()}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
