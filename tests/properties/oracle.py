"""A small model of the contract, to check answers against another engine.

It knows only what was pushed and in which batch, and the contract's definitions: which rows are
late, what the clock is, which rows a window holds, when a window is emitted. The SQL itself runs on
DuckDB over those contents. Nothing of Weft is imported here.

Instants are microseconds since the epoch. Ticks number pushes and table changes in their order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import duckdb

SECOND = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DUCK_TYPES = {
    "STRING": "VARCHAR",
    "INT": "INTEGER",
    "BIGINT": "BIGINT",
    "DOUBLE": "DOUBLE",
    "DECIMAL(10,2)": "DECIMAL(10,2)",
    "TIMESTAMP": "TIMESTAMP",
}


def iso(micros: int) -> str:
    return (EPOCH + timedelta(microseconds=micros)).isoformat()


def micros(value: datetime) -> int:
    value = value if value.tzinfo else value.replace(tzinfo=UTC)
    return (value - EPOCH) // timedelta(microseconds=1)


# data


@dataclass(frozen=True)
class Row:
    values: tuple
    time: int
    tick: int
    order: int


@dataclass
class Stream:
    """Rows that were accepted, late or rejected, batch by batch, and the clock they make."""

    name: str
    columns: dict[str, str]  # the event time is "ts"
    delay: int
    retain: int | None = None
    clock: int | None = None
    largest: int | None = None
    rows: list[Row] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)
    rejected: int = 0
    waiting: list[Row] = field(default_factory=list)

    def push(self, rows: Iterable[dict], tick: int) -> None:
        at = list(self.columns).index("ts")
        for order, row in enumerate(rows):
            values = tuple(row.get(c) for c in self.columns)
            self.waiting.append(Row(values, values[at], tick, order))

    def run(self) -> None:
        """Everything that waits is one batch: late is what is before the clock at its start."""
        batch, self.waiting = self.waiting, []
        limit = self.clock
        for row in batch:
            if row.time is None:
                self.rejected += 1
            elif limit is not None and row.time < limit:
                self.late.append(row)
            else:
                self.rows.append(row)
                self.largest = row.time if self.largest is None else max(self.largest, row.time)
        if self.largest is not None:
            watermark = self.largest - self.delay
            self.clock = watermark if self.clock is None else max(self.clock, watermark)

    def beat(self, instant: int) -> None:
        self.clock = instant if self.clock is None else max(self.clock, instant)

    def horizon(self) -> int | None:
        """What a query registered now may not see: rows before this, if there are such rows."""
        if self.retain is None or self.clock is None:
            return None
        edge = self.clock - self.retain
        return edge if any(row.time < edge for row in self.rows) else None


@dataclass
class Table:
    """Every version of every row with the ticks [since, until) between which it was current."""

    name: str
    columns: dict[str, str]
    is_retroactive: bool
    versions: list[list] = field(default_factory=list)  # [values, since, until]

    def insert(self, rows: list[tuple], tick: int) -> None:
        self.versions += [[row, tick, math.inf] for row in rows]

    def change(self, tick: int, new: Callable[[tuple], tuple | None]) -> None:
        """Replace every current row by `new(row)`; None deletes it."""
        for version in [v for v in self.versions if v[2] == math.inf]:
            changed = new(version[0])
            if changed != version[0]:
                version[2] = tick
                if changed is not None:
                    self.versions.append([changed, tick, math.inf])


# windows

Slice = tuple[int, int]  # [start, end)


@dataclass(frozen=True)
class Hop:
    """[k·slide + offset, k·slide + offset + length)"""

    length: int
    slide: int
    offset: int = 0
    is_per_window = True

    def slices(self, time: int) -> list[Slice]:
        last = (time - self.offset) // self.slide * self.slide + self.offset
        found = []
        while last + self.length > time:
            found.append((last, last + self.length))
            last -= self.slide
        return found


@dataclass(frozen=True)
class Cumulate:
    """[k·size, k·size + j·step)"""

    size: int
    step: int
    is_per_window = True

    def slices(self, time: int) -> list[Slice]:
        start = time // self.size * self.size
        ends = range(start + self.step, start + self.size + 1, self.step)
        return [(start, end) for end in ends if time < end]


@dataclass(frozen=True)
class RowsSlide:
    """Window k ends with row k·slide in the order (time, arrival) and holds at most `count` rows."""

    count: int
    slide: int
    is_per_window = True


@dataclass(frozen=True)
class Sessions:
    """Rows of one key that follow each other by at most the gap: [first, last + gap)."""

    gap: int
    key: str
    is_per_window = True


@dataclass(frozen=True)
class Whole:
    is_per_window = False

    def holds(self, time: int, now: int) -> bool:
        return time <= now


@dataclass(frozen=True)
class Slide:
    """τ − lag − length < ts ≤ τ − lag"""

    length: int
    lag: int = 0
    is_per_window = False

    def holds(self, time: int, now: int) -> bool:
        return now - self.lag - self.length < time <= now - self.lag


@dataclass(frozen=True)
class Since:
    start: int
    is_per_window = False

    def holds(self, time: int, now: int) -> bool:
        return self.start <= time <= now


@dataclass(frozen=True)
class Between:
    start: int
    end: int
    is_per_window = False

    def holds(self, time: int, now: int) -> bool:
        return self.start <= time < self.end and time <= now


@dataclass(frozen=True)
class Last:
    count: int
    is_per_window = False

    def holds(self, time: int, now: int) -> bool:
        return time <= now


Window = Hop | Cumulate | RowsSlide | Sessions | Whole | Slide | Since | Between | Last


def in_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda r: (r.time, r.tick, r.order))


def at_instant(rows: list[Row], window: Window, now: int | None) -> list[Row]:
    """The contents of a standing window."""
    if now is None:
        return []
    held = in_order(r for r in rows if window.holds(r.time, now))
    return held[-window.count :] if isinstance(window, Last) else held


def sessions(rows: list[Row], window: Sessions, key: int) -> list[tuple[Slice, list[Row]]]:
    found: list[tuple[Slice, list[Row]]] = []
    for value in {r.values[key] for r in rows}:
        for row in in_order(r for r in rows if r.values[key] == value):
            last = found[-1] if found and found[-1][1][0].values[key] == value else None
            if last and row.time <= last[0][1]:
                found[-1] = ((last[0][0], row.time + window.gap), [*last[1], row])
            else:
                found.append(((row.time, row.time + window.gap), [row]))
    return found


def row_windows(rows: list[Row], window: RowsSlide) -> list[tuple[int, Slice, list[Row]]]:
    """(k, (first time, last time), rows) of every complete window."""
    ordered, found = in_order(rows), []
    for number in range(1, len(ordered) // window.slide + 1):
        end = number * window.slide
        held = ordered[max(0, end - window.count) : end]
        found.append((number, (held[0].time, held[-1].time), held))
    return found


# queries


@dataclass(frozen=True)
class Source:
    """One occurrence of a stream, or of another query's closed windows, with its window."""

    stream: str
    alias: str
    window: Window


