"""An oracle for shared aggregation: the same SQL over the same rows, on DuckDB, from scratch.

Nothing of Weft's code is used here. A workload is drawn from a seed: queries that differ in window,
dimensions, predicate, aggregates and emission, and batches with NULLs, duplicates and late rows.
"""

from __future__ import annotations

import math
import random
import uuid
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import weft
from weft.logical.types import arrow_schema

SECOND = 1_000_000
START = 1_767_225_600 * SECOND  # 2026-01-01
DELAY = 5 * SECOND
COLUMNS = "k STRING, w STRING, v INT, x DOUBLE, d DECIMAL(10,2), ts TIMESTAMP"

# aggregates that mean the same in Spark and DuckDB: (SQL in Weft, SQL in DuckDB or None: the same)
AGGREGATES = (
    ("count(*)", None),
    ("count(v)", None),
    ("sum(v)", "sum(v)::BIGINT"),
    ("avg(v)", None),
    ("min(v)", None),
    ("max(x)", None),
    ("sum(x)", None),
    ("avg(x)", None),
    ("sum(d)", "sum(d)::DECIMAL(20,2)"),
    ("min(k)", None),
    ("max(ts)", None),
    ("stddev_pop(x)", None),
    ("var_samp(v)", "var_samp(v)"),
    ("covar_pop(v, x)", None),
    ("bool_and(v > 2)", None),
    ("bool_or(v > 6)", None),
    ("bit_or(v)", None),
    ("bit_xor(v)", None),
    ("count(DISTINCT v)", None),
    ("count(DISTINCT k, v)", "count(DISTINCT CASE WHEN k IS NULL OR v IS NULL THEN NULL ELSE row(k, v) END)"),
    ("sum(v) FILTER (WHERE x > 2)", "(sum(v) FILTER (WHERE x > 2))::BIGINT"),
    ("count(*) FILTER (WHERE k = 'a')", None),
    ("count_if(v = 3)", None),
    ("sum(v) + 2 * count(*)", "(sum(v) + 2 * count(*))::BIGINT"),
    ("max(v) - min(v)", None),
    ("sum(v * 2)", "sum(v * 2)::BIGINT"),
    ("max(v - 3)", None),
    ("sum(d * 2 + v)", "sum(d * 2 + v)::DECIMAL(30,2)"),
    ("avg(-v)", None),
    ("sum(CAST(x AS INT))", "sum(trunc(x)::INT)::BIGINT"),
    ("sum(x / v) FILTER (WHERE v > 0)", "sum(CASE WHEN v > 0 THEN x / v END)"),
)  # fmt: skip
# what only Spark says: such a query is finished on Spark
ON_SPARK = (
    ("upper(min(k))", None),
    ("concat('n', CAST(count(*) AS STRING))", "'n' || count(*)::VARCHAR"),
    ("format_number(sum(v), 0)", "format('{:,}', sum(v)::BIGINT)"),
    ("date_format(max(ts), 'yyyy-MM-dd HH:mm:ss')", "strftime(max(ts), '%Y-%m-%d %H:%M:%S')"),
    ("regexp_replace(max(k), 'b', 'x')", "regexp_replace(max(k), 'b', 'x', 'g')"),
    ("CAST(sum(d) / count(*) AS DOUBLE)", "sum(d)::DOUBLE / count(*)"),
    ("power(sum(x), 2)", None),
)
# what fails on the rare row with v = 8 and x = 5.75: (Weft, DuckDB)
ZERO = "v * 4 + x * 4 - 55"
FAILS = "(v = 8 AND x = 5.75)"
FAILING = (
    (f"sum(1 / ({ZERO}))", f"sum(1 / nullif({ZERO}, 0))"),
    (f"max(v % ({ZERO}))", f"max(v::DOUBLE % nullif({ZERO}, 0))"),
    (
        f"count(CASE WHEN w = 'p' THEN v / ({ZERO}) END)",
        f"count(CASE WHEN w = 'p' THEN v / nullif({ZERO}, 0) END)",
    ),
)
FAILING_WHERE = (f"1 / ({ZERO}) < 0", f"({FAILS} OR 1 / nullif({ZERO}, 0) < 0)")
EXACT = (*AGGREGATES[:3], AGGREGATES[4], AGGREGATES[8], AGGREGATES[9], AGGREGATES[16], ON_SPARK[0])
DIMENSIONS = ((), ("k",), ("w",), ("k", "w"), ("upper(k)",), ("v",), ("k", "d"), ("x > 2", "w"))
PREDICATES = (
    None,
    "v > {c}",
    "{c} < v",
    "NOT v <= {c}",
    "v BETWEEN {c} AND {e}",
    "v IN ({c}, 1, 7)",
    "k = 'a'",
    "k <> 'b' AND v >= {c}",
    "k LIKE 'a%' OR x > {c}",
    "x IS NOT NULL AND x < {c}",
    "v IS NULL",
    "k IS NULL OR v = {c}",
    "w = 'p' AND v > {c}",
    "lower(k) = 'a' AND x >= {c}",
    "v > {c} AND v > 1",
)
HAVING = (None, None, None, "count(*) > 2", "sum(v) >= 5", "lower(max(k)) <> 'b'")


