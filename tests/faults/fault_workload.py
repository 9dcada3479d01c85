"""A fixed, deterministic workload, and the answers it must give, computed in plain Python.

Step k is a function of k alone, so a worker that died goes on where its journal and the warehouse
say it was. The answers do not depend on how pushes fall into batches: rows are either well within
the watermark's delay or an hour late.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, tzinfo=UTC)
DELAY = 30  # seconds; declared for both streams
PACE = 10  # seconds of event time between steps
SYMBOLS = "abc"

SETUP = (
    """CREATE STREAM trades (id INT, sym STRING, qty INT, ts TIMESTAMP,
                             WATERMARK FOR ts AS ts - INTERVAL 30 SECONDS)""",
    """CREATE STREAM quotes (id INT, sym STRING, bid INT, ts TIMESTAMP,
                             WATERMARK FOR ts AS ts - INTERVAL 30 SECONDS) RETAIN 1 MINUTE""",
    "CREATE TABLE symbols (sym STRING, company STRING, step INT)",
    "CREATE TABLE limits (sym STRING, cap INT, step INT) RETROACTIVE",
    """CREATE CONTINUOUS QUERY closed AS
         SELECT sym, count(*) AS n, sum(qty) AS total
         FROM trades [RANGE 20 SECONDS SLIDE 20 SECONDS] GROUP BY sym""",
    """CREATE CONTINUOUS QUERY live AS
         SELECT sym, count(*) AS n FROM trades [RANGE 60 SECONDS SLIDE 60 SECONDS] GROUP BY sym
         EMIT CHANGES""",
    """CREATE CONTINUOUS QUERY named AS
         SELECT t.id, s.company FROM trades [RANGE 90 SECONDS] t JOIN symbols s ON t.sym = s.sym""",
    "CREATE CONTINUOUS QUERY odd AS SELECT id, company FROM named WHERE id % 2 = 1",
    """CREATE CONTINUOUS QUERY capped AS
         SELECT 0 AS version, t.id, l.cap
         FROM trades [RANGE 60 SECONDS] t JOIN limits l ON t.sym = l.sym""",
    "CREATE CONTINUOUS QUERY companies AS SELECT count(*) AS n FROM symbols",
    """CREATE CONTINUOUS QUERY bids WITH (keep = '1 minute') AS
         SELECT sym, max(bid) AS best FROM quotes [RANGE 20 SECONDS SLIDE 20 SECONDS]
         GROUP BY sym""",
    """CREATE CONTINUOUS QUERY ready WITH (answers = 'eager') AS
         SELECT sym, sum(qty) AS total FROM trades [RANGE 20 SECONDS SLIDE 20 SECONDS]
         WHERE qty > 2 GROUP BY sym""",
    "CREATE CONTINUOUS QUERY ever AS SELECT sym, count(*) AS n FROM trades GROUP BY sym",
    """CREATE CONTINUOUS QUERY loud WITH (keep = '3 minutes') AS SELECT upper(sym) AS sym, count(*) AS n
         FROM trades [RANGE 20 SECONDS SLIDE 20 SECONDS] GROUP BY sym""",
    """CREATE CONTINUOUS QUERY top AS SELECT sym, count(*) AS n FROM trades GROUP BY sym
         ORDER BY n DESC, sym LIMIT 1""",
    """CREATE CONTINUOUS QUERY picked WITH (materialize = 'complete') AS
         SELECT id, upper(sym) AS name FROM trades [RANGE 60 SECONDS] WHERE qty > 2""",
    "CREATE CONTINUOUS QUERY some AS SELECT id FROM trades [ROWS 5] WHERE sym <> 'a' OR qty < 4",
)
SETUP_NAMES = (
    "trades", "quotes", "symbols", "limits", "closed", "live", "named", "odd", "capped", "companies",
    "bids", "ready", "ever", "loud", "top", "picked", "some",
)  # fmt: skip
CYCLE = (
    "push", "insert_symbol", "push", "run", "register", "set_limit", "push_odd", "run",
    "advance", "drop", "update_symbol", "push_quotes", "reweave", "delete_symbol", "run", "replace",
    "push",
)  # fmt: skip
ONE_ROUND = len(SETUP) + len(CYCLE)


def kind_of(k: int) -> str:
    return "setup" if k < len(SETUP) else CYCLE[(k - len(SETUP)) % len(CYCLE)]


def base(k: int) -> datetime:
    return START + timedelta(seconds=k * PACE)


def pushed(k: int) -> list[dict]:
    """The rows of a push: ids k*10.., event times around base(k), out of order."""
    dice = random.Random(k)
    value = "bid" if kind_of(k) == "push_quotes" else "qty"
    rows = [
        {
            "id": k * 10 + n,
            "sym": dice.choice(SYMBOLS),
            value: dice.randrange(1, 8),
            "ts": base(k) + timedelta(milliseconds=dice.randrange(-7000, 9000)),
        }
        for n in range(4)
    ]
    if kind_of(k) == "push_odd":
        rows[2]["ts"] -= timedelta(hours=1)  # late, whatever the batch
        rows[3]["ts"] = "no time at all"  # rejected
    return rows


def registered(k: int) -> str:
    return f"extra_{k}"


def last(kind: str, before: int) -> int:
    return next(k for k in range(before - 1, -1, -1) if kind_of(k) == kind)


def perform(db, k: int) -> None:
    """Do step k."""
    kind, sym = kind_of(k), SYMBOLS[k % len(SYMBOLS)]
    if kind == "setup":
        db.sql(SETUP[k])
    elif kind in ("push", "push_odd"):
        db.push("trades", pushed(k))
    elif kind == "push_quotes":
        db.push("quotes", pushed(k))
    elif kind == "run":
        db.run()
    elif kind == "advance":
        db.advance("trades", base(k))
    elif kind == "insert_symbol":
        db.sql(f"INSERT INTO symbols VALUES ('{sym}', 'company {k}', {k})")
    elif kind == "update_symbol":
        db.sql(f"UPDATE symbols SET company = 'renamed {k}', step = {k} WHERE sym = '{sym}'")
    elif kind == "delete_symbol":
        db.sql(f"DELETE FROM symbols WHERE step < {k - 4}")
    elif kind == "set_limit":
        db.sql(f"INSERT INTO limits VALUES ('{sym}', {k}, {k})")
    elif kind == "register":
        db.sql(
            f"CREATE CONTINUOUS QUERY {registered(k)} AS "
            "SELECT sym, sum(qty) AS total FROM trades [RANGE 60 SECONDS] GROUP BY sym"
        )
    elif kind == "drop":
        db.sql(f"DROP QUERY {registered(last('register', k))}")
    elif kind == "reweave":
        reweave(db)
    elif kind == "replace":
        db.sql(
            f"CREATE OR REPLACE CONTINUOUS QUERY capped AS SELECT {k} AS version, t.id, l.cap "
            "FROM trades [RANGE 60 SECONDS] t JOIN limits l ON t.sym = l.sym"
        )


def reweave(db) -> None:
    """Change the plan of trades to another one, and back the next time."""
    engine = db._engine
    with engine.lock:
        with engine.catalog.read() as view:
            stream = view.find("trades")
        nodes = engine.batches.network(stream.id).folding()
        is_apart = any(live.node.apart for live in nodes)
        engine.weaver.force(stream.id, None if is_apart else "none")
        engine.weaver.forced = None


def happened(db, k: int) -> bool:
    """Whether step k, begun when the process died, is in the warehouse: whole, or not at all."""
    kind = kind_of(k)
    if kind == "setup":
        return SETUP_NAMES[k] in db.names()
    if kind == "register":
        return registered(k) in db.names()
    if kind == "drop":
        return registered(last("register", k)) not in db.names()
    if kind in ("push", "push_odd", "push_quotes"):
        db.run()
        stream = "quotes" if kind == "push_quotes" else "trades"
        first = f"id >= {k * 10} AND id < {k * 10 + 10}"
        found = ids(db, f"SELECT id FROM {stream} WHERE {first}")
        found += ids(db, f"SELECT id FROM {stream}.late WHERE {first}")
        rejected = db.sql(f"SELECT raw FROM {stream}.rejected").column("raw").to_pylist()
        found += [n for n in range(k * 10, k * 10 + 10) if n in map(_id_in, rejected)]
        assert sorted(found) in ([], [r["id"] for r in pushed(k)]), f"half a push: {found}"
        return bool(found)
    if kind in ("insert_symbol", "update_symbol"):
        return bool(len(db.sql(f"SELECT 1 AS x FROM symbols WHERE step = {k}")))
    if kind == "delete_symbol":
        return not len(db.sql(f"SELECT 1 AS x FROM symbols WHERE step < {k - 4}"))
    if kind == "set_limit":
        return bool(len(db.sql(f"SELECT 1 AS x FROM limits WHERE step = {k}")))
    if kind == "replace":
        with db._engine.catalog.read() as view:
            return f"{k} AS version" in view.find("capped").statement
    if kind == "advance":
        clock = next(s.clock for s in db.status().streams if s.name == "trades")
        return clock is not None and clock >= base(k)
    return False  # run, reweave: doing it again changes no answer


def _id_in(raw: str) -> int:
    return int(json.loads(raw)["id"])


def ids(db, sql: str) -> list[int]:
    return db.sql(sql).column("id").to_pylist()


@dataclass
class Expected:
    """What the warehouse must hold after a number of steps and a run()."""

    trades: list[dict] = field(default_factory=list)  # in order of arrival
    quotes: list[dict] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    rejected: int = 0
    symbols: list[dict] = field(default_factory=list)
    limits: list[dict] = field(default_factory=list)
    names_then: dict[int, list[str]] = field(default_factory=dict)  # trade → companies on arrival
    heartbeat: datetime | None = None
    extra: str | None = None
    version: int = 0

    def clock(self, rows: list[dict]) -> datetime | None:
        times = [row["ts"] - timedelta(seconds=DELAY) for row in rows]
        if rows is self.trades and self.heartbeat:
            times.append(self.heartbeat)
        return max(times, default=None)

    def within(self, seconds: int) -> list[dict]:
        """What [RANGE n SECONDS] on trades holds now."""
        now = self.clock(self.trades)
        if now is None:
            return []
        first = now - timedelta(seconds=seconds)
        return [row for row in self.trades if first < row["ts"] <= now]


def expect(done: int) -> Expected:
    """Replay steps 0 .. done-1."""
    want = Expected()
    for k in range(done):
        _replay(want, k, kind_of(k), SYMBOLS[k % len(SYMBOLS)])
    return want


def _replay(want: Expected, k: int, kind: str, sym: str) -> None:
    if kind in ("push", "push_odd"):
        rows = pushed(k)
        if kind == "push_odd":
            want.late.append(rows[2]["id"])
            want.rejected += 1
            rows = rows[:2]
        want.trades += rows
        for row in rows:
            want.names_then[row["id"]] = [
                s["company"] for s in want.symbols if s["sym"] == row["sym"]
            ]
    elif kind == "push_quotes":
        want.quotes += pushed(k)
    elif kind == "advance":
        want.heartbeat = base(k)
    elif kind == "insert_symbol":
        want.symbols.append({"sym": sym, "company": f"company {k}", "step": k})
    elif kind == "update_symbol":
        for row in want.symbols:
            if row["sym"] == sym:
                row.update(company=f"renamed {k}", step=k)
    elif kind == "delete_symbol":
        want.symbols = [row for row in want.symbols if row["step"] >= k - 4]
    elif kind == "set_limit":
        want.limits.append({"sym": sym, "cap": k, "step": k})
    elif kind == "register":
        want.extra = registered(k)
    elif kind == "drop":
        want.extra = None
    elif kind == "replace":
        want.version = k


def windows(rows: list[dict], seconds: int, fold) -> Counter:
    """(start, end, sym, *fold(rows)) for each tumbling window and symbol."""
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        start = datetime.fromtimestamp(row["ts"].timestamp() // seconds * seconds, UTC)
        groups.setdefault((start, row["sym"]), []).append(row)
    return Counter(
        (start, start + timedelta(seconds=seconds), sym, *fold(group))
        for (start, sym), group in groups.items()
    )


def closed_by(found: Counter, clock: datetime | None) -> Counter:
    return Counter({row: n for row, n in found.items() if clock is not None and row[1] <= clock})


def kept(found: Counter, clock: datetime | None, minutes: int) -> Counter:
    return Counter(
        {row: n for row, n in found.items() if row[1] > clock - timedelta(minutes=minutes)}
    )


def newest(found: Counter) -> Counter:
    end = max((row[1] for row in found), default=None)
    return Counter({row: n for row, n in found.items() if row[1] == end})


def answers(want: Expected) -> dict[str, tuple[Counter, Counter | None]]:
    """Query → its results(), and its history() where it is one of windows."""
    closed = closed_by(
        windows(want.trades, 20, lambda g: (len(g), sum(r["qty"] for r in g))),
        want.clock(want.trades),
    )
    live = windows(want.trades, 60, lambda g: (len(g),))
    bids = closed_by(
        windows(want.quotes, 20, lambda g: (max(r["bid"] for r in g),)), want.clock(want.quotes)
    )
    bids = kept(bids, want.clock(want.quotes), 1)
    named = Counter(
        (row["id"], company) for row in want.within(90) for company in want.names_then[row["id"]]
    )
    large = [row for row in want.trades if row["qty"] > 2]
    ready = closed_by(
        windows(large, 20, lambda g: (sum(r["qty"] for r in g),)), want.clock(want.trades)
    )
    now = want.clock(want.trades)
    ever = Counter(row["sym"] for row in want.trades if now is not None and row["ts"] <= now)
    loud = kept(closed_by(windows(want.trades, 20, lambda g: (len(g),)), now), now, 3)
    loud = Counter({(*row[:2], row[2].upper(), row[3]): n for row, n in loud.items()})
    top = sorted(ever.items(), key=lambda pair: (-pair[1], pair[0]))[:1]
    totals = Counter()
    for row in want.within(60):
        totals[row["sym"]] += row["qty"]
    picked = [row for row in want.within(60) if row["qty"] > 2]
    seen = [row for row in want.trades if now is not None and row["ts"] <= now]
    arrival = {row["id"]: nth for nth, row in enumerate(want.trades)}
    newest_rows = sorted(seen, key=lambda row: (row["ts"], arrival[row["id"]]))[-5:]
    found = {
        "picked": (Counter((row["id"], row["sym"].upper()) for row in picked), None),
        "some": (
            Counter((r["id"],) for r in newest_rows if r["sym"] != "a" or r["qty"] < 4),
            None,
        ),
        "closed": (newest(closed), closed),
        "live": (newest(live), live),
        "bids": (newest(bids), bids),
        "ready": (newest(ready), ready),
        "ever": (Counter(ever.items()), None),
        "loud": (newest(loud), loud),
        "top": (Counter(top), None),
        "named": (named, None),
        "odd": (Counter({row: n for row, n in named.items() if row[0] % 2 == 1}), None),
        "capped": (
            Counter(
                (want.version, row["id"], limit["cap"])
                for row in want.within(60)
                for limit in want.limits
                if limit["sym"] == row["sym"]
            ),
            None,
        ),
        "companies": (Counter([(len(want.symbols),)]), None),
    }
    if want.extra:
        found[want.extra] = (Counter(totals.items()), None)
    return found


def rows_of(table) -> Counter:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def differences(db, done: int) -> list[str]:
    """Where a warehouse that was run after `done` steps differs from what it must hold."""
    want = expect(done)
    found: list[str] = []

    def compare(what: str, got, wanted) -> None:
        if got != wanted:
            more = got - wanted if isinstance(got, Counter) else got
            less = wanted - got if isinstance(got, Counter) else wanted
            found.append(f"after {done} steps, {what}: too much {more}, missing {less}")

    known = set(db.names())
    wanted_names = set(SETUP_NAMES[: min(done, len(SETUP))])
    wanted_names |= {want.extra} if want.extra else set()
    compare("names", known, wanted_names)
    if "trades" in known:
        compare("trades", Counter(ids(db, "SELECT id FROM trades")), _ids(want.trades))
        compare("late", Counter(ids(db, "SELECT id FROM trades.late")), Counter(want.late))
        compare("rejected", len(db.sql("SELECT raw FROM trades.rejected")), want.rejected)
    if "symbols" in known:
        names = rows_of(db.sql("SELECT sym, company, step FROM symbols"))
        compare("symbols", names, Counter(tuple(row.values()) for row in want.symbols))
    for status in db.status().streams:
        rows = getattr(want, status.name)
        counts = (len(rows), len(want.late), want.rejected)
        compare(
            f"counters of {status.name}",
            (status.rows, status.late, status.rejected),
            counts if status.name == "trades" else (len(rows), 0, 0),
        )
    for name, (results, history) in answers(want).items():
        if name in known:
            compare(f"results of {name}", rows_of(db.query(name).results()), results)
            if history is not None:
                compare(f"history of {name}", rows_of(db.query(name).history()), history)
            compare(f"changes of {name}", _folded(db, name, found), history or results)
    return found


def _ids(rows: list[dict]) -> Counter:
    return Counter(row["id"] for row in rows)


def _folded(db, name: str, found: list[str]) -> Counter:
    """The changes handed to a subscriber, added up; one that goes must have come before."""
    total: Counter = Counter()
    for change in db.query(name).subscribe():
        row = tuple(change.row.values())
        total[row] += 1 if change.kind == "insert" else -1
        if total[row] < 0:
            found.append(f"changes of {name}: {row} went before it came")
    return +total
