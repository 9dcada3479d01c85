"""A shared query answers what its recompute plan answers: fold by parts, merge, finish, compare.

The same rows, the same windows; output columns, their names, types and rows must all be equal, on
Spark and, where the finish can be said there, on DuckDB.
"""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import pytest

from weft.logical.relations import Column, Kind, Relation
from weft.plan.recompute import RecomputePlan, plan_recompute
from weft.plan.share import SharedQuery, share
from weft.results import sketches
from weft.sql.bind import bind
from weft.sql.parse import parse

STREAM = Relation(
    Kind.STREAM,
    "trades",
    (
        Column("sym", "STRING"), Column("venue", "STRING"), Column("price", "DOUBLE"),
        Column("qty", "INT"), Column("big", "BIGINT"), Column("amount", "DECIMAL(10,2)"),
        Column("n", "STRUCT<aB: INT, c: STRING>"), Column("ts", "TIMESTAMP"),
    ),
    "ts",
)  # fmt: skip
ROWS = """
    SELECT concat('s', id % 5) sym, IF(id % 7 = 0, NULL, concat('v', id % 3)) venue,
      CAST(id % 100 AS DOUBLE) / 7 price, CAST(IF(id % 11 = 0, 0, id % 50) AS INT) qty,
      id * 1000 big, CAST(id % 1000 / 8 AS DECIMAL(10,2)) amount,
      named_struct('aB', CAST(id % 4 AS INT), 'c', 'x') n, timestamp_seconds(id * 13) ts,
      timestamp_seconds(id * 13) _weft_time, id div 100 _weft_tick, id _weft_ord,
      CAST(id % 6 AS INT) part
    FROM range(0, 1500)"""
WINDOWED = """
    SELECT *, date_trunc('hour', ts) AS _weft_ws_0,
      date_trunc('hour', ts) + INTERVAL 1 HOUR AS _weft_we_0 FROM traded"""
HOUR = "trades [RANGE 1 HOUR SLIDE 1 HOUR]"
ON_BOTH = [
    f"SELECT sym, avg(price) a, sum(big) b FROM {HOUR} WHERE qty > 3 GROUP BY sym HAVING count(*) > 2",
    "SELECT count(*) n, sum(qty) q, max(amount) m FROM trades",
    f"SELECT upper(venue) u, n.aB f, round(avg(amount), 3) r, count(DISTINCT sym) c FROM {HOUR} GROUP BY 1, 2",
    "SELECT date_trunc('hour', ts) d, lower(sym) s, count(*) n FROM trades GROUP BY 1, LOWER( sym )",
    f"SELECT venue, stddev(price) d, corr(price, qty) c FROM {HOUR} GROUP BY venue",
    "SELECT sym, sum(1 / qty) r, count(*) FILTER (WHERE 10 / qty > 1) f FROM trades WHERE qty <> 0 GROUP BY sym",
    "SELECT sym, count(*) n FROM trades GROUP BY sym ORDER BY n DESC, sym LIMIT 3",
    f"SELECT DISTINCT venue, qty > 25 h FROM {HOUR}",
    "SELECT n, count(*) c FROM trades GROUP BY n",
    "SELECT sym, sum(qty) s, s * 2 t, CASE WHEN s > 100 THEN 'hi' ELSE venue END c FROM trades GROUP BY sym, venue",
    "SELECT qty div 10 b, hour(ts) h, min(price) + max(price) w FROM trades GROUP BY ALL HAVING h < 5",
    "SELECT count(*) n, sum(amount) a, avg(qty) q FROM trades WHERE qty > 1000",
    "SELECT venue AS `we ird`, sum(qty) AS `select` FROM trades AS `T x` GROUP BY `T x`.venue",
    f"SELECT any(qty > 48) a, every(qty >= 0) e, bit_xor(qty) x, count_if(qty > 3) c FROM {HOUR}",
    "SELECT sym || '-' || venue k, mean(qty) m FROM trades GROUP BY sym || '-' || venue",
    "SELECT sum(price) p, approx_top_k(sym) k FROM trades WHERE qty > 1000",
]  # fmt: skip
ON_SPARK = [
    f"SELECT window_start w, count(*) n FROM {HOUR} WHERE window_end > '1970-01-01 03:00:00' AND qty > 1",
    f"SELECT sym, count(*) n, rank() OVER (ORDER BY count(*) DESC, sym) r FROM {HOUR} GROUP BY sym",
    "SELECT max(struct(price, qty)) m, min(n) k FROM trades",
    "SELECT sum(sum(qty)) OVER () t, sym FROM trades GROUP BY sym",
]  # fmt: skip