@dataclass(frozen=True)
class Hop:
    length: int
    slide: int


@dataclass(frozen=True)
class Cumulate:
    size: int
    step: int


@dataclass(frozen=True)
class Standing:
    """ts in [low, high); None: no bound."""

    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class Slide:
    """ts in (now - lag - length, now - lag]."""

    length: int
    lag: int = 0


@dataclass(frozen=True)
class Drawn:
    name: str
    window: Hop | Cumulate | Standing | Slide
    dimensions: tuple[str, ...]
    predicate: str | None
    aggregates: tuple[tuple[str, str | None], ...]
    having: str | None
    emits_changes: bool
    answers: str
    limit: int | None = None  # of groups, in the order of the dimensions
    is_distinct: bool = False  # of aggregates alone: groups may have the same
    duck_predicate: str | None = None  # where DuckDB says it otherwise
    fails: str | None = None  # rows that make an answer fail

    def _dims(self) -> list[str]:
        shown = () if self.is_distinct else self.dimensions
        return [f"{e} AS g{i}" for i, e in enumerate(shown)]

    def _order(self, names: list[str]) -> str:
        return " ORDER BY " + ", ".join(f"{name} NULLS FIRST" for name in names)

    def _top(self) -> str:
        if self.limit is None:
            return ""
        names = [f"g{i}" for i in range(len(self.dimensions))]
        return f"{self._order(names)} LIMIT {self.limit} OFFSET 1"

    def weft(self) -> str:
        dims = self._dims()
        aggs = [f"{sql} AS a{i}" for i, (sql, _) in enumerate(self.aggregates)]
        distinct = "DISTINCT " if self.is_distinct else ""
        text = f"SELECT {distinct}{', '.join(dims + aggs)} FROM {self._source()}"
        text += f" WHERE {self.predicate}" if self.predicate else ""
        text += f" GROUP BY {', '.join(self.dimensions)}" if self.dimensions else ""
        text += f" HAVING {self.having}" if self.having else ""
        text += self._top()
        if isinstance(self.window, Slide) and self.window.lag:
            begin, end = self.window.length + self.window.lag, self.window.lag
            text += f" BEGIN NOW - {begin} MILLISECONDS END NOW - {end} MILLISECONDS"
        options = "" if self.answers == "auto" else f" WITH (answers = '{self.answers}')"
        emit = " EMIT CHANGES" if self.emits_changes else ""
        return f"CREATE CONTINUOUS QUERY {self.name}{options} AS {text}{emit}"

    def _source(self) -> str:
        window = self.window
        if isinstance(window, Hop):
            return f"s [RANGE {window.length} SECONDS SLIDE {window.slide} SECONDS]"
        if isinstance(window, Cumulate):
            parts = f"INTERVAL '{window.step}' SECONDS, INTERVAL '{window.size}' SECONDS"
            return f"TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), {parts}))"
        if isinstance(window, Slide):
            return "s" if window.lag else f"s [RANGE {window.length} MILLISECONDS]"
        if window.low is None:
            return "s"
        if window.high is None:
            return f"s [SINCE '{iso(window.low)}']"
        return f"s [FROM '{iso(window.low)}' TO '{iso(window.high)}']"

    def duck(self, clock: int | None) -> str:
        """The whole history of a per-window query, or the answer of a standing one, at a clock."""
        dims, distinct = self._dims(), "DISTINCT " if self.is_distinct else ""
        aggs = [f"{duck or sql} AS a{i}" for i, (sql, duck) in enumerate(self.aggregates)]
        aggs = [a.replace("count_if(v = 3)", "count(*) FILTER (WHERE v = 3)") for a in aggs]
        where = self._where()
        having = f" HAVING {self.having}" if self.having else ""
        if self.is_standing:
            low, high, seen = self._range(clock)
            grouped = f" GROUP BY {', '.join(self.dimensions)}" if self.dimensions else ""
            time = f"epoch_us(ts) >= {low} AND epoch_us(ts) < {high} AND epoch_us(ts) <= {seen}"
            shown = f"{distinct}{', '.join(dims + aggs)}"
            return f"SELECT {shown} FROM r WHERE {where} AND {time}{grouped}{having}{self._top()}"
        closed = "true" if self.emits_changes else f"e <= {-(10**18) if clock is None else clock}"
        edges = ["make_timestamptz(s) AS window_start", "make_timestamptz(e) AS window_end"]
        keys = ", ".join(["s", "e", *self.dimensions])
        top = ""
        if self.limit is not None:
            order = self._order(list(self.dimensions))
            rank = f"row_number() OVER (PARTITION BY s, e{order})"
            top = f" QUALIFY {rank} > 1 AND {rank} <= {self.limit + 1}"
        return (
            f"SELECT {distinct}{', '.join(edges + dims + aggs)} FROM ({self._windows()})"
            f" WHERE {where} AND {closed} GROUP BY {keys}{having}{top}"
        )

    @property
    def is_standing(self) -> bool:
        return isinstance(self.window, Standing | Slide)

    def _range(self, clock: int | None) -> tuple[int, int, int]:
        """low <= ts < high and ts <= seen."""
        seen, window = -(10**18) if clock is None else clock, self.window
        if isinstance(window, Slide):
            last = seen - window.lag * 1000
            return last - window.length * 1000 + 1, last + 1, seen
        low = START - 10**15 if window.low is None else window.low
        return low, 10**18 if window.high is None else window.high, seen

    def _where(self) -> str:
        predicate = self.duck_predicate or self.predicate
        return f"({predicate})" if predicate else "true"

    def failing(self, clock: int | None) -> str:
        """The ends of windows that hold a row on which the query fails; a standing one has one."""
        kept = f"{self._where()} AND {self.fails}"
        if isinstance(self.window, Standing):
            low = START - 10**15 if self.window.low is None else self.window.low
            high = 10**18 if self.window.high is None else self.window.high
            seen = -(10**18) if clock is None else clock
            time = f"epoch_us(ts) >= {low} AND epoch_us(ts) < {high} AND epoch_us(ts) <= {seen}"
            return f"SELECT DISTINCT make_timestamptz(0) AS e FROM r WHERE {kept} AND {time}"
        closed = "true" if self.emits_changes else f"e <= {-(10**18) if clock is None else clock}"
        rows = f"FROM ({self._windows()}) WHERE {kept} AND {closed}"
        return f"SELECT DISTINCT make_timestamptz(e) AS e {rows}"

    def _windows(self) -> str:
        if isinstance(self.window, Hop):
            length, slide = self.window.length * SECOND, self.window.slide * SECOND
            first = f"(epoch_us(ts) - {length}) // {slide} + 1"
            starts = f"unnest(range({first}, epoch_us(ts) // {slide} + 1)) * {slide}"
            return f"SELECT *, s + {length} AS e FROM (SELECT *, {starts} AS s FROM r)"
        size, step = self.window.size * SECOND, self.window.step * SECOND
        base = f"epoch_us(ts) // {size} * {size}"
        first = f"(epoch_us(ts) % {size}) // {step} + 1"
        ends = f"unnest(range({first}, {size // step} + 1)) * {step}"
        return f"SELECT *, {base} AS s, {base} + {ends} AS e FROM r"


