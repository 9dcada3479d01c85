"""Section 6: MAX over any window of retained data, by the ranked tree, which is the pyramid of panes.

The same window is also read from its rows, by a pull SELECT, whose cost grows with the window.
"""

from __future__ import annotations

import random
import statistics
import time
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

import weft
from bench.psoup.data import START, STEP, rows
from bench.psoup.options import Sizes
from bench.psoup.stage import PSoupStage
from bench.stage import Tell

PUSHES = 8


def measure(stage: PSoupStage, sizes: Sizes, tell: Tell) -> dict:
    """Medians in milliseconds of reads at random instants, no two alike."""
    rng = random.Random(6)
    with stage.warehouse() as db:
        tell(f"registering {len(sizes.ranked)} queries")
        db.sql(";\n".join(create(window) for window in sizes.ranked))
        every = filled(db, sizes.retained, tell)
        points = []
        for window in sizes.ranked:
            tell(f"reading windows of {window:,} tuples")
            points.append(point(db, every, window, rng, sizes.instants))
    return {"rows": sizes.retained, "points": points}


def create(window: int) -> str:
    return (
        f"CREATE CONTINUOUS QUERY m{window} AS"
        f" SELECT max(a) AS m, count(*) AS n FROM r [RANGE {window * STEP} MICROSECONDS]"
    )


def filled(db: weft.Database, count: int, tell: Tell) -> pa.Table:
    tables = []
    for number in range(PUSHES):
        tell(f"push {number + 1} of {PUSHES}")
        tables.append(rows(number * (count // PUSHES), count // PUSHES))
        db.push("r", tables[-1])
        db.run()
    return pa.concat_tables(tables)


def point(db: weft.Database, every: pa.Table, window: int, rng: random.Random, most: int) -> dict:
    times: dict[str, list[float]] = {"tree": [], "rows": []}
    query = db.query(f"m{window}")
    for number in range(most + 1):
        last = rng.randrange(window, every.num_rows)  # the window ends with this row
        part = every.slice(last - window + 1, window)["a"]
        wanted = {"m": pc.max(part).as_py(), "n": window}
        at = instant(last)
        select = (
            f"SELECT max(a) AS m, count(*) AS n FROM r WHERE ts > TIMESTAMPTZ"
            f" '{instant(last - window).isoformat()}' AND ts <= TIMESTAMPTZ '{at.isoformat()}'"
        )
        for way, read in (
            ("tree", lambda at=at: query.results(at=at)),
            ("rows", lambda select=select: db.sql(select)),
        ):
            begun = time.perf_counter()
            found = read()
            taken = (time.perf_counter() - begun) * 1000
            assert found.to_pylist() == [wanted], (window, way, found.to_pylist(), wanted)
            times[way] += [taken] if number else []  # the first warms up
    return {"x": window, **{way: statistics.median(taken) for way, taken in times.items()}}


def instant(number: int) -> datetime:
    """The event time of a row."""
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=START + number * STEP)
