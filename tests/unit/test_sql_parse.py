"""Text to statements: every statement, every spelling of a window, and what must not be mistaken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlglot import exp

from weft.errors import InvalidWindow, SqlError, SyntaxProblem, Unsupported
from weft.logical.relations import Column, Emit
from weft.logical.windows import Cumulating, Hopping, Landmark, LastRows, Session, Sliding, Snapshot
from weft.sql.intervals import interval_from_text
from weft.sql.options import check_query_options
from weft.sql.parse import parse
from weft.sql.statements import (
    AlterQuery,
    CreateQuery,
    CreateStream,
    CreateTable,
    Delete,
    Describe,
    Drop,
    Explain,
    Insert,
    Select,
    Show,
    Update,
)

HOUR, TEN_MINUTES = timedelta(hours=1), timedelta(minutes=10)


def one(text: str):
    (statement,) = parse(text)
    return statement


def window_of(source: str):
    (window,) = one(f"SELECT * FROM {source}").windows.values()
    return window


def test_create_stream() -> None:
    statement = one(
        """CREATE STREAM trades (sym STRING COMMENT 'the symbol', price double, ts TIMESTAMP,
             WATERMARK FOR TS AS ts - INTERVAL 5 SECONDS)
           RETAIN 7 DAYS WITH (Source = 'files', header = true, max = 5, kafka.group.id = 'x')"""
    )
    assert isinstance(statement, CreateStream)
    definition = statement.definition
    assert definition.columns == (
        Column("sym", "STRING"), Column("price", "DOUBLE"), Column("ts", "TIMESTAMP"),
    )  # fmt: skip
    assert (definition.time_column, definition.delay) == ("ts", timedelta(seconds=5))
    assert definition.retain == timedelta(days=7)
    assert definition.options == {
        "source": "files", "header": "true", "max": "5", "kafka.group.id": "x",
    }  # fmt: skip


def test_stream_without_watermark_or_delay() -> None:
    assert one("CREATE STREAM s (a INT)").definition.time_column is None
    statement = one(
        "CREATE OR REPLACE STREAM s (WATERMARK FOR timestamp AS timestamp, timestamp TIMESTAMP)"
    )
    assert statement.or_replace
    assert statement.definition.time_column == "timestamp"
    assert statement.definition.delay == timedelta(0)


@pytest.mark.parametrize(
    ("written", "ddl"),
    [
        ("int", "INT"),
        ("long", "BIGINT"),
        ("decimal(10, 2)", "DECIMAL(10,2)"),
        ("numeric", "DECIMAL(10,0)"),
        ("timestamp_ntz", "TIMESTAMP_NTZ"),
        ("array<map<string, int>>", "ARRAY<MAP<STRING, INT>>"),
        (
            "struct<aB: int, c array<struct<date: date>>>",
            "STRUCT<aB: INT, c: ARRAY<STRUCT<date: DATE>>>",
        ),
        ("struct<`a b`: decimal(5,1)>", "STRUCT<`a b`: DECIMAL(5,1)>"),
        ("binary", "BINARY"),
    ],
)
def test_types(written: str, ddl: str) -> None:
    assert one(f"CREATE STREAM s (x {written}, y INT)").definition.columns[0].type == ddl


def test_create_table() -> None:
    statement = one("CREATE TABLE IF NOT EXISTS t (a INT) RETROACTIVE WITH (x = 1)")
    assert isinstance(statement, CreateTable)
    assert statement.if_not_exists
    assert statement.definition.is_retroactive
    assert not one("CREATE TABLE t (a INT)").definition.is_retroactive
    made = one("CREATE TABLE t RETROACTIVE AS SELECT 1 AS a")
    assert made.definition.columns == ()
    assert made.definition.is_retroactive
    assert made.select.text == "SELECT 1 AS a"


@pytest.mark.parametrize("kind", ["CONTINUOUS QUERY", "MATERIALIZED VIEW"])
def test_create_query(kind: str) -> None:
    text = (
        f"CREATE OR REPLACE {kind} `my query` WITH (a = 'b') AS SELECT sym FROM trades EMIT CHANGES"
    )
    statement = one(f"-- a comment\n{text} ;")
    assert isinstance(statement, CreateQuery)
    assert statement.name == "my query"
    assert statement.text == text
    assert statement.emit is Emit.CHANGES
    assert statement.options == {"a": "b"}
    assert statement.select.text == "SELECT sym FROM trades"


def test_emit() -> None:
    create = "CREATE CONTINUOUS QUERY q AS "
    assert one(f"{create} SELECT 1 AS a emit on window close").emit is Emit.ON_CLOSE
    assert one(f"{create} SELECT a FROM trades emit").emit is None  # an alias
    assert one(f"{create} SELECT emit.a FROM trades emit JOIN b ON emit.x = b.x").emit is None


def test_insert_update_delete() -> None:
    insert = one("INSERT INTO t (a, `b c`) VALUES (1, 2), (3, 4)")
    assert isinstance(insert, Insert)
    assert insert.columns == ("a", "b c")
    assert insert.select.tree.sql("spark") == "SELECT * FROM VALUES (1, 2), (3, 4)"
    assert one("INSERT INTO t (SELECT * FROM u)").columns == ()
    update = one("UPDATE t AS x SET a = x.b + 1, x.c = 'd' WHERE x.a > 2")
    assert isinstance(update, Update)
    assert [(name, value.sql()) for name, value in update.assignments] == [
        ("a", "b + 1"),
        ("c", "'d'"),
    ]
    assert update.where.sql() == "a > 2"
    delete = one("DELETE FROM t")
    assert isinstance(delete, Delete)
    assert delete.where is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("DROP QUERY x", "query"),
        ("DROP CONTINUOUS QUERY x", "query"),
        ("DROP MATERIALIZED VIEW x", "query"),
        ("DROP STREAM x", "stream"),
        ("DROP TABLE IF EXISTS x", "table"),
    ],
)
def test_drop(text: str, kind: str) -> None:
    statement = one(text)
    assert isinstance(statement, Drop)
    assert (statement.kind, statement.name, statement.if_exists) == (kind, "x", "IF" in text)


def test_the_rest() -> None:
    assert isinstance(one("SHOW QUERIES"), Show)
    assert one("show aggregates").what == "aggregates"
    assert isinstance(one("DESC trades"), Describe)
    assert one("DESCRIBE trades.late").name == "trades.late"
    explain = one("EXPLAIN FORMAT json SELECT * FROM trades EMIT CHANGES")
    assert isinstance(explain, Explain)
    assert (explain.format, explain.emit, explain.name) == ("json", Emit.CHANGES, None)
    assert one("EXPLAIN hot").name == "hot"
    assert one("EXPLAIN format").name == "format"
    assert one("EXPLAIN CREATE CONTINUOUS QUERY q AS SELECT 1 AS a").select.text == "SELECT 1 AS a"
    for text in (
        "SELECT 1",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "VALUES (1)",
        "(SELECT 1)",
        "FROM t",
    ):
        assert isinstance(one(text), Select)


def test_several_statements() -> None:
    script = ";; SHOW STREAMS; -- ; not here\n SELECT ';' AS `a;b`; /* ; */ ;"
    assert [type(s) for s in parse(script)] == [Show, Select]
    assert parse(" -- nothing\n;") == []


@pytest.mark.parametrize("text", ["CREATE TRIGGER t ON x"])
def test_not_yet(text: str) -> None:
    with pytest.raises(Unsupported, match="not available yet"):
        parse(text)


HOPPING = [
    "trades [RANGE 1 HOUR SLIDE 10 MINUTES]",
    "trades[range 60 minutes slide 600 s]",
    "trades [RANGE INTERVAL '1' HOUR SLIDE INTERVAL 10 MINUTES] AS t",
    "trades [RANGE '1 hour' SLIDE /* every */ '10 minutes']",
    "TABLE(HOP(TABLE trades, DESCRIPTOR(ts), INTERVAL '10' MINUTES, INTERVAL '1' HOUR))",
    "HOP(TABLE trades, DESCRIPTOR(ts), INTERVAL '10' MINUTES, INTERVAL '1' HOUR) AS t",
    "TABLE(HOP(DATA => TABLE trades, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1' HOUR, SLIDE => INTERVAL '10' MINUTE))",
    "(SELECT * FROM trades [RANGE 1 HOUR SLIDE 10 MINUTES]) AS x",
    "a JOIN trades [RANGE 1 HOUR SLIDE 10 MINUTES] ON a.x[0] = trades.y[range]",
    "a JOIN b ON a.x = b.x, trades [RANGE 1 HOUR SLIDE 10 MINUTES]",
    "(a JOIN (trades [RANGE 1 HOUR SLIDE 10 MINUTES]) ON TRUE)",
]


@pytest.mark.parametrize("source", HOPPING)
def test_hopping_spellings(source: str) -> None:
    assert window_of(source) == Hopping(HOUR, TEN_MINUTES)


@pytest.mark.parametrize(
    ("source", "window"),
    [
        ("t [RANGE 1 HOUR 30 MINUTES]", Sliding(timedelta(minutes=90))),
        ("t [RANGE 5ms]", Sliding(timedelta(milliseconds=5))),
        ("t [RANGE 7 MICROSECONDS]", Sliding(timedelta(microseconds=7))),
        ("t [ROWS 1000]", LastRows(1000)),
        ("t [ROWS 1000 SLIDE 100]", LastRows(1000, 100)),
        ("t [SINCE '2026-01-01']", Landmark(datetime(2026, 1, 1, tzinfo=UTC))),
        (
            "t [SINCE TIMESTAMP '2026-01-01 02:00:00+02:00']",
            Landmark(datetime(2026, 1, 1, tzinfo=UTC)),
        ),
        (
            "t [FROM '2026-01-01' TO '2026-01-02T00:00:00Z']",
            Snapshot(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)),
        ),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)", Hopping(HOUR, HOUR)),
        (
            "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '70' MINUTES)",
            Hopping(HOUR, HOUR, TEN_MINUTES),
        ),
        (
            "TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTES, INTERVAL '1' HOUR))",
            Cumulating(HOUR, TEN_MINUTES),
        ),
        (
            "TABLE(SESSION(TABLE t PARTITION BY a, b, DESCRIPTOR(ts), INTERVAL '10' MINUTES))",
            Session(TEN_MINUTES, ("a", "b")),
        ),
        ("TABLE(SESSION(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTES))", Session(TEN_MINUTES)),
    ],
)
def test_windows(source: str, window: object) -> None:
    assert window_of(source) == window


@pytest.mark.parametrize(
    ("clause", "window"),
    [
        ("BEGIN NOW - 10 MINUTES END NOW", Sliding(TEN_MINUTES)),
        ("BEGIN (NOW - 600) END (NOW)", Sliding(TEN_MINUTES)),
        ("BEGIN NOW() - INTERVAL '10' MINUTES END NOW()", Sliding(TEN_MINUTES)),
        (
            "BEGIN NOW - 1 HOUR END NOW - 10 MINUTES",
            Sliding(timedelta(minutes=50), lag=TEN_MINUTES),
        ),
        ("BEGIN '2026-01-01' END NOW", Landmark(datetime(2026, 1, 1, tzinfo=UTC))),
        (
            "BEGIN '2026-01-01' END ('2026-01-02')",
            Snapshot(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)),
        ),
    ],
)
def test_psoup(clause: str, window: object) -> None:
    select = one(f"SELECT * FROM r, s WHERE CASE WHEN a THEN b ELSE c END {clause}")
    assert select.between == window
    assert select.tree.sql("spark").endswith("CASE WHEN a THEN b ELSE c END")
    assert (
        one(f"CREATE CONTINUOUS QUERY q AS SELECT * FROM r {clause} EMIT CHANGES").emit
        is Emit.CHANGES
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT begin FROM t ORDER BY begin",
        "SELECT CASE WHEN begin THEN end ELSE 1 END FROM t",
        "SELECT extract(year FROM arr[0]) FROM t",
        "SELECT a FROM t WHERE a IS DISTINCT FROM b[0]",
        "SELECT arr[range] FROM t",
        "SELECT rows, range, since FROM t",
        "SELECT tumble FROM hop",
        "SELECT emit FROM t emit",
        "SELECT * FROM t LATERAL VIEW explode(m) e AS k, v",
        "SELECT 1 AS `from`, 2 AS `a``b`",
        "SELECT count(*) FILTER (WHERE x > 1) FROM t GROUP BY window(ts, '1 hour')",
        "SELECT rank() OVER w FROM t WINDOW w AS (PARTITION BY a ORDER BY b)",
        "SELECT * FROM a LEFT ANTI JOIN b ON a.x = b.x",
        "SELECT transform(a, (x, i) -> x[i]) FROM t",
        "SELECT 'it\\'s', \"a string\", x'1F', 1.5e3, 5L FROM t",
        "SELECT a FROM t WHERE b IN (SELECT c FROM d) UNION ALL (SELECT 1 LIMIT 1)",
    ],
)
def test_spark_sql_is_left_alone(text: str) -> None:
    select = one(text)
    assert not select.windows
    assert select.between is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 hour", HOUR),
        ("1 hour 30 minutes", timedelta(minutes=90)),
        ("INTERVAL 1 week", timedelta(days=7)),
        ("1.5 seconds", timedelta(milliseconds=1500)),
        ("5 us", timedelta(microseconds=5)),
        ("2 d, 3 h", timedelta(days=2, hours=3)),
    ],
)
def test_intervals(text: str, expected: timedelta) -> None:
    assert interval_from_text(text) == expected


@pytest.mark.parametrize(
    "text", ["", "hour", "1", "1 month", "2 years", "1 hour x", "9999999999 weeks"]
)
def test_bad_intervals(text: str) -> None:
    with pytest.raises(InvalidWindow):
        interval_from_text(text)


def test_positions_count_from_the_start_of_the_script() -> None:
    with pytest.raises(SyntaxProblem) as raised:
        parse("SHOW STREAMS;\n  SELECT a FROM t WHERE (b")
    assert (raised.value.line, raised.value.column) == (2, 25)


@pytest.mark.parametrize("depth", [200, 5000])
def test_deep_nesting_is_an_error_or_works(depth: int) -> None:
    try:
        parse("SELECT " + "(" * depth + "1" + ")" * depth)
    except SqlError as error:
        assert "deeply" in error.problem


@pytest.mark.parametrize(
    "expression",
    [
        "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a)",
        "PERCENTILE(a, 0.5, b)",
        "LISTAGG(a)",
        "STRING_AGG(DISTINCT a, ';')",
        "LOG10(a)",
        "TO_CHAR(a, '999')",
        "FIRST(a) IGNORE NULLS",
    ],
)
def test_functions_come_out_as_they_went_in(expression: str) -> None:
    assert one(f"SELECT {expression} FROM t").tree.sql("spark") == f"SELECT {expression} FROM t"


def test_create_aggregate() -> None:
    statement = parse(
        "CREATE OR REPLACE AGGREGATE Vwap(price DOUBLE, qty INT) WITH STATISTICS"
        " (pv DOUBLE = sum(price * qty) MERGE sum, parts ARRAY<INT> = collect_list(qty)"
        " MERGE flatten(collect_list(parts))) FINISH pv / size(parts)"
    )[0]
    made = statement.definition
    assert statement.or_replace and not statement.if_not_exists
    assert made.name == "Vwap"
    assert [(p.name, p.type) for p in made.parameters] == [("price", "DOUBLE"), ("qty", "INT")]
    assert [
        (s.name, s.type, s.fold.sql("spark"), s.merge.sql("spark")) for s in made.statistics
    ] == [
        ("pv", "DOUBLE", "SUM(price * qty)", "SUM(pv)"),
        ("parts", "ARRAY<INT>", "COLLECT_LIST(qty)", "FLATTEN(COLLECT_LIST(parts))"),
    ]
    assert made.finish.sql("spark") == "pv / SIZE(parts)"
    assert parse(statement.text)[0].definition.finish == made.finish


@pytest.mark.parametrize("kind", ["QUERY", "CONTINUOUS QUERY"])
def test_alter_query(kind: str) -> None:
    (found,) = parse(f"ALTER {kind} q SET (answers = 'Eager', keep = '1 day')")
    assert isinstance(found, AlterQuery)
    assert (found.name, dict(found.options)) == ("q", {"answers": "Eager", "keep": "1 day"})


@pytest.mark.parametrize(
    ("options", "column"),
    [
        ("colour = 'red'", 8),
        ("answers = 'lazy', anwsers = 'eager'", 26),
        ("answers = 'often'", 8),
        ("keep = '-1 day'", 8),
    ],
)
def test_a_bad_option_of_a_query_is_shown_where_it_stands(options: str, column: int) -> None:
    (found,) = parse(f"ALTER QUERY q\n  SET ({options})")
    with pytest.raises(SqlError) as caught:
        check_query_options(found)
    assert (caught.value.line, caught.value.column) == (2, column)


def test_drop_aggregate() -> None:
    statement = parse("DROP AGGREGATE IF EXISTS vwap")[0]
    assert (statement.kind, statement.name, statement.if_exists) == ("aggregate", "vwap", True)


@pytest.mark.parametrize(
    ("written", "rendered"),
    [("'it''s'", r"'it\'s'"), ('"a""b"', "'a\"b'"), ("''", "''"), (r"'q\'r'", r"'q\'r'")],
)
def test_a_doubled_quote_is_a_quote(written, rendered):
    """As Spark reads it since 4.0; sqlglot takes the halves for two strings and glues them."""
    tree = parse(f"SELECT {written} AS x")[0].tree
    assert tree.sql(dialect="spark") == f"SELECT {rendered} AS x"


def test_selects_of_one_shape_have_their_own_numbers_places_and_windows() -> None:
    one = (
        "CREATE CONTINUOUS QUERY q{} AS SELECT a\nFROM s [RANGE 5 SECONDS] WHERE a > {} AND b = -{}"
    )
    text = ";\n".join(one.format(*numbers) for numbers in ((1, 2, 3), (2, 40, 5), (3, 600, 7)))
    for statement, wanted in zip(parse(text), ("2,3", "40,5", "600,7"), strict=True):
        tree = statement.select.tree
        assert ",".join(node.this for node in tree.find_all(exp.Literal)) == wanted
        start = tree.find(exp.Table).this.meta["start"]
        assert text[start] == "s"
        assert list(statement.select.windows) == [start]
        assert statement.select.text.endswith(f"-{wanted[-1]}")


@pytest.mark.parametrize("bad", ["a > ", "a > 5)", "a > 5 AND", "a > 'x"])
def test_a_bad_select_among_good_ones_of_another_shape(bad: str) -> None:
    good = "CREATE CONTINUOUS QUERY q{} AS SELECT a FROM s WHERE a > {}"
    text = ";\n".join([good.format(1, 5), good.format(2, 6), good.replace("a > {}", bad)])
    with pytest.raises(SyntaxProblem) as caught:
        parse(text)
    assert caught.value.line == 3