def iso(micros: int) -> str:
    return str(datetime.fromtimestamp(micros / SECOND, UTC).isoformat())


def draw_query(rng: random.Random, name: str) -> Drawn:
    kind = rng.random()
    emits_changes = False
    if kind < 0.7:
        slide = rng.choice((5, 10, 15, 20, 30, 60))
        window = Hop(slide + 5 * rng.randint(0, 12), slide)
        emits_changes = rng.random() < 0.15
    elif kind < 0.8:
        step = rng.choice((5, 10, 20))
        window = Cumulate(step * rng.randint(1, 6), step)
    elif kind < 0.9:
        length = rng.choice((1, 10, 900, 5_000, 20_000, 33_333, 60_000, 150_000))
        window = Slide(length, rng.choice((0, 0, 0, 7_000)))
    else:
        low = rng.choice((None, None, START + rng.randint(0, 100) * SECOND))
        high = None if low is None or rng.random() < 0.5 else low + rng.randint(1, 90) * SECOND
        window = Standing(low, high)
    constant = rng.randint(0, 8)
    predicate = rng.choice(PREDICATES)
    dimensions = rng.choice(DIMENSIONS)
    limit = rng.randint(1, 3) if dimensions and rng.random() < 0.1 else None
    is_distinct = bool(dimensions) and limit is None and rng.random() < 0.1
    drawn = Drawn(
        name,
        window,
        dimensions,
        predicate.format(c=constant, e=constant + 3) if predicate else None,
        draw_aggregates(rng, rng.randint(1, 4), is_distinct),
        rng.choice(HAVING),
        emits_changes,
        rng.choice(("auto", "auto", "lazy", "eager")),
        limit,
        is_distinct,
    )
    if isinstance(window, Slide):  # what fails on a row is recomputed
        return drawn
    return make_failing(rng, drawn) if rng.random() < 0.15 else drawn


