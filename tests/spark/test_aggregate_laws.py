"""The law of every aggregate: finishing the merged parts of any split is Spark's own answer.

One table holds many cases at once, told apart by a column, so that each example costs a few jobs:
fold by part, merge flat and as a tree (on Spark and on DuckDB), finish, and compare with Spark's own
functions over all the rows, and with the types that Spark's analyser gives them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft
from weft.logical.aggregates import BUILT_IN, CannotShare
from weft.logical.relations import Column, Kind, Relation
from weft.optimizer.factors import EVERYTHING
from weft.optimizer.nodes import EdgeRows
from weft.plan.edges import edge_rows
from weft.plan.recompute import plan_recompute
from weft.plan.share import SharedQuery, share
from weft.results.sketches import register
from weft.sql.bind import bind
from weft.sql.parse import parse

TYPES = {
    "g": ("INT", pa.int32()),
    "i": ("INT", pa.int32()),
    "h": ("SMALLINT", pa.int16()),
    "l": ("BIGINT", pa.int64()),
    "d": ("DOUBLE", pa.float64()),
    "e": ("DOUBLE", pa.float64()),
    "f": ("FLOAT", pa.float32()),
    "m": ("DECIMAL(10,2)", pa.decimal128(10, 2)),
    "w": ("DECIMAL(20,4)", pa.decimal128(20, 4)),
    "y": ("DECIMAL(27,10)", pa.decimal128(27, 10)),
    "s": ("STRING", pa.string()),
    "b": ("BOOLEAN", pa.bool_()),
    "ts": ("TIMESTAMP", pa.timestamp("us", tz="UTC")),
}
STREAM = Relation(Kind.STREAM, "t", tuple(Column(n, sql) for n, (sql, _) in TYPES.items()), "ts")
BY_TIME = "struct(ts, _weft_tick, _weft_ord)"

# what a query asks for → what Spark's own answer is, where it is spelled otherwise
EXACT = {
    "count(*)": None, "count(i)": None, "count(i, s)": None, "count(1)": None, "count_if(d > 0)": None,
    "sum(h)": None, "sum(i)": None, "sum(l)": None, "sum(m)": None, "sum(w)": None,
    "sum(d)": None, "sum(f)": None, "avg(h)": None, "avg(i)": None, "avg(l)": None, "avg(d)": None,
    "avg(f)": None, "avg(m)": None, "avg(w)": None, "mean(m * 3)": None,
    **{f"{f}({c})": None for f in ("min", "max") for c in "hildfmwsb"}, "max(ts)": None,
    "bool_and(b)": None, "bool_or(b)": None, "every(b)": None, "some(b)": None, "any(b)": None,
    "bit_and(i)": None, "bit_or(l)": None, "bit_xor(h)": None,
    "var_pop(d)": None, "var_samp(e)": None, "variance(i)": None, "stddev(e)": None,
    "std(m)": None, "stddev_pop(e)": None, "stddev_samp(f)": None,
    "covar_pop(f, e)": None, "covar_samp(e, i)": None, "corr(e, i)": None,
    **{f"regr_{f}(e, i)": None for f in ("slope", "intercept", "r2", "sxx", "syy", "sxy", "count")},
    "regr_avgx(m, i)": None, "regr_avgy(m, i)": None,
    "first(i)": f"min_by(i, {BY_TIME})", "last(s)": f"max_by(s, {BY_TIME})",
    "first_value(s) IGNORE NULLS": f"min_by(s, {BY_TIME}) FILTER (WHERE s IS NOT NULL)",
    "last_value(m, true)": f"max_by(m, {BY_TIME}) FILTER (WHERE m IS NOT NULL)",
    "any_value(d)": f"min_by(d, {BY_TIME})",
    "min_by(s, i)": "min_by(s, struct(i, ts, _weft_tick, _weft_ord)) FILTER (WHERE i IS NOT NULL)",
    "max_by(m, d)": "max_by(m, struct(d, ts, _weft_tick, _weft_ord)) FILTER (WHERE d IS NOT NULL)",
    "count(DISTINCT s)": None, "count(DISTINCT d)": None, "count(DISTINCT i, b)": None,
    "sum(DISTINCT i)": None, "sum(DISTINCT m)": None, "avg(DISTINCT i)": None,
    "avg(DISTINCT m)": None, "min(DISTINCT m)": None,
    "collect_set(i)": "sort_array(collect_set(i))", "collect_set(s)": "sort_array(collect_set(s))",
    "array_agg(s)": f"transform(array_sort(collect_list(named_struct('k', {BY_TIME}, 'v', s))"
                    " FILTER (WHERE s IS NOT NULL)), x -> x.v)",
    "count(*) FILTER (WHERE i > 0)": None, "sum(d) FILTER (WHERE b)": None,
    "avg(m) FILTER (WHERE NOT b)": None, "var_pop(e) FILTER (WHERE i > 0)": None,
    "count(DISTINCT s) FILTER (WHERE b)": None, "max(h + i / 2)": None,
    "skewness(h)": None, "kurtosis(h)": None, "try_sum(l)": None, "try_avg(i)": None,
}  # fmt: skip
# what is left of a SELECT after its aggregates, for the reading engine
FINISHES = [
    "sum(i) + count(*)", "max(e) - min(e)", "round(avg(e), 2)", "round(avg(d), 3)", "round(avg(m), 2)",
    "round(max(d))", "round(sum(m), 1)", "sum(m) * 2", "sum(m) + count(*)", "sum(m) * max(i)",
    "max(h) * 2", "sum(i) / count(*)", "avg(i) / 2", "100 * sum(h) / count(*)", "max(i) div 7",
    "max(i) % 7", "-max(e)", "max(i) * 1.5", "1 - max(m)", "CASE WHEN count(*) > 2 THEN 'x' ELSE max(s) END",
    "CASE max(i) WHEN 1 THEN 1.5 WHEN 2 THEN 2 END", "if(count(*) > 2, max(h), max(i))",
    "coalesce(max(i), 0)", "coalesce(max(m), 0)", "coalesce(max(d), 0)", "greatest(max(i), count(*))",
    "least(max(d), min(d))", "nullif(count(*), 2)", "abs(min(d))", "abs(min(m))", "sqrt(count(*))",
    "sqrt(max(d))", "CAST(count(*) AS INT)", "CAST(max(m) AS DOUBLE)", "CAST(max(ts) AS DATE)",
    "date_trunc('minute', max(ts))", "concat(max(s), '-', min(s))", "max(s) || 'x'", "max(d) > avg(d)",
    "max(m) > 2.5", "max(d) > 2.5", "max(f) > 2.5", "count(*) IN (1, 2, 3)", "max(i) BETWEEN -1 AND 1.5",
    "max(s) LIKE 'a%'", "max(i) IS NULL AND NOT max(b)", "max(s) = 'a' OR max(d) <> min(d)",
    "max(m) <=> min(m)",
]  # fmt: skip
NOT_PORTABLE = [
    "upper(max(s))", "sum(m) / count(*)", "floor(avg(d))", "CAST(max(d) AS STRING)", "max(s) > 1",
    "max(s) LIKE '%\\\\_%'", "ln(count(*))", "TRY_CAST(max(s) AS INT)", "round(max(d), 9)", "CAST(avg(d) AS INT)",
]  # fmt: skip
EMPTY_STATES = {  # an empty sketch over nothing: global queries do not share them
    "theta_sketch_estimate(theta_sketch_agg(i))": None,
    "bitmap_count(bitmap_construct_agg(CAST(h AS BIGINT) & 1023))": None,
}
ONLY_SPARK = {
    **EMPTY_STATES,
    "sort_array(collect_union(array(i)))": None,
    "avg(y)": None, "sum(y)": None, "max(struct(i, s))": None, "min(array(i, h))": None,
    "listagg(s, ',')": f"CASE WHEN count(s) > 0 THEN array_join(transform(array_sort(collect_list(named_struct('k', {BY_TIME},"
                       " 'v', s)) FILTER (WHERE s IS NOT NULL)), x -> x.v), ',') END",
}  # fmt: skip

NOT_LIFTED = ("mean(m * 3)",)  # what may fail on a row

INTS = st.one_of(st.none(), st.integers(-5, 5), st.integers(-(2**31), 2**31 - 1))
DOUBLES = st.one_of(
    st.none(),
    st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1.5]),
    st.floats(-1e9, 1e9, allow_subnormal=False),
)
TAME = st.one_of(st.none(), st.floats(1e6, 1e6 + 10, width=32), st.integers(-3, 3).map(float))


def decimals(digits: int, scale: int):
    top = 10**digits - 1
    return st.one_of(st.none(), st.integers(-99, 99), st.integers(-top, top)).map(
        lambda u: None if u is None else Decimal(u).scaleb(-scale)
    )


ROW = st.fixed_dictionaries({
    "i": INTS, "h": st.one_of(st.none(), st.integers(-(2**15), 2**15 - 1)),
    "l": st.one_of(st.none(), st.integers(-(2**53), 2**53)), "d": DOUBLES, "e": TAME,
    "f": st.one_of(st.none(), st.floats(-1e6, 1e6, width=32), st.just(math.nan)),
    "m": decimals(10, 2), "w": decimals(20, 4), "y": decimals(27, 10),
    "s": st.one_of(st.none(), st.sampled_from(["", "a", "B", "é", "\U0001f600", "aa"])),
    "b": st.one_of(st.none(), st.booleans()), "seconds": st.integers(0, 3), "part": st.integers(0, 5),
})  # fmt: skip
CASES = st.lists(st.lists(ROW, max_size=9), min_size=8, max_size=40)
START = datetime(2026, 1, 1, tzinfo=UTC)


class Names:
    def find(self, name: str) -> Relation | None:
        return STREAM if name.lower() == "t" else None

    def all(self) -> list[str]:
        return ["t"]


def table_of(cases: list[list[dict]]) -> pa.Table:
    rows = []
    for g, case in enumerate(cases):
        for order, row in enumerate(case):
            made = {k: v for k, v in row.items() if k != "seconds"}
            made |= {"g": g, "ts": START + timedelta(seconds=row["seconds"])}
            made |= {"_weft_time": made["ts"], "_weft_tick": order // 3, "_weft_ord": order}
            rows.append(made)
    schema = pa.schema([
        *((name, arrow) for name, (_, arrow) in TYPES.items()), ("part", pa.int32()),
        ("_weft_time", TYPES["ts"][1]), ("_weft_tick", pa.int64()), ("_weft_ord", pa.int64()),
    ])  # fmt: skip
    return pa.Table.from_pylist(rows, schema)


def shared(spark, asked: list[str]) -> SharedQuery:
    return decomposed(spark, asked)[0]


def decomposed(spark, asked: list[str]) -> tuple[SharedQuery, Callable[[], EdgeRows]]:
    """The shared query, and what makes partials of its rows on the reading engine."""
    columns = ", ".join(f"{text} AS a{i}" for i, text in enumerate(asked))
    statement = parse(f"CREATE CONTINUOUS QUERY q AS SELECT g, {columns} FROM t GROUP BY g")[0]
    plan = plan_recompute(bind(statement.select, Names()))

    def type_of(text: str) -> str:
        return spark.table("laws").selectExpr(text).schema[0].dataType.simpleString()

    query = share(plan, type_of, BUILT_IN)
    return query, lambda: edge_rows(query, EVERYTHING, plan, type_of, BUILT_IN)


def liftable(spark, text: str) -> bool:
    try:
        decomposed(spark, [text])[1]()
    except CannotShare:
        return False
    return True


def same(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def check(found: dict, expected: dict, asked: list[str], how: str) -> None:
    assert found.keys() == expected.keys(), how
    for g, row in expected.items():
        for text, mine, spark_says in zip(asked, found[g], row, strict=True):
            assert same(mine, spark_says), (how, text, g, mine, spark_says)


def by_group(rows) -> dict:
    return {row[0]: list(row[1:]) for row in rows}


class Laws:
    """The shared query of all aggregates, prepared once."""

    def __init__(self, spark, folder: Path, asked: dict[str, str | None]) -> None:
        self.spark, self.asked = spark, list(asked)
        self.folder = folder / str(len(asked))
        self.folder.mkdir()
        self.query, self.edges = decomposed(spark, self.asked)
        own = ", ".join(f"{sql or text} AS a{i}" for i, (text, sql) in enumerate(asked.items()))
        self.own = f"SELECT g, {own} FROM laws GROUP BY g"
        (self.key,) = (d.column for d in self.query.dimensions)

    def fold(self) -> str:
        made = ", ".join(f"{s.fold} AS {s.column}" for s in self.query.statistics)
        nothing = ", ".join(f"CAST(NULL AS {s.type}) AS {s.column}" for s in self.query.statistics)
        return (
            f"SELECT g AS {self.key}, part, {made} FROM laws GROUP BY g, part"
            f" UNION ALL SELECT DISTINCT g, -1, {nothing} FROM laws"  # a part without rows
        )

    def merge(self, source: str, by: str, duck: bool = False) -> str:
        made = [
            f"{s.duck_merged() if duck else s.merged()} AS {s.column}"
            for s in self.query.statistics
        ]
        return f"SELECT {self.key}, {by} AS part, {', '.join(made)} FROM {source} GROUP BY {self.key}, {by}"

    def types(self) -> None:
        """Merging keeps each statistic's type; the finish has the types of Spark's own."""
        self.spark.read.parquet(str(self.folder / "parts")).createOrReplaceTempView("folded")
        merged = self.spark.sql(self.merge("folded", "part * 0"))
        found = {f.name: f.dataType.simpleString() for f in merged.schema}
        for s in self.query.statistics:
            assert found[s.column] == s.type, s
        merged.createOrReplaceTempView("weft_m0")
        finished = self.spark.sql(self.query.finish_spark).schema
        for text, mine, own in zip(
            ["g", *self.asked], finished, self.spark.sql(self.own).schema, strict=True
        ):
            assert mine.dataType.simpleString() == own.dataType.simpleString(), text

    def run(self, cases: list[list[dict]]) -> None:
        path = self.folder / "rows.parquet"
        pq.write_table(table_of(cases), path)
        self.spark.read.parquet(str(path)).createOrReplaceTempView("laws")
        parts = self.folder / "parts"
        self.spark.sql(self.fold()).coalesce(1).write.mode("overwrite").parquet(str(parts))
        expected = by_group(self.spark.sql(self.own).collect())
        self.spark.read.parquet(str(parts)).createOrReplaceTempView("folded")
        for how, plan in (
            ("flat", self.merge("folded", "part * 0")),
            ("tree", self.merge(f"({self.merge('folded', 'part % 2')})", "part * 0")),
        ):
            self.spark.sql(plan).createOrReplaceTempView("weft_m0")
            found = by_group(self.spark.sql(self.query.finish_spark).collect())
            check(found, expected, self.asked, f"spark {how}")
        if self.query.finish_duck:
            self.run_duck(parts, expected)

    def run_lifted(self, cases: list[list[dict]]) -> None:
        """Some rows are folded by Spark, the others are partials as they are."""
        path, parts = self.folder / "rows.parquet", self.folder / "parts"
        pq.write_table(table_of(cases), path)
        self.spark.read.parquet(str(path)).createOrReplaceTempView("laws")
        folded = f"SELECT * FROM ({self.fold()}) WHERE part < 2"
        self.spark.sql(folded).coalesce(1).write.mode("overwrite").parquet(str(parts))
        expected = by_group(self.spark.sql(self.own).collect())
        lifts = ", ".join(f"{sql} AS {column}" for column, sql in self.edges().columns)
        names = ", ".join(["part", *(column for column, _ in self.edges().columns)])
        source = (
            f"(SELECT {names} FROM read_parquet('{parts}/*.parquet') UNION ALL"
            f" SELECT {names} FROM (SELECT part, {lifts} FROM read_parquet('{path}') WHERE part >= 2))"
        )
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(
                f"CREATE VIEW weft_m0 AS {self.merge(source, 'part * 0', duck=True)}"
            )
            found = by_group(connection.sql(self.query.finish_duck).fetchall())
            check(found, _as_duck(expected), self.asked, "rows beside parts")

    def run_duck(self, parts: Path, expected: dict) -> None:
        source = f"read_parquet('{parts}/*.parquet')"
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            register(connection)
            for how, plan in (
                ("flat", self.merge(source, "part * 0", duck=True)),
                (
                    "tree",
                    self.merge(
                        f"({self.merge(source, 'part % 2', duck=True)})", "part * 0", duck=True
                    ),
                ),
            ):
                connection.execute(f"CREATE OR REPLACE VIEW weft_m0 AS {plan}")
                found = by_group(connection.sql(self.query.finish_duck).fetchall())
                check(found, _as_duck(expected), self.asked, f"duckdb {how}")


def _as_duck(expected: dict) -> dict:
    def plain(value: object) -> object:
        if isinstance(value, datetime):
            return value.replace(tzinfo=UTC)
        return value

    return {g: [plain(v) for v in row] for g, row in expected.items()}


@pytest.fixture(scope="module")
def laws(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("laws")
    pq.write_table(table_of([[]]), folder / "rows.parquet")
    spark.read.parquet(str(folder / "rows.parquet")).createOrReplaceTempView("laws")
    made = {
        "both": Laws(spark, folder, EXACT),
        "spark": Laws(spark, folder, ONLY_SPARK),
        "finish": Laws(spark, folder, dict.fromkeys(FINISHES)),
        "lifted": Laws(spark, folder, {t: s for t, s in EXACT.items() if t not in NOT_LIFTED}),
    }
    for law in made.values():
        law.run([[]])
    return made


EXAMPLES = settings(
    max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@EXAMPLES
@given(cases=CASES)
def test_any_split_in_any_order_on_both_engines(laws, cases) -> None:
    law = laws["both"]
    assert law.query.finish_duck is not None
    law.run([[r] for r in cases[0]] + cases)


@EXAMPLES
@given(cases=CASES)
def test_a_row_is_a_partial_of_its_own(laws, cases) -> None:
    laws["lifted"].run_lifted(cases)


def test_what_is_not_folded_from_rows_on_duckdb(spark, laws) -> None:
    assert tuple(text for text in EXACT if not liftable(spark, text)) == NOT_LIFTED


@settings(EXAMPLES, max_examples=2)
@given(cases=CASES)
def test_finishes_mean_the_same_on_duckdb(laws, cases) -> None:
    law = laws["finish"]
    assert law.query.finish_duck is not None
    law.run(cases)


@pytest.mark.parametrize("text", NOT_PORTABLE)
def test_finishes_that_are_left_to_spark(spark, laws, text) -> None:
    assert shared(spark, [text]).finish_duck is None


@settings(EXAMPLES, max_examples=2)
@given(cases=CASES)
def test_what_only_spark_can_merge(laws, cases) -> None:
    law = laws["spark"]
    assert law.query.finish_duck is None
    law.run(cases)


def test_types_are_sparks_own(laws) -> None:
    for law in laws.values():
        law.types()


def test_nothing_finishes_to_what_sql_gives_for_no_rows(laws, spark, tmp_path) -> None:
    """The merge of no parts is one row of NULLs: counts are 0, sums NULL, sets empty."""
    covering = {text: own for text, own in ONLY_SPARK.items() if text not in EMPTY_STATES}
    for law in (laws["both"], laws["finish"], Laws(spark, tmp_path, covering)):
        own = law.own.replace("SELECT g,", "SELECT").replace("GROUP BY g", "WHERE false")
        (expected,) = spark.sql(own).collect()
        statistics = law.query.statistics
        nothing = ", ".join(f"CAST(NULL AS {s.type}) AS {s.column}" for s in statistics)
        frame = spark.sql(f"SELECT 0 AS {law.key}, {nothing}")
        for how in ("a row of NULLs", "the merge of no parts"):
            frame.createOrReplaceTempView("weft_m0")
            found = by_group(spark.sql(law.query.finish_spark).collect())
            check(found, {0: list(expected)}, law.asked, how)
            merged = ", ".join(f"{s.merged()} AS {s.column}" for s in statistics)
            frame = spark.sql(
                f"SELECT 0 AS {law.key}, {merged} FROM (SELECT {nothing}) WHERE false"
            )
        if law.query.finish_duck:
            _nothing_on_duck(law, list(expected))


def _nothing_on_duck(law: Laws, expected: list) -> None:
    source = f"read_parquet('{law.folder}/parts/*.parquet')"
    merged = ", ".join(f"{s.duck_merged()} AS {s.column}" for s in law.query.statistics)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(
            f"CREATE VIEW weft_m0 AS SELECT 0 AS {law.key}, {merged} FROM {source} WHERE false"
        )
        found = by_group(connection.sql(law.query.finish_duck).fetchall())
        check(found, {0: expected}, law.asked, "duckdb over nothing")


@pytest.mark.parametrize("answers", ["lazy", "eager"])
def test_equal_values_do_not_vary_however_large_they_are(tmp_path, answers) -> None:
    """Their sum is infinite, or rounded; the average of each partial is the value itself."""
    with weft.connect(tmp_path) as db:
        db.sql("CREATE STREAM s (k INT, v DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        db.sql(
            f"CREATE CONTINUOUS QUERY q WITH (answers = '{answers}') AS"
            " SELECT k, var_samp(v) AS a, stddev_pop(v) AS d, count(*) AS n"
            " FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY k"
        )
        db.sql("CREATE CONTINUOUS QUERY t AS SELECT k, variance(v) AS a FROM s GROUP BY k")
        values = (1.7e308, 0.1, -1e300)
        for first in (0, 7, 14):  # panes of seven, three and eleven equal values
            db.push("s", [
                {"k": k, "v": v, "ts": f"2026-01-01T00:00:{second:02d}Z"}
                for k, v in enumerate(values) for second in range(first, first + 7)
            ])  # fmt: skip
            db.run()
        db.advance("s", datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC))
        found = db.query("q").history().to_pylist()
        assert max(row["n"] for row in found) == 20
        assert {(row["a"], row["d"]) for row in found} == {(0.0, 0.0)}
        assert {row["a"] for row in db.query("t").results().to_pylist()} == {0.0}
