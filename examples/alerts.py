"""Alerts: a window that speaks before it closes, and a subscriber that comes back.

A sensor reports every minute. `overheating` counts hot readings per ten minutes and says so as
soon as there are three (EMIT CHANGES); a later reading corrects what was said.
"""

import sys
import tempfile

import weft


def main(warehouse=None, spark=None):
    with weft.connect(warehouse or tempfile.mkdtemp(), spark=spark) as db:
        db.sql("""
            CREATE STREAM readings (sensor STRING, celsius DOUBLE, at TIMESTAMP,
                                    WATERMARK FOR at AS at - INTERVAL 1 MINUTE);

            CREATE CONTINUOUS QUERY overheating AS
            SELECT sensor, count(*) AS hot, max(celsius) AS peak
            FROM readings [RANGE 10 MINUTES SLIDE 10 MINUTES]
            WHERE celsius > 80
            GROUP BY sensor
            HAVING count(*) >= 3
            EMIT CHANGES;
        """)
        alerts = db.query("overheating")

        push(db, "boiler", [75, 82, 85, 91])
        token = tell("at first", alerts.subscribe())

        push(db, "boiler", [93, 79], start=4)
        tell("after two more readings", alerts.subscribe(token))


def push(db, sensor, values, start=0):
    rows = [
        {"sensor": sensor, "celsius": float(value), "at": f"2026-01-01T10:{start + minute:02}:00Z"}
        for minute, value in enumerate(values)
    ]
    db.push("readings", rows)
    db.run()


def tell(when, changes):
    """Print the changes; the token says where to go on, also in another process."""
    print(f"{when}:")
    for change in changes:
        row = change.row
        print(
            f"  {change.kind:<8} {row['sensor']}: {row['hot']} hot readings, up to {row['peak']} °C"
        )
    return changes.token


if __name__ == "__main__":
    main(*sys.argv[1:2])
