"""Binding: scopes, columns, functions, and the three spellings of windows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from weft.errors import InvalidWindow, SqlError, UnknownName, Unsupported
from weft.logical.query import BoundQuery
from weft.logical.relations import ARRIVAL, Column, Kind, Relation
from weft.logical.windows import Hopping, Session, Sliding, WholeStream
from weft.sql.bind import bind
from weft.sql.parse import parse

HOUR, TEN_MINUTES = timedelta(hours=1), timedelta(minutes=10)


def columns(text: str) -> tuple[Column, ...]:
    return tuple(Column(*part.split(" ", 1)) for part in text.split(", "))


class Names:
    relations = (
        Relation(Kind.STREAM, "trades", columns("sym STRING, price DOUBLE, qty INT, ts TIMESTAMP"), "ts"),
        Relation(Kind.STREAM, "quotes", columns("sym STRING, bid DOUBLE, ask DOUBLE, at TIMESTAMP"), "at"),
        Relation(Kind.STREAM, "ticks", columns("value STRING"), ARRIVAL),
        Relation(Kind.STREAM, "orders", columns("id BIGINT, items ARRAY<…>, address STRUCT<…>, m MAP<…>, ts TIMESTAMP"), "ts"),
        Relation(Kind.STREAM, "trades.late", columns("sym STRING, price DOUBLE, ts TIMESTAMP"), "ts"),
        Relation(Kind.STREAM, "we ird", columns("a-b INT, ts TIMESTAMP"), "ts"),
        Relation(Kind.TABLE, "symbols", columns("sym STRING, company STRING")),
        Relation(Kind.TABLE, "fx", columns("ccy STRING, rate DOUBLE"), is_retroactive=True),
        Relation(Kind.QUERY, "hot", columns("window_start TIMESTAMP, window_end TIMESTAMP, sym STRING, n BIGINT"), is_per_window=True),
        Relation(Kind.QUERY, "latest", columns("sym STRING, price DOUBLE")),
    )  # fmt: skip

    def find(self, name: str) -> Relation | None:
        return next((r for r in self.relations if r.name.lower() == name.lower()), None)

    def all(self) -> list[str]:
        return [relation.name for relation in self.relations]


def bound(text: str, **options: object) -> BoundQuery:
    (select,) = parse(text)
    before = select.tree.sql("spark")
    query = bind(select, Names(), **options)
    assert select.tree.sql("spark") == before, "the input was changed"
    return query


def sql(text: str, **options: object) -> str:
    return bound(text, **options).tree.sql("spark")


def windows(text: str) -> list[object]:
    return [source.window for source in bound(text).sources]


def error(text: str, **options: object) -> SqlError:
    with pytest.raises(SqlError) as raised:
        bound(text, **options)
    return raised.value


def test_placeholders_keep_the_names() -> None:
    query = bound(
        "SELECT t.price, symbols.company FROM Trades AS t JOIN symbols ON t.sym = symbols.sym"
    )
    assert query.tree.sql("spark") == (
        "SELECT t.price, symbols.company FROM weft_s0 AS t JOIN weft_s1 AS symbols ON t.sym = symbols.sym"
    )
    assert [(s.placeholder, s.relation.name) for s in query.sources] == [
        ("weft_s0", "trades"),
        ("weft_s1", "symbols"),
    ]
    assert query.text.startswith("SELECT t.price")


def test_odd_and_dotted_names() -> None:
    assert sql("SELECT `a-b` FROM `we ird`") == "SELECT `a-b` FROM weft_s0 AS `we ird`"
    assert (
        sql("SELECT trades.late.price FROM trades.late") == "SELECT late.price FROM weft_s0 AS late"
    )


def test_scoping() -> None:
    text = """WITH trades AS (SELECT sym AS s FROM quotes),
                   b AS (WITH quotes AS (SELECT s FROM trades) SELECT s FROM quotes)
              SELECT b.s FROM b JOIN trades ON b.s = trades.s
              WHERE EXISTS (SELECT 1 FROM quotes q WHERE q.sym = b.s)"""
    query = bound(text)
    assert [source.relation.name for source in query.sources] == ["quotes", "quotes"]
    assert "FROM b JOIN trades" in query.tree.sql("spark")


def test_every_occurrence_is_a_source() -> None:
    query = bound("SELECT a.sym FROM trades a JOIN trades [ROWS 5] b ON a.sym = b.sym")
    assert [str(source.window) for source in query.sources] == ["whole stream", "last 5 rows"]


LEGAL = [
    "SELECT id, e.sku, o.address.city FROM orders o LATERAL VIEW explode(items) x AS e",
    "SELECT o.id, p, c FROM orders o LATERAL VIEW OUTER posexplode(o.items) AS p, c",
    "SELECT transform(items, i -> i.n + id) AS z, items[0].sku, m['k'].x.y FROM orders",
    "SELECT aggregate(items, 0, (acc, x) -> acc + x.n, acc -> acc * 2) AS z FROM orders",
    "SELECT address.*, orders.* FROM orders",
    "SELECT price * 2 AS p2, p2 + 1 AS p3, p3 * p2 AS p4 FROM trades",
    "SELECT sym AS s, sum(price) AS total FROM trades GROUP BY s HAVING total > 5 ORDER BY total, s",
    "SELECT t.sym FROM trades t JOIN symbols s ON t.sym = s.sym ORDER BY sym",
    "SELECT sym, company FROM trades JOIN symbols USING (sym) WHERE sym = 'a'",
    "SELECT sym, company, bid FROM trades JOIN symbols USING (sym) JOIN quotes USING (sym)",
    "SELECT sym, company FROM trades NATURAL JOIN symbols",
    "SELECT sym FROM trades t LEFT SEMI JOIN symbols s ON t.sym = s.sym",
    "SELECT sym FROM trades WHERE sym NOT IN (SELECT sym FROM symbols)",
    "SELECT sym, (SELECT max(rate) FROM fx WHERE ccy = sym) AS r FROM trades",
    "SELECT sym FROM trades t WHERE EXISTS (SELECT 1 FROM symbols WHERE symbols.sym = t.sym AND qty > 1)",
    "SELECT t.sym, q.z FROM trades t CROSS JOIN LATERAL (SELECT t.price + 1 AS z) q",
    "SELECT id FROM range(10)",
    "SELECT a, b FROM VALUES (1, 2) AS v(a, b)",
    "SELECT col1 FROM VALUES (1, 2)",
    "SELECT v.c FROM explode(array(1, 2)) AS v(c)",
    "SELECT x.a FROM symbols AS x(a, b)",
    "SELECT * FROM (SELECT sym, qty FROM trades) PIVOT (sum(qty) FOR sym IN ('a', 'b'))",
    "SELECT a FROM (SELECT sym, qty FROM trades) PIVOT (sum(qty) FOR sym IN ('a' AS a))",
    "SELECT `count(1)` AS n FROM (SELECT count(1) FROM trades)",
    "SELECT `(price + 1)` AS n FROM (SELECT price + 1 FROM trades) d",
    "SELECT sym, grouping_id() AS g FROM trades GROUP BY GROUPING SETS ((sym), ())",
    "SELECT sym, qty, count(*) AS n FROM trades GROUP BY CUBE (sym, qty)",
    "SELECT sum(price) OVER (PARTITION BY sym ORDER BY ts) AS s, rank() OVER w AS r FROM trades WINDOW w AS (PARTITION BY sym ORDER BY ts)",
    "SELECT sym FROM trades QUALIFY row_number() OVER (PARTITION BY sym ORDER BY ts) = 1",
    "SELECT timestampdiff(MINUTE, ts, ts) AS d, date_trunc('hour', ts) AS h, extract(hour FROM ts) AS e FROM trades",
    "SELECT ts + INTERVAL 1 HOUR AS u, dateadd(DAY, 1, ts) AS v FROM trades",
    "SELECT /*+ BROADCAST(s) */ t.sym FROM trades t JOIN symbols s ON t.sym = s.sym",
    "SELECT t.sym FROM trades t LEFT JOIN (symbols s JOIN fx ON s.sym = fx.ccy) ON t.sym = s.sym",
    "SELECT named_struct('a', price).a AS x, struct(price AS p).p AS y FROM trades",
    "SELECT sym FROM trades UNION ALL SELECT sym FROM quotes ORDER BY sym LIMIT 5",
    "(SELECT sym FROM trades) INTERSECT (SELECT sym FROM symbols)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r",
    "SELECT PRICE, Trades.QTY FROM TRADES",
    "SELECT window(cast(sym AS timestamp), '1 hour') AS w, window.start FROM trades GROUP BY window(cast(sym AS timestamp), '1 hour')",
    "SELECT value, arrival_time FROM ticks",
    "SELECT n, window_time, window_end FROM hot",
    "SELECT count(DISTINCT sym) FILTER (WHERE qty > 1) AS n, percentile_approx(price, 0.5) AS p FROM trades",
    "SELECT explode(items) AS e FROM orders",
    "SELECT e.n FROM (SELECT explode(items) AS e FROM orders)",
    "SELECT col.n FROM (SELECT explode(items) FROM orders)",
    "SELECT a, b FROM (SELECT stack(2, 1, 'x', 2, 'y') AS (a, b))",
    "SELECT CASE WHEN price > 1 THEN 'a' END AS c, sym LIKE 'a%' AS l, sym RLIKE 'a' AS r FROM trades",
    "SELECT * EXCEPT (price) FROM trades",
    "SELECT t.price FROM trades t, LATERAL explode(array(1)) AS e(x) WHERE e.x > t.qty",
    "FROM trades SELECT sym",
]  # fmt: skip


@pytest.mark.parametrize("text", LEGAL)
def test_legal_queries_pass(text: str) -> None:
    bound(text)


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("SELECT sym FROM nothing", "WEFT_UNKNOWN_RELATION", (1, 17)),
        ("SELECT 1 AS a\nFROM trades, `no such`", "WEFT_UNKNOWN_RELATION", (2, 14)),
        ("WITH a AS (SELECT 1 AS x) SELECT (SELECT y FROM a) AS z", "WEFT_UNKNOWN_COLUMN", (1, 42)),
        ("SELECT t.prise FROM trades t", "WEFT_UNKNOWN_COLUMN", (1, 10)),
        ("SELECT prise + 1 AS prise FROM trades", "WEFT_UNKNOWN_COLUMN", (1, 8)),
        ("SELECT sym FROM trades ORDER BY prise", "WEFT_UNKNOWN_COLUMN", (1, 33)),
        ("SELECT sym FROM trades UNION SELECT sym FROM quotes ORDER BY bid", "WEFT_UNKNOWN_COLUMN", (1, 62)),
        ("SELECT d.qty FROM (SELECT sym FROM trades) d", "WEFT_UNKNOWN_COLUMN", (1, 10)),
        ("SELECT t.* FROM trades x", "WEFT_UNKNOWN_COLUMN", (1, 8)),
        ("SELECT trades.sym FROM trades JOIN symbols ON sym = company", "WEFT_AMBIGUOUS_COLUMN", (1, 47)),
        ("SELECT x.sym FROM trades x JOIN symbols USING (sym) JOIN quotes ON sym = bid", "WEFT_AMBIGUOUS_COLUMN", (1, 68)),
        ("SELECT uper(sym) AS x FROM trades", "WEFT_UNKNOWN_FUNCTION", (1, 8)),
        ("SELECT sym FROM trades WHERE foo_bar(price)", "WEFT_UNKNOWN_FUNCTION", (1, 30)),
        ("SELECT x FROM no_such_function(10)", "WEFT_UNKNOWN_FUNCTION", (1, 15)),
        ("SELECT sym, SYM FROM trades", "WEFT_DUPLICATE_COLUMN", (1, 13)),
        ("SELECT *, price FROM trades", "WEFT_DUPLICATE_COLUMN", (1, 11)),
        ("SELECT * FROM trades t JOIN quotes q ON t.sym = q.sym", "WEFT_DUPLICATE_COLUMN", (1, 8)),
    ],
)  # fmt: skip
def test_refused(text: str, code: str, place: tuple[int, int]) -> None:
    problem = error(text)
    assert (problem.code, (problem.line, problem.column)) == (code, place)
    assert isinstance(problem, UnknownName)


def test_user_functions_are_known() -> None:
    assert "GEOMEAN" in sql("SELECT geomean(price) AS g FROM trades", functions=["geomean"])


@pytest.mark.parametrize(
    "expression",
    ["now()", "current_timestamp", "current_date()", "rand()", "uuid()", "unix_timestamp()", "localtimestamp()",
     "monotonically_increasing_id()"],
)  # fmt: skip
def test_standing_queries_are_reproducible(expression: str) -> None:
    text = f"SELECT sym, {expression} AS x FROM trades"
    problem = error(text)
    assert isinstance(problem, Unsupported)
    assert (problem.code, problem.line, problem.column) == ("WEFT_NOT_REPRODUCIBLE", 1, 13)
    bound(text, is_standing=False)


def test_pulls_may_repeat_names() -> None:
    bound("SELECT sym, sym FROM trades", is_standing=False)


SAME_TUMBLING = [
    "SELECT sym, count(*) AS n FROM trades [RANGE 1 HOUR SLIDE 1 HOUR] GROUP BY sym, window_start, window_end",
    "SELECT sym, count(*) AS n FROM TABLE(TUMBLE(TABLE trades, DESCRIPTOR(TS), INTERVAL '1' HOUR)) GROUP BY sym, window_start, window_end",
    "SELECT sym, count(*) AS n FROM trades GROUP BY sym, window(ts, '1 hour')",
    "SELECT sym, count(*) AS n FROM trades GROUP BY sym, window(trades.ts, INTERVAL '60' MINUTES, '1 hour', '2 hours')",
]  # fmt: skip


@pytest.mark.parametrize("text", SAME_TUMBLING)
def test_three_spellings_of_one_window(text: str) -> None:
    query = bound(text)
    assert [source.window for source in query.sources] == [Hopping(HOUR, HOUR)]
    assert query.tree.sql("spark").replace("trades.", "") == (
        "SELECT sym, COUNT(*) AS n FROM weft_s0 AS trades GROUP BY sym, window_start, window_end"
    )


def test_spark_session_is_per_group() -> None:
    spark = "SELECT sym, count(*) AS n FROM trades GROUP BY sym, session_window(ts, '10 minutes')"
    flink = "SELECT sym, count(*) AS n FROM SESSION(TABLE trades PARTITION BY SYM, DESCRIPTOR(ts), INTERVAL '10' MINUTES) GROUP BY sym, window_start, window_end"
    assert windows(spark) == windows(flink) == [Session(TEN_MINUTES, ("sym",))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT window.start, window.end AS e, count(*) AS n FROM trades t GROUP BY window(ts, '1 hour') HAVING window.end > '2026-01-01' ORDER BY window.start",
            "SELECT t.window_start, t.window_end AS e, COUNT(*) AS n FROM weft_s0 AS t GROUP BY t.window_start, t.window_end HAVING t.window_end > '2026-01-01' ORDER BY t.window_start",
        ),
        (
            "SELECT window, count(*) AS n FROM trades t GROUP BY window(t.ts, '1 hour')",
            "SELECT STRUCT(t.window_start AS start, t.window_end AS end) AS window, COUNT(*) AS n FROM weft_s0 AS t GROUP BY t.window_start, t.window_end",
        ),
        (
            "SELECT window(ts, '1 hour') AS w, w.start AS s FROM trades t GROUP BY w",
            "SELECT STRUCT(t.window_start AS start, t.window_end AS end) AS w, t.window_start AS s FROM weft_s0 AS t GROUP BY t.window_start, t.window_end",
        ),
        (
            "SELECT sym, window(ts, '1 hour') FROM trades t GROUP BY 2, 1",
            "SELECT sym, STRUCT(t.window_start AS start, t.window_end AS end) AS window FROM weft_s0 AS t GROUP BY t.window_start, t.window_end, 1",
        ),
        (
            "SELECT window(ts, '1 hour').start AS s, sum(qty) AS q FROM trades t GROUP BY ALL",
            "SELECT t.window_start AS s, SUM(qty) AS q FROM weft_s0 AS t GROUP BY ALL",
        ),
        (
            "SELECT s FROM (SELECT window.start AS s FROM ticks t GROUP BY window(arrival_time, '5 seconds'))",
            "SELECT s FROM (SELECT t.window_start AS s FROM weft_s0 AS t GROUP BY t.window_start, t.window_end)",
        ),
        (
            "SELECT sum(n) AS n FROM hot GROUP BY window(window_time, '1 day')",
            "SELECT SUM(n) AS n FROM weft_s0 AS hot GROUP BY hot.window_start, hot.window_end",
        ),
        (
            "SELECT window(at, '1 hour') AS w FROM (SELECT at FROM quotes) GROUP BY window(at, '1 hour')",
            "SELECT WINDOW(at, '1 hour') AS w FROM (SELECT at FROM weft_s0 AS quotes) GROUP BY WINDOW(at, '1 hour')",
        ),
    ],
)  # fmt: skip
def test_spark_windows_become_columns(text: str, expected: str) -> None:
    assert sql(text) == expected


def test_between_goes_to_the_outermost_streams_without_a_window() -> None:
    text = """SELECT t.sym FROM trades t JOIN quotes [ROWS 5] q ON t.sym = q.sym JOIN symbols s ON s.sym = q.sym
              WHERE t.sym IN (SELECT value FROM ticks) BEGIN NOW - 10 MINUTES END NOW"""
    found = {source.relation.name: source.window for source in bound(text).sources}
    assert found["trades"] == Sliding(TEN_MINUTES)
    assert str(found["quotes"]) == "last 5 rows"
    assert found["symbols"] == found["ticks"] == WholeStream()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sym FROM symbols [RANGE 1 HOUR]",
        "SELECT sym FROM latest [RANGE 1 HOUR]",
        "SELECT sym FROM TUMBLE(TABLE trades, DESCRIPTOR(price), INTERVAL '1' HOUR)",
        "WITH x AS (SELECT sym FROM trades) SELECT sym FROM x [RANGE 1 HOUR]",
        "SELECT company FROM symbols BEGIN NOW - 1 HOUR END NOW",
        "SELECT count(*) AS n FROM trades [ROWS 5] GROUP BY window(ts, '1 hour')",
        "SELECT count(*) AS n FROM trades GROUP BY window(ts, '1 hour'), window(ts, '2 hours')",
        "SELECT count(*) AS n FROM trades GROUP BY window(ts, '1 month')",
    ],
)
def test_windows_that_do_not_fit(text: str) -> None:
    problem = error(text)
    assert isinstance(problem, InvalidWindow)
    assert problem.line == 1


def test_windows_of_window_answers() -> None:
    assert windows("SELECT sym FROM hot [RANGE 1 HOUR]") == [Sliding(HOUR)]
    assert windows(
        "SELECT sym FROM TUMBLE(TABLE hot, DESCRIPTOR(window_time), INTERVAL '1' HOUR)"
    ) == [Hopping(HOUR, HOUR)]