def make_failing(rng: random.Random, query: Drawn) -> Drawn:
    """A query that fails on a rare row; one that DuckDB finishes, so that other windows are read."""
    plain = tuple(rng.sample(AGGREGATES, 2))
    query = replace(
        query, limit=None, is_distinct=False, having=rng.choice(HAVING[:5]), aggregates=plain
    )
    if rng.random() < 0.3:
        where, duck = FAILING_WHERE
        return replace(query, predicate=where, duck_predicate=duck, fails=FAILS)
    failing = rng.choice(FAILING)
    fails = f"{FAILS[:-1]} AND w = 'p')" if "CASE" in failing[0] else FAILS
    return replace(query, aggregates=(failing, plain[0]), fails=fails)


def draw_aggregates(
    rng: random.Random, count: int, is_distinct: bool
) -> tuple[tuple[str, str | None], ...]:
    """Mostly what DuckDB finishes; of DISTINCT, no floats: their last digits may differ."""
    if is_distinct:
        return tuple(rng.sample(EXACT, count))
    found = rng.sample(AGGREGATES, count)
    if rng.random() < 0.1:
        found[0] = rng.choice(ON_SPARK)
    return tuple(found)


@dataclass
class Stream:
    """Rows as pushed, and those that count: not late."""

    rng: random.Random
    clock: int | None = None
    newest: int | None = None
    kept: list[dict] = field(default_factory=list)
    now: int = START
    seen: dict[int, int] = field(default_factory=dict)  # clock → how many rows had come by then

    def batch(self) -> list[dict]:
        rng, rows = self.rng, []
        if self.clock is not None and rng.random() < 0.7:  # exactly at the clock: in time
            rows.append(self._row(self.clock))
        for _ in range(rng.randint(0, 60)):
            self.now += rng.choice((0, 100_000, SECOND, 2 * SECOND))
            back = rng.choice((0, 0, 0, 1, 3, 20)) * SECOND  # some late, some out of order
            rows.append(self._row(self.now - back))
            if rng.random() < 0.1:
                rows.append(rows[-1])
        return rows

    def _row(self, time: int) -> dict:
        rng = self.rng
        return {
            "k": rng.choice(("a", "b", "ab", None)),
            "w": rng.choice(("p", "q")),
            "v": rng.choice((None, *range(9))),
            "x": rng.choice((None, 5.75, *(i / 4 for i in range(24)))),
            "d": None if rng.random() < 0.1 else f"{rng.randint(0, 500) / 100:.2f}",
            "ts": time,
        }

    def take(self, rows: list[dict]) -> None:
        """What a batch does: late rows go, the clock moves."""
        start = self.clock
        for row in rows:
            if start is None or row["ts"] >= start:
                self.kept.append(row)
                self.newest = max(self.newest or row["ts"], row["ts"])
        if self.newest is not None:
            mark = self.newest - DELAY
            self.clock = mark if self.clock is None else max(mark, self.clock)
            self.seen[self.clock] = len(self.kept)

    def connection(self, at: int | None = None) -> duckdb.DuckDBPyConnection:
        """The rows that count; those that the last evaluation at a clock had seen."""
        kept = self.kept[: self.seen.get(at, len(self.kept))]
        found = duckdb.connect(":memory:")
        found.execute("SET TimeZone = 'UTC'")
        found.execute(
            "CREATE TABLE r (k VARCHAR, w VARCHAR, v INT, x DOUBLE, d DECIMAL(10,2), ts TIMESTAMPTZ)"
        )
        if kept:
            rows = pa.table(
                {
                    **{n: [r[n] for r in kept] for n in ("k", "w", "v", "x", "d")},
                    "ts": [r["ts"] for r in kept],
                }
            )
            found.register("given", rows)
            found.execute(
                "INSERT INTO r SELECT k, w, v, x, d::DECIMAL(10,2), make_timestamptz(ts) FROM given"
            )
        return found


