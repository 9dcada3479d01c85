"""An oracle for selections: the same SQL over what the window holds, on DuckDB, from scratch.

Nothing of Weft's code is used here. A query is drawn from a seed: a predicate, a window, a SELECT
list, DISTINCT, ORDER BY and LIMIT, and what is to be kept of it.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace

import duckdb
import pyarrow as pa
from shared_oracle import SECOND, START, bag, iso

DELAY = 5 * SECOND
COLUMNS = "k STRING, w STRING, v INT, x DOUBLE, d DECIMAL(10,2), ts TIMESTAMP"
FACTORS = (
    "v > {c}", "v >= {c} AND v < {e}", "{c} = v", "v <> {c}", "v BETWEEN {c} AND {e}",
    "v NOT BETWEEN {c} AND {e}", "v IN ({c}, {e}, 1)", "NOT v IN ({c}, {e})", "v IS NULL",
    "x < {c} OR v = {e}", "x >= {c}.5", "NOT (x > {c} AND v < {e})", "x + v > {c}", "x * 2 <= {e}",
    "k = 'a'", "k >= 'ab'", "k LIKE 'a%'", "k NOT LIKE '%b'", "upper(k) = 'AB'", "k IS NOT NULL",
    "length(k) = {one}", "d > {c}.25", "d = {c}.50", "w = 'p' OR k IS NULL", "coalesce(v, {c}) > {e}",
    "CASE WHEN v > {c} THEN x > {e} ELSE w = 'q' END", "v IN ({many})", "ts >= TIMESTAMP '{at}'",
    "v < {c} AND v > {e}", "k <=> 'b'",
)  # fmt: skip
SHOWN = (
    "k, v", "*", "v", "k, x, d", "upper(k) AS u, v", "x + 1 AS y", "v, w, CASE WHEN v > 3 THEN 'hi' END AS z",
    "coalesce(k, w) AS c, ts", "k LIKE 'a%' AS is_a, x > 2 AS big",
)  # fmt: skip
POLICIES = ("auto", "auto", "none", "partial", "complete")


@dataclass(frozen=True)
class Window:
    """What holds at τ: ts in (τ − lag − length, τ − lag], or in [low, high) up to τ, or the last rows."""

    length: int | None = None
    lag: int = 0
    low: int | None = None
    high: int | None = None
    count: int | None = None

    def weft(self) -> str:
        if self.count is not None:
            return f"s [ROWS {self.count}]"
        if self.length is not None and self.lag:
            return "s"
        if self.length is not None:
            return f"s [RANGE {self.length // SECOND} SECONDS]"
        if self.low is None:
            return "s"
        if self.high is None:
            return f"s [SINCE '{iso(self.low)}']"
        return f"s [FROM '{iso(self.low)}' TO '{iso(self.high)}']"

    def between(self) -> str:
        if self.length is None or not self.lag:
            return ""
        first = (self.lag + self.length) // SECOND
        return f" BEGIN NOW - {first} SECONDS END NOW - {self.lag // SECOND} SECONDS"

    def contents(self, rows: str, now: int) -> str:
        tests = [f"t <= {now - self.lag}"]
        if self.length is not None:
            tests.append(f"t > {now - self.lag - self.length}")
        tests += [] if self.low is None else [f"t >= {self.low}"]
        tests += [] if self.high is None else [f"t < {self.high}"]
        held = f"SELECT * FROM ({rows}) WHERE {' AND '.join(tests)}"
        if self.count is not None:
            held += f" ORDER BY t DESC, push DESC, nth DESC LIMIT {self.count}"
        return held


@dataclass(frozen=True)
class Drawn:
    name: str
    shown: str
    predicate: str
    window: Window
    is_distinct: bool
    limit: int | None
    policy: str

    def weft(self) -> str:
        options = "" if self.policy == "auto" else f" WITH (materialize = '{self.policy}')"
        body = self._body(self.window.weft()) + self.window.between()
        return f"CREATE CONTINUOUS QUERY {self.name}{options} AS {body}"

    def _body(self, source: str) -> str:
        text = f"SELECT {'DISTINCT ' if self.is_distinct else ''}{self.shown} FROM {source}"
        text += f" WHERE {self.predicate}" if self.predicate else ""
        return text + (
            f" ORDER BY v NULLS FIRST, k NULLS FIRST LIMIT {self.limit}"
            if self.limit is not None
            else ""
        )

    def duck(self, rows: str, now: int) -> str:
        shown = replace(self, shown="k, w, v, x, d, ts") if self.shown == "*" else self
        text = shown._body(f"({self.window.contents(rows, now)})")
        return text.replace("<=>", "IS NOT DISTINCT FROM")


def draw_query(rng: random.Random, name: str) -> Drawn:
    parts = [_factor(rng) for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3)))]
    shown, limit = rng.choice(SHOWN), None
    if rng.random() < 0.15:
        shown, limit = "k, v", rng.randint(1, 6)  # in the order of all its columns: no ties
    return Drawn(
        name, shown, " AND ".join(f"({part})" for part in parts), _window(rng),
        rng.random() < 0.25, limit, rng.choice(POLICIES),
    )  # fmt: skip


def _factor(rng: random.Random) -> str:
    constant = rng.randint(-1, 9)
    many = ", ".join(str(n) for n in sorted(rng.sample(range(-500, 500), 200)))
    return rng.choice(FACTORS).format(
        c=constant, e=constant + rng.randint(0, 4), one=rng.choice((1, 2)), many=many,
        at=iso(START + rng.randint(0, 120) * SECOND)[:19].replace("T", " "),
    )  # fmt: skip


def _window(rng: random.Random) -> Window:
    kind = rng.randrange(6)
    length = rng.choice((1, 5, 20, 60, 300)) * SECOND
    if kind <= 1:
        return Window(length=length)
    if kind == 2:
        return Window(length=length, lag=rng.choice((1, 10)) * SECOND)
    if kind == 3:
        return Window(count=rng.choice((1, 3, 20, 100)))
    low = START + rng.randint(-10, 100) * SECOND
    if kind == 4:
        return Window(low=low, high=rng.choice((None, low + rng.randint(1, 90) * SECOND)))
    return Window()


@dataclass
class Registered:
    query: Drawn
    since: int  # the evaluation it was registered in
    answers: list[tuple[int | None, Counter]] = field(default_factory=list)  # by evaluation


@dataclass
class Model:
    """Rows with the evaluation that brought them, evaluations with their clocks, and queries."""

    clock: int | None = None
    newest: int | None = None
    rows: list[dict] = field(default_factory=list)
    clocks: list[int | None] = field(default_factory=lambda: [None])
    pushes: int = 0
    live: dict[str, Registered] = field(default_factory=dict)

    def take(self, rows: list[dict]) -> None:
        """A batch of one push."""
        self.pushes += 1
        start, number = self.clock, len(self.clocks)
        for nth, row in enumerate(rows):
            if start is None or row["ts"] >= start:
                self.rows.append({**row, "push": self.pushes, "nth": nth, "came": number})
                self.newest = row["ts"] if self.newest is None else max(self.newest, row["ts"])
        if self.newest is not None:
            mark = self.newest - DELAY
            self.clock = mark if self.clock is None else max(mark, self.clock)
        self._evaluated()

    def beat(self, instant: int) -> None:
        if self.clock is None or instant > self.clock:
            self.clock = instant
            self._evaluated()

    def _evaluated(self) -> None:
        self.clocks.append(self.clock)
        duck = self.connection()
        for each in self.live.values():
            each.answers.append((self.clock, self.answer(duck, each.query, self.clock)))

    def register(self, queries: list[Drawn]) -> None:
        duck = self.connection()
        for query in queries:
            first = (self.clock, self.answer(duck, query, self.clock))
            self.live[query.name] = Registered(query, len(self.clocks) - 1, [first])

    def answer(self, duck, query: Drawn, now: int | None, came: int | None = None) -> Counter:
        if now is None:
            return Counter()
        rows = "SELECT * FROM r" + ("" if came is None else f" WHERE came <= {came}")
        return bag(duck.sql(query.duck(rows, now)).to_arrow_table())

    def at(self, duck, name: str, instant: int) -> Counter:
        each = self.live[name]
        if self.clock is None or instant >= self.clock:
            return each.answers[-1][1]
        known = [answer for clock, answer in each.answers if clock == instant]
        return known[-1] if known else self.answer(duck, each.query, instant)

    def changes(self, name: str) -> Counter:
        """(clock, change, row) of every evaluation since the query was registered."""
        found, before = Counter(), Counter()
        for clock, answer in self.live[name].answers:
            for kind, rows in (("insert", answer - before), ("retract", before - answer)):
                for row, count in rows.items():
                    found[clock, kind, row] += count
            before = answer
        return found

    def connection(self) -> duckdb.DuckDBPyConnection:
        found = duckdb.connect(":memory:")
        found.execute("SET TimeZone = 'UTC'")
        columns = "k VARCHAR, w VARCHAR, v INT, x DOUBLE, d DECIMAL(10,2), ts TIMESTAMPTZ"
        found.execute(f"CREATE TABLE r ({columns}, t BIGINT, push INT, nth INT, came INT)")
        if self.rows:
            names = ("k", "w", "v", "x", "d", "ts", "push", "nth", "came")
            found.register("given", pa.table({n: [r[n] for r in self.rows] for n in names}))
            found.execute(
                "INSERT INTO r SELECT k, w, v, x, d::DECIMAL(10,2), make_timestamptz(ts), ts, push,"
                " nth, came FROM given"
            )
        return found
