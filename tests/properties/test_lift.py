"""Lifting keeps the law: all windows in one pass answer what window by window answers."""

from __future__ import annotations

import os
import shutil
import tempfile

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from oracle import SECOND, difference, iso
from queries import R, S, T, U, row_queries, window_queries
from test_oracle import rows_of, stream_rows

import weft
from weft.plan import recompute
from weft.plan.lift import CannotLift

EXAMPLES = int(os.environ.get("WEFT_EXAMPLES", "3"))
BASE = 1_767_225_600 * SECOND


def refuse(*_):
    raise CannotLift("a test asks for window by window")


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="WEFT_EXAMPLES" not in os.environ,
    print_blob=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
@given(
    drawn=st.lists(st.one_of(window_queries(), window_queries(), row_queries()), min_size=4, max_size=6),
    first=stream_rows(BASE, 0, S),
    second=stream_rows(BASE, 1, S),
    other=stream_rows(BASE, 1, R),
)  # fmt: skip
def test_lifted_equals_window_by_window(spark, drawn, first, second, other) -> None:
    folder = tempfile.mkdtemp(prefix="weft-lift-")
    db = weft.connect(folder, spark=spark)
    try:
        fill(db, [("s", first + second), ("r", other)])
        for number, query in enumerate(drawn):
            compare(db, f"q{number}", query.weft())
    finally:
        db.close()
        shutil.rmtree(folder, ignore_errors=True)


def fill(db: weft.Database, batches: list[tuple[str, list[dict]]]) -> None:
    for name, columns in (("s", S), ("r", R)):
        listed = ", ".join(f"{c} {t}" for c, t in columns.items())
        db.sql(f"CREATE STREAM {name} ({listed}, WATERMARK FOR ts AS ts)")
    db.sql(f"CREATE TABLE t ({', '.join(f'{c} {k}' for c, k in T.items())})")
    db.sql(f"CREATE TABLE u ({', '.join(f'{c} {k}' for c, k in U.items())}) RETROACTIVE")
    db.sql("INSERT INTO t VALUES ('a', 'p'), ('', 'q'), (NULL, 'p')")
    db.sql("INSERT INTO u VALUES ('a', 1), ('b', 0), ('b', 2)")
    for stream, rows in batches:
        db.push(stream, [{**r, "ts": None if r["ts"] is None else iso(r["ts"])} for r in rows])
    db.sql("UPDATE t SET name = 'late' WHERE k = 'a'")  # after the rows arrived: must not show
    db.run()
    for stream, _ in batches:
        db.advance(stream, iso(BASE + 60 * SECOND))


def compare(db: weft.Database, name: str, sql: str) -> None:
    """Register a query in both shapes over the same history."""
    lifted = db.sql(f"CREATE CONTINUOUS QUERY {name}_lifted AS {sql}")
    real = recompute.lift
    recompute.lift = refuse
    try:
        single = db.sql(f"CREATE CONTINUOUS QUERY {name}_single AS {sql}")
        assert "window by window" in single.explain()
    finally:
        recompute.lift = real
    found = difference(rows_of(single.history()), rows_of(lifted.history()))
    assert not found, f"{sql}\n{found}\n{lifted.explain()}"