@dataclass(frozen=True)
class Query:
    """A generated query. `body` renders its SQL for either engine, given that engine's texts."""

    sources: tuple[Source, ...]
    body: Callable[[Env], str]
    emits_changes: bool = False
    is_ordered: bool = False  # by all its columns
    keeps: Callable[[dict], bool] | None = None  # WHERE of a session query, in Python
    views: tuple[str, ...] = ()  # standing queries that it reads

    @property
    def is_per_window(self) -> bool:
        return any(s.window.is_per_window for s in self.sources)

    def window(self) -> Window:
        return next(s.window for s in self.sources if s.window.is_per_window)


class Env:
    """What a body asks for; one class for each engine."""

    def source(self, index: int) -> str:
        raise NotImplementedError

    def table(self, name: str, alias: str) -> str:
        raise NotImplementedError

    def view(self, name: str, alias: str) -> str:
        raise NotImplementedError

    def as_of(self, table: str, *streams: str) -> str:
        """A condition that DuckDB needs and Weft implies: the table's version at the arrival."""
        return ""

    def some(self) -> str:
        """A windowed aggregate emits nothing for a window without rows."""
        return ""

    def by_window(self, alias: str, has_keys: bool = True) -> str:
        """The end of GROUP BY: Spark's window call, or nothing."""
        return ""


