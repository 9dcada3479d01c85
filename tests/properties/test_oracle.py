"""At any time an answer equals the same SQL run once over the window's contents, on another engine.

Hypothesis draws streams, rows, batches, heartbeats, table changes and queries that come and go; the
oracle says after every step what each query must answer. `WEFT_EXAMPLES=300 pytest
tests/properties` runs more; a failure prints a script that repeats it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from oracle import SECOND, Model, Stream, Table, difference, iso, micros, plain, run_sql
from queries import ABOVE, BELOW, VIEW, Drawn, R, S, T, U, queries

import weft

EXAMPLES = int(os.environ.get("WEFT_EXAMPLES", "8"))
BASES = [seconds * SECOND for seconds in (1_767_225_600, -30)]  # 2026-01-01, and around the epoch

keys = st.sampled_from(["a", "b", "", None])
numbers = st.sampled_from([None, -1, 0, 1, 2, 5])
names = st.sampled_from(["p", "q", "", None])


@st.composite
def stream_rows(draw: st.DrawFn, base: int, step: int, columns: dict) -> list[dict]:
    rows = []
    for _ in range(draw(st.integers(0, 5))):
        offset = draw(st.integers(-13, 9))
        jitter = draw(st.sampled_from([0, 0, 0, 1]))
        time = draw(st.sampled_from([True] * 19 + [False]))
        row = {
            "k": draw(keys),
            "ts": base + (step * 8 + offset) * SECOND + jitter if time else None,
        }
        if "v" in columns:
            row |= {
                "v": draw(numbers),
                "d": draw(st.sampled_from([None, Decimal("0.10"), Decimal("-2.25"), Decimal("7")])),
                "x": draw(st.sampled_from([None, float("nan"), 0.5, -1.5])),
            }
        else:
            row["w"] = draw(numbers)
        rows += [row] * draw(st.sampled_from([1, 1, 1, 2]))
    return rows


@st.composite
def table_changes(draw: st.DrawFn) -> tuple:
    table = draw(st.sampled_from(["t", "u"]))
    value = draw(names if table == "t" else numbers)
    return draw(st.sampled_from(["insert", "insert", "update", "delete"])), table, draw(keys), value


@st.composite
def scenarios(draw: st.DrawFn) -> dict:
    base = draw(st.sampled_from(BASES))
    pool = draw(st.lists(queries(base), min_size=5, max_size=7))
    steps = []
    for number in range(draw(st.integers(2, 4))):
        ops: list[tuple] = []
        for _ in range(draw(st.integers(1, 4))):
            kind = draw(st.sampled_from(["push", "push", "push", "table", "query"]))
            if kind == "push":
                stream, columns = draw(st.sampled_from([("s", S), ("s", S), ("r", R)]))
                ops.append((kind, stream, draw(stream_rows(base, number, columns))))
            elif kind == "table":
                ops.append((kind, *draw(table_changes())))
            else:
                ops.append((kind, draw(st.integers(0, 6)), draw(queries(base))))
        end = draw(st.sampled_from(["run", "run", "run", "beat"]))
        ops.append(
            (end, draw(st.sampled_from(["s", "r"])), base + draw(st.integers(0, 40)) * SECOND)
        )
        steps.append((ops, draw(st.sampled_from([False, False, True]))))
    return {
        "delays": (draw(st.sampled_from([0, 3])) * SECOND, draw(st.sampled_from([0, 5])) * SECOND),
        "retain": draw(st.sampled_from([None, None, 12 * SECOND])),
        "above": draw(st.lists(st.sampled_from(range(len(ABOVE))), max_size=2, unique=True)),
        "queries": pool,
        "steps": steps,
    }


class Harness:
    """Does everything twice: in Weft and in the model. Keeps a script of it."""

    def __init__(self, folder: str, spark) -> None:
        self.folder, self.spark = folder, spark
        self.db = weft.connect(folder, spark=spark)
        self.model = Model()
        self.texts: dict[str, str] = {}
        self.script: list[str] = []

    def note(self, line: str) -> None:
        self.script.append(line)

    def sql(self, text: str):
        self.note(f"db.sql({text!r})")
        return self.db.sql(text)

    def create_stream(self, name: str, columns: dict, delay: int, retain: int | None) -> None:
        self.model.streams[name] = Stream(name, columns, delay, retain)
        listed = ", ".join(f"{c} {t}" for c, t in columns.items())
        kept = f" RETAIN {retain // SECOND} SECONDS" if retain else ""
        self.sql(
            f"CREATE STREAM {name} ({listed}, WATERMARK FOR ts AS ts - INTERVAL {delay // SECOND} SECONDS){kept}"
        )

    def create_table(self, name: str, columns: dict, is_retroactive: bool) -> None:
        self.model.tables[name] = Table(name, columns, is_retroactive)
        listed = ", ".join(f"{c} {t}" for c, t in columns.items())
        self.sql(f"CREATE TABLE {name} ({listed}){' RETROACTIVE' if is_retroactive else ''}")

    def push(self, stream: str, rows: list[dict]) -> None:
        self.model.streams[stream].push(rows, self.model.tick())
        given = [{**r, "ts": None if r["ts"] is None else iso(r["ts"])} for r in rows]
        self.note(f"db.push({stream!r}, {given!r})")
        self.db.push(stream, given)

    def run(self) -> None:
        for stream in self.model.streams.values():
            stream.run()
        self.model.settle()
        self.note("db.run()")
        self.db.run()

    def beat(self, stream: str, instant: int) -> None:
        self.model.streams[stream].run()
        self.model.streams[stream].beat(instant)
        self.model.settle()
        self.note(f"db.advance({stream!r}, {iso(instant)!r})")
        self.db.advance(stream, iso(instant))

    def change_table(self, verb: str, name: str, key: str | None, value: object) -> None:
        table, tick = self.model.tables[name], self.model.tick()
        column = list(table.columns)[1]
        key_sql, value_sql = text(key), text(value)
        if verb == "insert":
            table.insert([(key, value)], tick)
            self.sql(f"INSERT INTO {name} VALUES ({key_sql}, {value_sql})")
        elif verb == "update":
            table.change(tick, lambda row: (row[0], value) if row[0] == key else row)
            self.sql(
                f"UPDATE {name} SET {column} = {value_sql} WHERE k IS NOT DISTINCT FROM {key_sql}"
            )
        else:
            table.change(tick, lambda row: None if row[0] == key else row)
            self.sql(f"DELETE FROM {name} WHERE k IS NOT DISTINCT FROM {key_sql}")
        self.model.settle()

    def create(self, name: str, drawn: Drawn, or_replace: bool = False) -> None:
        self.texts[name] = drawn.weft()
        verb = "CREATE OR REPLACE" if or_replace else "CREATE"
        self.sql(f"{verb} CONTINUOUS QUERY {name} AS {drawn.weft()}")
        self.model.register(name, drawn.query)

    def drop(self, name: str) -> None:
        self.sql(f"DROP QUERY {name}")
        del self.model.queries[name]

    def reopen(self) -> None:
        self.note("db.close(); db = weft.connect(folder, spark=spark)")
        self.db.close()
        self.db = weft.connect(self.folder, spark=self.spark)

    # checks

    def check(self) -> None:
        for name, registered in self.model.queries.items():
            query = self.db.query(name)
            shown = registered.query.is_per_window
            actual = rows_of(query.results())
            self.compare(name, "results()", self.model.results(name), actual)
            if registered.query.is_ordered:
                self.require(name, actual == self.model.results(name), "is not in order", actual)
            if shown:
                self.compare(name, "history()", self.model.history(name), rows_of(query.history()))
        for name, stream in self.model.streams.items():
            late = self.db.sql(f"SELECT * FROM {name}.late").drop_columns(["arrived_at"])
            self.compare(name, "late", [plain(r.values) for r in stream.late], rows_of(late))
            rejected = self.db.sql(f"SELECT count(*) AS n FROM {name}.rejected").to_pylist()[0]["n"]
            self.require(name, rejected == stream.rejected, "rejected", rejected)

    def check_changes(self) -> None:
        """All changes add up to the answer; from any token on come exactly those after it."""
        for name, registered in self.model.queries.items():
            query = self.db.query(name)
            changes = list(query.subscribe())
            bag: Counter = Counter()
            for change in changes:
                row = plain(change.row.values())
                bag[row] += 1 if change.kind == "insert" else -1
                self.require(name, bag[row] >= 0, "retracts a row that is not there", row)
            answer = query.history() if registered.query.is_per_window else query.results()
            self.compare(name, "subscribe()", rows_of(answer), list(bag.elements()))
            for at in {0, len(changes) // 2, len(changes) - 1} if changes else ():
                rest = [
                    (c.kind, plain(c.row.values()), c.token)
                    for c in query.subscribe(changes[at].token)
                ]
                wanted = [(c.kind, plain(c.row.values()), c.token) for c in changes[at + 1 :]]
                self.require(name, rest == wanted, f"resumes wrongly after change {at}", rest)

    def check_past(self) -> None:
        """A standing answer at an earlier instant is that of the contents then."""
        for name, registered in self.model.queries.items():
            query, clock = registered.query, self.model.clock(registered.query)
            if query.is_per_window or clock is None or " u AS " in self.texts[name]:
                continue
            then = clock - 4 * SECOND
            try:
                actual = rows_of(self.db.query(name).results(at=iso(then)))
            except weft.StorageError as error:
                self.require(name, error.code == "WEFT_NOT_RETAINED", str(error), None)
                continue
            expected = run_sql(self.model.standing_sql(registered, then))
            self.compare(name, f"results(at={iso(then)!r})", expected, actual)

    def compare(self, name: str, what: str, expected: list, actual: list) -> None:
        found = difference(expected, actual)
        self.require(name, not found, f"{what} differs: {found}", actual)

    def require(self, name: str, is_right: bool, what: str, actual: object) -> None:
        if not is_right:
            script = "\n".join(self.script)
            pytest.fail(
                f"{name}: {what}\n{self.texts.get(name)}\n{actual}\n\n{script}", pytrace=False
            )


def text(value: object) -> str:
    return "NULL" if value is None else repr(value)


def rows_of(table) -> list[tuple]:
    return [plain(row.values()) for row in table.to_pylist()]


def play(scenario: dict, harness: Harness) -> None:
    harness.create_stream("s", S, scenario["delays"][0], scenario["retain"])
    harness.create_stream("r", R, scenario["delays"][1], None)
    harness.create_table("t", T, False)
    harness.create_table("u", U, True)
    live = []
    for index, drawn in enumerate(scenario["queries"]):
        live.append(f"q{index}")
        harness.create(live[-1], drawn)
    above = [ABOVE[index] for index in scenario["above"]]
    if any(drawn.query.sources and drawn.query.sources[0].stream == "below" for drawn in above):
        harness.create("below", BELOW)
    if any(drawn.query.views for drawn in above):
        harness.create("seen", VIEW)
    for index, drawn in enumerate(above):
        harness.create(f"above{index}", drawn)
    for ops, reopens in scenario["steps"]:
        for op in ops:
            do(op, harness, live)
        harness.check()
        if reopens:
            harness.reopen()
            harness.check()
    harness.check_changes()
    harness.check_past()


def do(op: tuple, harness: Harness, live: list[str]) -> None:
    match op:
        case ("push", stream, rows):
            harness.push(stream, rows)
        case ("table", verb, name, key, value):
            harness.change_table(verb, name, key, value)
        case ("query", index, drawn):
            name = live[index % len(live)]
            if index % 2:
                harness.create(name, drawn, or_replace=True)
            else:
                harness.drop(name)
                harness.create(name, drawn)
        case ("run", _, _):
            harness.run()
        case ("beat", stream, instant):
            harness.beat(stream, instant)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="WEFT_EXAMPLES" not in os.environ,
    print_blob=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],  # a failure prints its script; shrinking takes hours
)
@given(scenario=scenarios())
def test_answers_equal_the_same_sql_over_the_contents(spark, scenario: dict) -> None:
    folder = tempfile.mkdtemp(prefix="weft-oracle-")
    harness = Harness(folder, spark)
    try:
        play(scenario, harness)
        event(f"{len(harness.model.queries)} queries")
    finally:
        harness.db.close()
        shutil.rmtree(folder, ignore_errors=True)


def test_the_clock_of_the_model() -> None:
    """The oracle itself, on the contract's words."""
    stream = Stream("s", {"ts": "TIMESTAMP"}, delay=5)
    stream.push([{"ts": 10}, {"ts": 3}], 1)
    stream.run()
    assert (stream.clock, len(stream.late)) == (5, 0)  # 3 < 5, but the batch began without a clock
    stream.push([{"ts": 4}, {"ts": 5}, {"ts": None}], 2)
    stream.run()
    assert (stream.clock, len(stream.late), len(stream.rows), stream.rejected) == (5, 1, 3, 1)
    stream.beat(20)
    assert stream.clock == 20
    assert micros(__import__("datetime").datetime.fromisoformat(iso(stream.clock))) == 20
