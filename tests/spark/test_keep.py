"""WITH (keep = …): at every batch the visible windows are those that end after the clock less keep."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

import weft
from weft.errors import SqlError, StorageError, WeftError

START = datetime(2026, 1, 1, tzinfo=UTC)
KEEP = 60  # seconds
STREAM = "CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
HOPS = "SELECT k, count(*) AS n, sum(v) AS t FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY k"
MANY = "WITH (keep = '1 minute')"
QUERIES = {  # name → options, SELECT, what it gives of a window's rows of one key
    "lazy": (MANY, HOPS, lambda g: (len(g), sum(g))),
    "eager": (
        "WITH (keep = '1 minute', answers = 'eager')",
        HOPS.replace("sum(v)", "max(v)"),
        lambda g: (len(g), max(g)),
    ),
    "spark": (
        MANY,
        HOPS.replace("SELECT k,", "SELECT upper(k) AS k,"),
        lambda g: (len(g), sum(g)),
    ),
    "again": (MANY, HOPS.replace("sum(v)", "median(v)"), None),
}


@pytest.fixture(autouse=True)
def forced(monkeypatch):
    for name, value in {
        "WEFT_MAINTAIN_EVERY": "1",
        "WEFT_COMPACT_AFTER": "2",
        "WEFT_GRACE_SECONDS": "0",
    }.items():
        monkeypatch.setenv(name, value)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def batch(number: int, dice: random.Random) -> list[dict]:
    first = number * 25
    return [
        {"k": dice.choice("ab"), "v": dice.randrange(100), "ts": at(first + dice.randrange(25))}
        for _ in range(12)
    ] + [{"k": "a", "v": 1, "ts": at(first + 25)}]


def windows(rows: list[dict], clock: datetime, fold, length: int = 20, slide: int = 10) -> dict:
    """(start, end, key) → what the windows that have closed give."""
    found: dict[tuple, list[int]] = {}
    for row in rows:
        at_second = (row["ts"] - START).total_seconds()
        first = int(at_second // slide) * slide
        for start in range(first, first - length, -slide):
            if start <= at_second < start + length and at(start + length) <= clock:
                found.setdefault((at(start), at(start + length), row["k"]), []).append(row["v"])
    return {key: fold(group) for key, group in found.items()}


def kept(rows: list[dict], clock: datetime, fold, keep: int | None = KEEP) -> Counter:
    after = datetime.min.replace(tzinfo=UTC) if keep is None else clock - timedelta(seconds=keep)
    return Counter((*k, *v) for k, v in windows(rows, clock, fold).items() if k[1] > after)


def told(table) -> Counter:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def newest(found: Counter) -> Counter:
    end = max((row[1] for row in found), default=None)
    return Counter({row: n for row, n in found.items() if row[1] == end})


def lowered(found: Counter) -> Counter:
    return Counter({(*r[:2], r[2].lower(), *r[3:]): n for r, n in found.items()})


def stored_rows(db: weft.Database) -> int:
    """Partials, kept windows and stored answers in live segments."""
    found = db.sql("SELECT part, rows FROM weft.segments").to_pylist()
    return sum(s["rows"] for s in found if s["part"] in ("partials", "results", "changes"))


def median(values: list[int]) -> tuple:
    ordered, n = sorted(values), len(values)
    return (n, (ordered[(n - 1) // 2] + ordered[n // 2]) / 2)


def check(db: weft.Database, rows: list[dict], clock: datetime) -> None:
    for name, (_, _, fold) in QUERIES.items():
        wanted = kept(rows, clock, fold or median)
        query = db.query(name)
        assert lowered(told(query.history())) == wanted, name
        assert lowered(told(query.results())) == newest(wanted), name
        assert lowered(told(db.sql(f"SELECT * FROM {name}.history"))) == wanted, name
        changes = Counter(tuple(c.row.values()) for c in query.subscribe(follow=False))
        assert lowered(changes) == wanted, name


@pytest.mark.parametrize("is_reopened", [False, True])
def test_exactly_the_windows_that_are_kept_are_seen(tmp_path, is_reopened):
    dice, rows, sizes = random.Random(7), [], []
    db = weft.connect(tmp_path)
    db.sql(STREAM)
    for name, (options, body, _) in QUERIES.items():
        db.sql(f"CREATE CONTINUOUS QUERY {name} {options} AS {body}")
    for number in range(14):
        fresh = batch(number, dice)
        db.push("s", fresh)
        db.run()
        rows += fresh
        check(db, rows, at(number * 25 + 25))
        db._engine.maintain()
        check(db, rows, at(number * 25 + 25))
        sizes.append(stored_rows(db))
        if is_reopened and number % 5 == 4:
            db.close()
            db = weft.connect(tmp_path)
    assert max(sizes[8:]) <= 1.5 * max(sizes[3:6]), sizes
    db.advance("s", at(1000))
    assert not len(db.query("lazy").history())
    db.close()


def test_a_query_that_comes_after_pruning_is_right(tmp_path):
    dice, rows = random.Random(8), []
    fold = QUERIES["lazy"][2]
    with weft.connect(tmp_path) as db:
        db.sql(STREAM)
        db.sql(f"CREATE CONTINUOUS QUERY lazy {MANY} AS {HOPS}")
        for number in range(8):
            rows += (fresh := batch(number, dice))
            db.push("s", fresh)
            db.run()
            db._engine.maintain()
        clock = at(200)
        nodes = db.sql("SELECT node_id, born_tick FROM weft.group_topology").to_pylist()
        assert nodes[0]["born_tick"] > 0
        db.sql(f"CREATE CONTINUOUS QUERY same {MANY} AS {HOPS}")
        shorter = HOPS.replace("20 SECONDS S", "10 SECONDS S")
        db.sql(f"CREATE CONTINUOUS QUERY shorter {MANY} AS {shorter}")
        assert db.sql("SELECT node_id, born_tick FROM weft.group_topology").to_pylist() == nodes
        db.sql(f"CREATE CONTINUOUS QUERY ever AS {HOPS}")
        db.sql(f"CREATE CONTINUOUS QUERY also_ever AS {HOPS}")
        db.sql(f"CREATE CONTINUOUS QUERY longer WITH (keep = '2 minutes') AS {HOPS}")
        longer = HOPS.replace("20 SECONDS S", "40 SECONDS S")
        db.sql(f"CREATE CONTINUOUS QUERY wider {MANY} AS {longer}")
        for number in range(8, 12):
            keeps = {"lazy": 60, "same": 60, "ever": None, "also_ever": None, "longer": 120}
            for name, keep in keeps.items():
                assert told(db.query(name).history()) == kept(rows, clock, fold, keep), name
            for name, length in {"shorter": 10, "wider": 40}.items():
                found = windows(rows, clock, fold, length)
                seen = {(*k, *v) for k, v in found.items() if k[1] > clock - timedelta(seconds=60)}
                assert set(told(db.query(name).history())) == seen, name
            rows += (fresh := batch(number, dice))
            db.push("s", fresh)
            db.run()
            db._engine.maintain()
            clock = at(number * 25 + 25)
        classes = {
            r["name"]: r["class_id"] for r in db.sql("SELECT * FROM weft.queries").to_pylist()
        }
        assert classes["lazy"] == classes["same"] != classes["ever"] == classes["also_ever"]


def test_keep_is_altered_and_what_is_gone_stays_so(tmp_path):
    dice, rows = random.Random(9), []
    fold = QUERIES["lazy"][2]
    with weft.connect(tmp_path) as db:
        db.sql(STREAM)
        query = db.sql(f"CREATE CONTINUOUS QUERY q AS {HOPS}")
        assert "keeps      closed" not in query.explain()

        def step(number: int) -> datetime:
            fresh = batch(number, dice)
            rows.extend(fresh)
            db.push("s", fresh)
            db.run()
            db._engine.maintain()
            return at(number * 25 + 25)

        for number in range(8):
            clock = step(number)
        assert told(query.history()) == kept(rows, clock, fold, None)
        token = list(query.subscribe(follow=False))[3].token
        last = query.subscribe(follow=False)
        assert len(list(last)) > 4
        db.sql("ALTER QUERY q SET (keep = '50 seconds')")
        assert told(query.history()) == kept(rows, clock, fold, 50)
        assert "closed windows, for 50 s; forgotten: those that end by 2026-01-01T00:02:30Z" in (
            query.explain()
        )
        assert not list(query.subscribe(last.token, follow=False))
        with pytest.raises(StorageError) as refused:
            list(query.subscribe(token, follow=False))
        assert refused.value.code == "WEFT_NOT_RETAINED"
        for instant, is_there in ((at(150), False), (at(150.1), True)):
            if is_there:
                query.results(at=instant)
                continue
            with pytest.raises(StorageError):
                query.results(at=instant)
        db.sql("ALTER QUERY q SET (keep = '1 day')")
        assert told(query.history()) == kept(rows, clock, fold, 50)
        clock = step(8)
        assert told(query.history()) == kept(rows, clock, fold, 75)
        assert len(list(last)) == sum((kept(rows, clock, fold, 25)).values())
        db.sql("ALTER QUERY q SET (keep = 'forever')")
        assert told(query.history()) == kept(rows, clock, fold, 75)


def test_tokens_stay_good_while_windows_before_them_are_forgotten(tmp_path):
    dice = random.Random(10)
    with weft.connect(tmp_path) as db:
        db.sql(STREAM)
        for name in ("lazy", "spark"):
            db.sql(f"CREATE CONTINUOUS QUERY {name} {MANY} AS {QUERIES[name][1]}")
        seen: dict[str, list] = {"lazy": [], "spark": []}
        following = {name: db.query(name).subscribe(follow=False) for name in seen}
        for number in range(6):
            db.push("s", batch(number, dice))
            db.run()
            for name, changes in seen.items():
                live = [c for c in changes if c.row["window_end"] > at(number * 25 - 35)]
                for change in live[:: max(1, len(live) // 5)]:
                    after = changes[changes.index(change) + 1 :]
                    found = db.query(name).subscribe(change.token, follow=False)
                    rest = [(c.row, c.token) for c in found][: len(after)]
                    assert rest == [(c.row, c.token) for c in after]
                changes += following[name]
        assert all(len(changes) > 20 for changes in seen.values())


def test_queries_on_top_hold_what_they_need(tmp_path):
    dice, rows = random.Random(11), []
    with weft.connect(tmp_path) as db:
        db.sql(STREAM)
        for name in ("lazy", "again"):
            db.sql(f"CREATE CONTINUOUS QUERY {name} {MANY} AS {QUERIES[name][1]}")
            db.sql(f"CREATE CONTINUOUS QUERY all_{name} AS SELECT count(*) AS n FROM {name}")
            db.sql(
                f"CREATE CONTINUOUS QUERY wide_{name} AS SELECT sum(n) AS n"
                f" FROM {name} [RANGE 100 SECONDS SLIDE 100 SECONDS]"
            )
        for number in range(8):
            rows += (fresh := batch(number, dice))
            db.push("s", fresh)
            db.run()
            db._engine.maintain()
        clock = at(200)
        every = kept(rows, clock, QUERIES["lazy"][2], None)
        for name in ("lazy", "again"):
            assert len(db.query(name).history()) < len(every)
            assert db.query(f"all_{name}").results().to_pylist() == [{"n": len(every)}]
            sums = [r["n"] for r in db.query(f"wide_{name}").history().to_pylist()]
            ends = (at(0), at(100), at(200))
            assert sums == [
                sum(r[3] for r in every if low < r[1] <= high)
                for low, high in itertools.pairwise(ends)
            ]
            db.sql(f"CREATE CONTINUOUS QUERY late_{name} AS SELECT count(*) AS n FROM {name}")
            wanted = sum(kept(rows, clock, QUERIES["lazy"][2]).values())
            assert db.query(f"late_{name}").results().to_pylist() == [{"n": wanted}]
            db.sql(f"DROP QUERY all_{name}; DROP QUERY late_{name}")
        before = stored_rows(db)
        db.push("s", batch(8, dice))  # what lies beside newer partials goes when they are merged
        db.run()
        db._engine.maintain()
        assert stored_rows(db) < before


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE CONTINUOUS QUERY q WITH (keep = '1 day') AS SELECT k FROM s",
        "CREATE CONTINUOUS QUERY q WITH (keep = '1 day') AS SELECT count(*) AS n FROM s",
        f"CREATE CONTINUOUS QUERY q WITH (keep = '1 day') AS {HOPS} EMIT CHANGES",
        f"CREATE CONTINUOUS QUERY q WITH (keep = '1 month') AS {HOPS}",
        f"CREATE CONTINUOUS QUERY q WITH (keep = '0 days') AS {HOPS}",
        f"CREATE CONTINUOUS QUERY q WITH (keep = 'long') AS {HOPS}",
        "ALTER QUERY there SET (keep = '1 day')",
    ],
)
def test_keep_is_refused_where_no_windows_close(tmp_path, statement):
    with weft.connect(tmp_path) as db:
        db.sql(STREAM)
        db.sql("CREATE CONTINUOUS QUERY there AS SELECT k FROM s")
        with pytest.raises(WeftError) as refused:
            db.sql(statement)
        assert isinstance(refused.value, SqlError)
        assert refused.value.code == "WEFT_KEEP"