class Names:
    def find(self, name: str) -> Relation | None:
        return STREAM if name.lower() == "trades" else None

    def all(self) -> list[str]:
        return ["trades"]


@pytest.fixture(scope="module")
def traded(spark):
    spark.sql(ROWS).cache().createOrReplaceTempView("traded")
    yield spark
    spark.catalog.uncacheTable("traded")


def decompose(spark, text: str) -> tuple[RecomputePlan, SharedQuery]:
    statement = parse(f"CREATE CONTINUOUS QUERY q AS {text}")[0]
    plan = plan_recompute(bind(statement.select, Names()))

    def type_of(asked: str) -> str:
        return spark.table("traded").selectExpr(asked).schema[0].dataType.simpleString()

    return plan, share(plan, type_of)


def fold(query: SharedQuery, is_windowed: bool) -> str:
    edges = ["_weft_ws_0 AS _weft_start", "_weft_we_0 AS _weft_end"] if is_windowed else []
    groups = ["part", *(f"{d.expression} AS {d.column}" for d in query.dimensions), *edges]
    columns = [*groups, *(f"{s.fold} AS {s.column}" for s in query.statistics)]
    where = f" WHERE {query.predicate.sql('spark')}" if query.predicate is not None else ""
    positions = ", ".join(str(i + 1) for i in range(len(groups)))
    return f"SELECT {', '.join(columns)} FROM weft_s0{where} GROUP BY {positions}"


def merge(query: SharedQuery, is_windowed: bool, source: str, merges: list[str]) -> str:
    groups = [d.column for d in query.dimensions]
    groups += ["_weft_start", "_weft_end"] if is_windowed else []
    columns = groups + [f"{m} AS {s.column}" for s, m in zip(query.statistics, merges, strict=True)]
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    return f"SELECT {', '.join(columns)} FROM {source}{by}"


def plain(value: object) -> object:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.9g}")
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return tuple(plain(v) for v in value)
    return str(value).removesuffix("+00:00") if hasattr(value, "isoformat") else value


def bag(rows) -> list[str]:
    return sorted(repr(plain(tuple(row))) for row in rows)


@pytest.mark.parametrize("text", [*ON_BOTH, *ON_SPARK])
def test_shared_is_recomputed(traded, tmp_path: Path, text: str) -> None:
    spark = traded
    plan, query = decompose(spark, text)
    is_windowed = plan.is_per_window
    spark.sql(WINDOWED if is_windowed else "SELECT * FROM traded").createOrReplaceTempView(
        "weft_s0"
    )
    own = spark.sql(plan.tree.sql("spark"))
    spark.sql(fold(query, is_windowed)).coalesce(1).write.parquet(str(tmp_path / "parts"))
    spark.read.parquet(str(tmp_path / "parts")).createOrReplaceTempView("parts")
    merges = [s.merged() for s in query.statistics]
    spark.sql(merge(query, is_windowed, "parts", merges)).createOrReplaceTempView("weft_m0")
    found = spark.sql(query.finish_spark)
    assert found.schema.simpleString() == own.schema.simpleString()
    expected = bag(own.collect())
    assert bag(found.collect()) == expected
    merges = [s.duck_merged() for s in query.statistics]
    is_readable = query.finish_duck is not None and None not in merges
    assert is_readable == (text in ON_BOTH)
    if is_readable:
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            sketches.register(connection)
            source = f"read_parquet('{tmp_path}/parts/*.parquet')"
            connection.execute(
                f"CREATE VIEW weft_m0 AS {merge(query, is_windowed, source, merges)}"
            )
            assert bag(connection.sql(query.finish_duck).fetchall()) == expected