class Contents(Env):
    """DuckDB's texts: each source is the rows that it holds, spelled out."""

    def __init__(self, model: Model, query: Query, rows: list[list[Row]], now: int | None) -> None:
        self._model, self._query, self._rows, self._now = model, query, rows, now

    def source(self, index: int) -> str:
        source = self._query.sources[index]
        columns = self._model.columns_of(source.stream)
        rows = [(*r.values, r.tick) for r in self._rows[index]]
        return f"{relation({**columns, '_tick': 'BIGINT'}, rows)} AS {source.alias}"

    def table(self, name: str, alias: str) -> str:
        table = self._model.tables[name]
        if table.is_retroactive:
            now = [v[0] for v in table.versions if v[2] == math.inf]
            return f"{relation(table.columns, now)} AS {alias}"
        columns = {**table.columns, "_from": "BIGINT", "_to": "BIGINT"}
        rows = [(*v[0], v[1], 2**60 if v[2] == math.inf else v[2]) for v in table.versions]
        return f"{relation(columns, rows)} AS {alias}"

    def view(self, name: str, alias: str) -> str:
        return f"({self._model.standing_sql(self._model.queries[name], self._now)}) AS {alias}"

    def as_of(self, table: str, *streams: str) -> str:
        arrival = f"greatest({', '.join(f'{s}._tick' for s in streams)})"
        return f" AND {table}._from <= {arrival} AND {arrival} < {table}._to"

    def some(self) -> str:
        return " HAVING count(*) > 0" if self._query.is_per_window else ""


def relation(columns: dict[str, str], rows: list[tuple]) -> str:
    types = [DUCK_TYPES.get(t, t) for t in columns.values()]
    if not rows:
        nulls = [f"NULL::{t} AS {name}" for name, t in zip(columns, types, strict=True)]
        return f"(SELECT {', '.join(nulls)} WHERE false)"
    lines = [
        "(" + ", ".join(literal(v, t) for v, t in zip(row, types, strict=True)) + ")"
        for row in rows
    ]
    return f"(SELECT * FROM (VALUES {', '.join(lines)}) AS _v({', '.join(columns)}))"


def literal(value: object, kind: str) -> str:
    if value is None:
        return f"NULL::{kind}"
    if kind == "TIMESTAMP":
        return f"make_timestamp({value})"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'::VARCHAR"
    if isinstance(value, float) and math.isnan(value):
        return "'NaN'::DOUBLE"
    return f"({value})::{kind}"


def run_sql(sql: str) -> list[tuple]:
    with duckdb.connect(":memory:") as engine:
        return [plain(row) for row in engine.execute(sql).fetchall()]


def plain(row: Iterable) -> tuple:
    return tuple(plain_value(value) for value in row)


def plain_value(value: object) -> object:
    """A value in a form that both engines' answers share."""
    if isinstance(value, datetime):
        return micros(value)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, Decimal | float):
        return float(value)
    return value


Emitted = list[tuple[tuple, list[tuple]]]  # ((end, tie, start), rows with window first)


@dataclass
class Registered:
    """A query since it was registered: what it may see, and the windows it has emitted."""

    query: Query
    horizons: dict[str, int | None]
    emitted: dict[tuple, list[tuple]] = field(default_factory=dict)  # key → rows, see _windows


