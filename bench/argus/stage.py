"""What the ARGUS experiments play with: a data set cut in two, and warehouses at work on it."""

from __future__ import annotations

import json
import math
import re
import shutil
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import weft
from bench.argus.data import Dataset
from bench.stage import Stage


@dataclass(frozen=True, slots=True)
class Stream:
    """A data set cut in two: what has been, and what comes in increments."""

    dataset: Dataset
    rows: pa.Table
    history: int

    def past(self) -> pa.Table:
        return self.rows.slice(0, self.history)

    def until(self, end: int) -> pa.Table:
        return self.rows.slice(0, end)


class ArgusStage(Stage):
    @contextmanager
    def standing(self, stream: Stream, queries: list[str]) -> Iterator[Standing]:
        """A warehouse in which these queries stand and the history has been processed."""
        folder = self.fresh("warehouse")
        with weft.connect(folder) as db:
            db.sql(stream.dataset.declaration)
            begun = time.perf_counter()
            if queries:
                db.sql(registration(queries))
            registered = time.perf_counter() - begun
            db.push(stream.dataset.name, stream.past())
            begun = time.perf_counter()
            db.run()
            first = time.perf_counter() - begun
            yield Standing(db, stream, queries, stream.history, registered, first)
        shutil.rmtree(folder, ignore_errors=True)

    def parquet(self, table: pa.Table) -> str:
        path = self.fresh("rows").with_suffix(".parquet")
        pq.write_table(table, path)
        return str(path)


def beside_idle(
    stage: ArgusStage, stream: Stream, queries: list[str], size: int, repeat: int, look=None
) -> tuple[float, float, dict]:
    """The median times of an increment with these queries and with none, which take turns, so that
    one can be told from the other however the machine drifts; and what `look` found at the end."""
    with stage.standing(stream, queries) as busy, stage.standing(stream, []) as idle:
        rounds = [(busy.increment(size), idle.increment(size)) for _ in range(repeat + 1)]
        found = look(busy) if look else {}
    seconds, floors = zip(*rounds[1:], strict=True)  # the first warms up
    return statistics.median(seconds), statistics.median(floors), found


def registration(queries: list[str]) -> str:
    return ";\n".join(f"CREATE CONTINUOUS QUERY q{i} AS {sql}" for i, sql in enumerate(queries))


@dataclass
class Standing:
    """A warehouse at work. `at` is how many rows it has seen."""

    db: weft.Database
    stream: Stream
    queries: list[str]
    at: int
    registration_seconds: float
    history_seconds: float

    def increment(self, size: int) -> float:
        """Push the next rows, then process them. → seconds of the processing alone"""
        rows = self.stream.rows.slice(self.at, size)
        assert rows.num_rows == size, "the stream has no more rows"
        self.db.push(self.stream.dataset.name, rows)
        begun = time.perf_counter()
        done = self.db.run()
        taken = time.perf_counter() - begun
        assert (done.rows, done.late, done.rejected) == (size, 0, 0), done
        self.at += size
        return taken

    def strategy(self, i: int) -> str:
        return json.loads(self.db.query(f"q{i}").explain(format="json"))["strategy"]

    def is_recomputed(self) -> bool:
        return any(self.strategy(i).startswith("recompute") for i in range(len(self.queries)))

    def check(self, numbers: list[int]) -> int:
        """Compare answers with DuckDB's over the rows so far. → how many"""
        duck = over(self.stream.dataset.name, self.stream.until(self.at))
        for i in numbers:
            expected = duck.sql(self.queries[i]).to_arrow_table()
            compare(self.queries[i], self.db.query(f"q{i}").results(), expected)
        return len(numbers)


def over(name: str, rows: pa.Table) -> duckdb.DuckDBPyConnection:
    """DuckDB with the rows as a table of this name."""
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    duck.register(name, rows)
    return duck


def compare(sql: str, found: pa.Table, expected: pa.Table) -> None:
    """As many groups, and each statistic adds up to the same."""
    assert found.num_rows == expected.num_rows, (sql, found.num_rows, expected.num_rows)
    for name in (name for name in expected.column_names if name.startswith("a")):
        ours, theirs = (
            math.fsum(v for v in table[name].to_pylist() if v is not None and not math.isnan(v))
            for table in (found, expected)
        )
        assert math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-6), (sql, name, ours, theirs)


def groups_and_rows(duck: duckdb.DuckDBPyConnection, sql: str) -> tuple[int, int]:
    """|A_H| and |S_H(A)|: groups of the answer, and rows that pass its selection."""
    (groups,) = duck.execute(f"SELECT count(*) FROM ({sql})").fetchone()
    source = re.search(r"FROM .*(?= GROUP BY)", sql).group()
    (rows,) = duck.execute(f"SELECT count(*) {source}").fetchone()
    return groups, rows