def declare(db: weft.Database, folder: Path | None = None) -> None:
    """The stream of the rows that are drawn: pushed, or put as Parquet files into a folder."""
    source = "" if folder is None else f" WITH (source = 'files', path = '{folder}')"
    db.sql(f"CREATE STREAM s ({COLUMNS}, WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS){source}")


def give(db: weft.Database, rows: list[dict]) -> None:
    """Let a batch of rows come."""
    with db._engine.catalog.read() as view:
        definition = view.find("s").definition
    if definition.source == "push":
        db.push("s", arrow_rows(rows))
        return
    values = [{**row, "d": row["d"] and Decimal(row["d"])} for row in arrow_rows(rows)]
    table = pa.Table.from_pylist(values, arrow_schema(definition.columns))
    path = Path(definition.options["path"], f"_{uuid.uuid4().hex}.parquet")
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table, path, row_group_size=16)
    path.rename(path.with_name(path.name[1:]))


def taken_files(db: weft.Database) -> int:
    """How many files of the stream were taken as they lie."""
    paths = db.sql("SELECT path FROM weft.segments WHERE part = 'rows'")["path"].to_pylist()
    return sum("_weft_file=" in path for path in paths)


def arrow_rows(rows: list[dict]) -> list[dict]:
    """Rows as a user pushes them."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return [{**row, "ts": epoch + timedelta(microseconds=row["ts"])} for row in rows]


def bag(table: pa.Table) -> Counter:
    """Rows as a bag; floats to nine digits, since sums are added in another order."""
    return Counter(tuple(plain(value) for value in row.values()) for row in table.to_pylist())


def plain(value: object) -> object:
    if isinstance(value, float):
        if abs(value) < 1e-9:  # what is left of a covariance of 0
            return 0.0
        return "nan" if math.isnan(value) else float(f"{value:.9g}")
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return value