class Model:
    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}
        self.tables: dict[str, Table] = {}
        self.queries: dict[str, Registered] = {}
        self._tick = 0

    def tick(self) -> int:
        self._tick += 1
        return self._tick

    def register(self, name: str, query: Query) -> None:
        names = {s.stream for s in query.sources if s.stream in self.streams}
        horizons = {n: self.streams[n].horizon() for n in names}
        self.queries[name] = Registered(query, horizons)
        self.settle()

    def settle(self) -> None:
        """Emit what has closed, after each batch, heartbeat or registration."""
        for registered in self.queries.values():
            if registered.query.is_per_window:
                self._emit(registered)

    # answers

    def results(self, name: str) -> list[tuple]:
        registered = self.queries[name]
        if not registered.query.is_per_window:
            return run_sql(self.standing_sql(registered, self.clock(registered.query)))
        filled = {key: rows for key, rows in registered.emitted.items() if rows}
        if not filled:
            return []
        newest = max(key[:2] for key in filled)
        return [row for key, rows in filled.items() if key[:2] == newest for row in rows]

    def history(self, name: str) -> list[tuple]:
        return [row for rows in self.queries[name].emitted.values() for row in rows]

    def clock(self, query: Query) -> int | None:
        """The smallest clock of the streams below, whatever lies between."""
        clocks = [self._clock_of(s.stream) for s in query.sources]
        clocks += [self.clock(self.queries[name].query) for name in query.views]
        return None if not clocks or any(c is None for c in clocks) else min(clocks)

    def _clock_of(self, name: str) -> int | None:
        if name in self.streams:
            return self.streams[name].clock
        return self.clock(self.queries[name].query)

    def columns_of(self, name: str) -> dict[str, str]:
        if name in self.streams:
            return self.streams[name].columns
        return WINDOW_ANSWER

    def _rows_of(self, registered: Registered, source: Source) -> list[Row]:
        if source.stream in self.streams:
            horizon = registered.horizons[source.stream]
            rows = self.streams[source.stream].rows
            return rows if horizon is None else [r for r in rows if r.time >= horizon]
        below = self.queries[source.stream]
        clock = self.clock(below.query)
        return [
            Row(row, key[0] - 1, 0, 0)
            for key, rows in below.emitted.items()
            if clock is not None and key[0] <= clock
            for row in rows
        ]

    def standing_sql(self, registered: Registered, now: int | None) -> str:
        query = registered.query
        contents = [at_instant(self._rows_of(registered, s), s.window, now) for s in query.sources]
        return query.body(Contents(self, query, contents, now))

    def _emit(self, registered: Registered) -> None:
        query, clock = registered.query, self.clock(registered.query)
        found = list(self._windows(registered, clock))
        if query.emits_changes:
            registered.emitted.clear()
        for key, contents in found:
            end, _, start, *_ = key
            is_closed = clock is not None and (
                clock > end if isinstance(query.window(), Sessions) else clock >= end
            )
            if key not in registered.emitted and (is_closed or query.emits_changes):
                rows = run_sql(query.body(Contents(self, query, contents, clock)))
                registered.emitted[key] = [(start, end, *row) for row in rows]

    def _windows(self, registered: Registered, clock: int | None):
        """Every window that holds a row: ((end, tie, start, …), contents of each source)."""
        query, window = registered.query, registered.query.window()
        if isinstance(window, Sessions):
            yield from self._sessions(registered, window)
        elif isinstance(window, RowsSlide):
            yield from self._row_windows(registered, window, clock)
        else:
            yield from self._slices(registered, query)

    def _sessions(self, registered: Registered, window: Sessions):
        source = registered.query.sources[0]
        names = list(self.columns_of(source.stream))
        rows = self._rows_of(registered, source)
        keeps = registered.query.keeps
        if keeps is not None:
            rows = [r for r in rows if keeps(dict(zip(names, r.values, strict=True)))]
        for (start, end), held in sessions(rows, window, names.index(window.key)):
            yield (end, 0, start, str(held[0].values[names.index(window.key)])), [held]

    def _row_windows(self, registered: Registered, window: RowsSlide, clock: int | None):
        source = registered.query.sources[0]
        rows = self.streams[source.stream].rows  # rows are numbered from the stream's first
        seen = [r for r in rows if clock is not None and r.time <= clock]
        horizon = registered.horizons[source.stream]
        for number, (start, end), held in row_windows(seen, window):
            if horizon is None or start >= horizon:
                yield (end, number, start), [held]

    def _slices(self, registered: Registered, query: Query):
        found: dict[Slice, list[list[Row]]] = {}
        for index, source in enumerate(query.sources):
            for row in self._rows_of(registered, source):
                for part in source.window.slices(row.time):
                    found.setdefault(part, [[] for _ in query.sources])[index].append(row)
        edges = [h for h in registered.horizons.values() if h is not None]
        for (start, end), contents in sorted(found.items()):
            if all(start >= edge for edge in edges):
                yield (end, 0, start), contents


WINDOW_ANSWER = {"window_start": "TIMESTAMP", "window_end": "TIMESTAMP", "k": "STRING", "n": "BIGINT", "sv": "BIGINT"}  # fmt: skip


def difference(expected: list[tuple], actual: list[tuple]) -> str:
    """What is missing from an answer and what is too much, "" when they are the same bag."""
    wanted, found = Counter(expected), Counter(actual)
    missing, extra = list((wanted - found).elements()), list((found - wanted).elements())
    return f"missing {missing}, too much {extra}" if missing or extra else ""
