"""Generated queries, in the SQL that Spark and DuckDB share.

A query is drawn once and rendered twice: for Weft with its windows, for DuckDB over their contents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st
from oracle import (
    SECOND,
    Between,
    Cumulate,
    Env,
    Hop,
    Last,
    Query,
    RowsSlide,
    Sessions,
    Since,
    Slide,
    Source,
    Whole,
    Window,
    iso,
)

S = {"k": "STRING", "v": "INT", "d": "DECIMAL(10,2)", "x": "DOUBLE", "ts": "TIMESTAMP"}
R = {"k": "STRING", "w": "INT", "ts": "TIMESTAMP"}
T = {"k": "STRING", "name": "STRING"}
U = {"k": "STRING", "lim": "INT"}

Body = Callable[[Env], str]


class WeftText(Env):
    """Weft's texts: a source is a stream with its window, in one of its spellings."""

    def __init__(self, query: Query, spelling: str) -> None:
        self._query, self._spelling = query, spelling

    def source(self, index: int) -> str:
        source = self._query.sources[index]
        return f"{self._windowed(source)} AS {source.alias}"

    def _windowed(self, source: Source) -> str:
        name, window = source.stream, source.window
        if self._spelling == "spark" and isinstance(window, Hop | Sessions):
            return name
        if self._spelling == "psoup" and isinstance(window, Slide):
            return name
        if isinstance(window, Cumulate):
            parts = f"{interval(window.step)}, {interval(window.size)}"
            return f"TABLE(CUMULATE(TABLE {name}, DESCRIPTOR(ts), {parts}))"
        if isinstance(window, Sessions):
            by = f"TABLE {name} PARTITION BY {window.key}"
            return f"TABLE(SESSION({by}, DESCRIPTOR(ts), {interval(window.gap)}))"
        if isinstance(window, Hop) and (self._spelling == "flink" or window.offset):
            offset = f", {interval(window.offset)}" if window.offset else ""
            parts = f"{interval(window.slide)}, {interval(window.length)}{offset}"
            return f"TABLE(HOP(TABLE {name}, DESCRIPTOR(ts), {parts}))"
        return f"{name} {brackets(window)}".strip()

    def table(self, name: str, alias: str) -> str:
        return f"{name} AS {alias}"

    view = table

    def by_window(self, alias: str, has_keys: bool = True) -> str:
        window, comma = self._query.window() if self._query.is_per_window else None, ", "
        if not has_keys:
            comma = " GROUP BY "
        if isinstance(window, Sessions) and self._spelling != "spark":
            return f"{comma}window_start, window_end"
        if self._spelling != "spark" or not isinstance(window, Hop | Sessions):
            return ""
        if isinstance(window, Sessions):
            return f"{comma}session_window({alias}.ts, '{seconds(window.gap)} seconds')"
        parts = [window.length, window.slide, window.offset]
        written = ", ".join(f"'{seconds(p)} seconds'" for p in parts)
        return f"{comma}window({alias}.ts, {written})"

    def text(self) -> str:
        sql = self._query.body(self)
        window = self._query.sources[0].window if self._query.sources else None
        if self._spelling == "psoup" and isinstance(window, Slide):
            begin, end = seconds(window.length + window.lag), seconds(window.lag)
            sql += f" BEGIN NOW - {begin} SECONDS END NOW"
            sql += f" - {end} SECONDS" if window.lag else ""
        return sql + (" EMIT CHANGES" if self._query.emits_changes else "")


def seconds(value: int) -> int:
    return value // SECOND


def interval(value: int) -> str:
    return f"INTERVAL '{seconds(value)}' SECONDS"


def brackets(window: Window) -> str:
    match window:
        case Hop(length, slide, _):
            return f"[RANGE {seconds(length)} SECONDS SLIDE {seconds(slide)} SECONDS]"
        case Slide(length, _):
            return f"[RANGE {seconds(length)} SECONDS]"
        case RowsSlide(count, slide):
            return f"[ROWS {count} SLIDE {slide}]"
        case Last(count):
            return f"[ROWS {count}]"
        case Since(start):
            return f"[SINCE '{iso(start)}']"
        case Between(start, end):
            return f"[FROM '{iso(start)}' TO '{iso(end)}']"
    return ""


@dataclass(frozen=True)
class Drawn:
    """A query as drawn: its spelling decides the text that Weft is given."""

    query: Query
    spelling: str

    def weft(self) -> str:
        return WeftText(self.query, self.spelling).text()


# windows

HOPS = [Hop(10, 10), Hop(10, 5), Hop(10, 4), Hop(7, 3), Hop(10, 5, 2), Hop(6, 6, 1), Cumulate(10, 5), Cumulate(12, 4)]  # fmt: skip


def scaled(window: Hop | Cumulate) -> Hop | Cumulate:
    if isinstance(window, Cumulate):
        return Cumulate(window.size * SECOND, window.step * SECOND)
    return Hop(window.length * SECOND, window.slide * SECOND, window.offset * SECOND)


def standing_windows(base: int) -> st.SearchStrategy[Window]:
    return st.sampled_from(
        [
            Whole(),
            Slide(10 * SECOND),
            Slide(3 * SECOND),
            Slide(25 * SECOND),
            Last(1),
            Last(3),
            Since(base + 12 * SECOND),
            Between(base + 5 * SECOND, base + 20 * SECOND),
        ]
    )


# pieces

FILTERS: list[tuple[str, Callable[[dict], bool]]] = [
    ("", lambda r: True),
    (" WHERE {a}.v > 0", lambda r: r["v"] is not None and r["v"] > 0),
    (" WHERE {a}.k IS NOT NULL", lambda r: r["k"] is not None),
    (" WHERE {a}.k <> 'a'", lambda r: r["k"] is not None and r["k"] != "a"),
    (" WHERE {a}.v IS NULL OR {a}.v % 2 = 0", lambda r: r["v"] is None or r["v"] % 2 == 0),
]
MEASURES = [
    "count(*) AS n",
    "count({a}.v) AS cv",
    "sum({a}.v) AS sv",
    "avg({a}.v) AS av",
    "min({a}.d) AS md",
    "sum({a}.d) AS sd",
    "max({a}.x) AS mx",
    "count(DISTINCT {a}.v) AS dv",
    "sum(CASE WHEN {a}.v > 0 THEN {a}.v ELSE 0 END) AS pv",
    "max(coalesce({a}.k, '-')) AS mk",
    "median({a}.v) AS mv",
    "count(*) FILTER (WHERE {a}.v > 1) AS fv",
]
GROUPS = [
    ("a.k", "a.k"),
    ("a.k", "a.k"),
    ("a.v AS b, coalesce(a.k, '-') AS c", "coalesce(a.k, '-'), a.v"),
    ("a.k", "a.k, a.v"),
]
HAVINGS = [None, None, "count(*) > 1", "sum({a}.v) >= 1", "min({a}.v) IS NULL"]
JOINS = ["JOIN", "JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
SET_OPERATIONS = ["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]


def bodies_of_one(draw: st.DrawFn) -> tuple[Body, bool]:
    """Queries over one source, alias a. → body, is ordered."""
    where = draw(st.sampled_from(FILTERS))[0].format(a="a")
    kind = draw(
        st.sampled_from(["rows", "group", "group", "global", "distinct", "over", "rollup", "top"])
    )
    measures = ", ".join(
        m.format(a="a")
        for m in draw(st.lists(st.sampled_from(MEASURES), min_size=1, max_size=3, unique=True))
    )
    if kind == "rows":
        columns = draw(
            st.sampled_from(
                ["a.k, a.v, a.d, a.x", "a.k, a.ts", "upper(a.k) AS uk, abs(a.v) AS b, a.x"]
            )
        )
        return lambda e: f"SELECT {columns} FROM {e.source(0)}{where}", False
    if kind == "distinct":
        return lambda e: f"SELECT DISTINCT a.k, a.v FROM {e.source(0)}{where}", False
    if kind == "over":
        over = draw(
            st.sampled_from(
                [
                    "rank() OVER (PARTITION BY a.k ORDER BY a.ts) AS r",
                    "sum(a.v) OVER (PARTITION BY a.k) AS t",
                    "count(*) OVER () AS c",
                    "lag(a.v) OVER (PARTITION BY a.k, a.ts, a.x ORDER BY a.v NULLS FIRST) AS p",
                ]
            )
        )
        return lambda e: f"SELECT a.k, a.v, {over} FROM {e.source(0)}{where}", False
    if kind == "rollup":
        return (
            lambda e: (
                f"SELECT a.k, count(*) AS n FROM {e.source(0)}{where} GROUP BY ROLLUP (a.k)"
                " HAVING count(*) > 0"
            ),
            False,
        )
    if kind == "global":
        return (
            lambda e: (
                f"SELECT {measures} FROM {e.source(0)}{where}{e.by_window('a', False)}{e.some()}"
            ),
            False,
        )
    if kind == "top":
        return (
            lambda e: (
                f"SELECT a.k, count(*) AS n FROM {e.source(0)}{where} GROUP BY a.k"
                f"{e.by_window('a')} ORDER BY n DESC NULLS LAST, k NULLS FIRST LIMIT 2"
            ),
            True,
        )
    having = draw(st.sampled_from(HAVINGS))
    tail = f" HAVING {having.format(a='a')}" if having else ""
    keys, groups = draw(st.sampled_from(GROUPS))
    return (
        lambda e: (
            f"SELECT {keys}, {measures} FROM {e.source(0)}{where} GROUP BY {groups}{e.by_window('a')}{tail}"
        ),
        False,
    )


def bodies_with_table(draw: st.DrawFn) -> Body:
    """One source joined with the non-retroactive table t or the retroactive table u."""
    where = draw(st.sampled_from(FILTERS))[0].format(a="a")
    glue = " AND" if where else " WHERE"
    kind = draw(st.sampled_from(["inner", "left", "in", "not in", "exists", "not exists", "count", "scalar", "retro", "retro left", "retro not in"]))  # fmt: skip

    def nested(e: Env) -> str:
        return f"SELECT t.k FROM {e.table('t', 't')} WHERE t.name <> 'q'{e.as_of('t', 'a')}"

    bodies: dict[str, Body] = {
        "inner": lambda e: (
            f"SELECT a.k, a.v, t.name FROM {e.source(0)} JOIN {e.table('t', 't')} ON a.k = t.k"
            f"{e.as_of('t', 'a')}{where}"
        ),
        "left": lambda e: (
            f"SELECT a.k, a.v, t.name FROM {e.source(0)} LEFT JOIN {e.table('t', 't')} ON a.k = t.k"
            f"{e.as_of('t', 'a')}{where}"
        ),
        "count": lambda e: (
            f"SELECT t.name, count(*) AS n, sum(a.v) AS sv FROM {e.source(0)} JOIN {e.table('t', 't')}"
            f" ON a.k = t.k{e.as_of('t', 'a')}{where} GROUP BY t.name"
        ),
        "in": lambda e: f"SELECT a.k, a.v FROM {e.source(0)}{where}{glue} a.k IN ({nested(e)})",
        "not in": lambda e: (
            f"SELECT a.k, a.v FROM {e.source(0)}{where}{glue} a.k NOT IN ({nested(e)})"
        ),
        "exists": lambda e: (
            f"SELECT a.k, a.v FROM {e.source(0)}{where}{glue} EXISTS ({nested(e)} AND t.k = a.k)"
        ),
        "not exists": lambda e: (
            f"SELECT a.k, a.v FROM {e.source(0)}{where}{glue} NOT EXISTS ({nested(e)} AND t.k = a.k)"
        ),
        "scalar": lambda e: (
            f"SELECT a.k, a.v, (SELECT max(t.name) FROM {e.table('t', 't')} WHERE t.k = a.k"
            f"{e.as_of('t', 'a')}) AS name FROM {e.source(0)}{where}"
        ),
        "retro": lambda e: (
            f"SELECT a.k, a.v, u.lim FROM {e.source(0)} JOIN {e.table('u', 'u')}"
            f" ON a.k = u.k AND a.v >= u.lim{where}"
        ),
        "retro left": lambda e: (
            f"SELECT a.k, u.lim, count(*) AS n FROM {e.source(0)} LEFT JOIN {e.table('u', 'u')}"
            f" ON a.k = u.k{where} GROUP BY a.k, u.lim"
        ),
        "retro not in": lambda e: (
            f"SELECT a.k, a.v FROM {e.source(0)}{where}{glue} a.k NOT IN"
            f" (SELECT u.k FROM {e.table('u', 'u')} WHERE u.lim > 0)"
        ),
    }
    # an "or" in the filter would swallow what follows it
    if " OR " in where:
        where = " WHERE (" + where.removeprefix(" WHERE ") + ")"
    return bodies[kind]


def bodies_of_two(draw: st.DrawFn, is_same_stream: bool) -> Body:
    """Two sources, a and b. b is the stream r, or s again."""
    other = "v" if is_same_stream else "w"
    kind = draw(st.sampled_from(["join", "join", "using", "set", "in", "not in", "exists", "scalar", "cte", "cte in", "counts", "with table"]))  # fmt: skip
    join = draw(st.sampled_from(JOINS))
    operation = draw(st.sampled_from(SET_OPERATIONS))
    only = "SEMI" in join or "ANTI" in join
    duck_join = join.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")
    columns = "a.k, a.v" if only else f"a.k, a.v, b.k AS bk, b.{other} AS bw"

    def joined(e: Env) -> str:
        word = join if isinstance(e, WeftText) else duck_join
        on = f"a.k = b.k AND (a.v IS NULL OR a.v <= b.{other})"
        return f"SELECT {columns} FROM {e.source(0)} {word} {e.source(1)} ON {on}"

    bodies: dict[str, Body] = {
        "join": joined,
        "using": lambda e: (
            f"SELECT k, count(*) AS n, sum(b.{other}) AS sw FROM {e.source(0)}"
            f" {'LEFT JOIN' if 'LEFT' in join else 'JOIN'} {e.source(1)} USING (k) GROUP BY k"
        ),
        "set": lambda e: (
            f"SELECT a.k, a.v AS q FROM {e.source(0)} {operation} SELECT b.k, b.{other} FROM {e.source(1)}"
        ),
        "in": lambda e: (
            f"SELECT a.k, a.v FROM {e.source(0)} WHERE a.k IN (SELECT b.k FROM {e.source(1)})"
        ),
        "not in": lambda e: (
            f"SELECT a.k, a.v FROM {e.source(0)} WHERE a.v NOT IN (SELECT b.{other} FROM {e.source(1)})"
        ),
        "exists": lambda e: (
            f"SELECT a.k, count(*) AS n FROM {e.source(0)} WHERE NOT EXISTS"
            f" (SELECT 1 FROM {e.source(1)} WHERE b.k = a.k AND b.{other} > 0) GROUP BY a.k"
        ),
        "scalar": lambda e: (
            f"SELECT a.k, a.v FROM {e.source(0)} WHERE a.v >= (SELECT avg(b.{other}) FROM {e.source(1)})"
        ),
        "cte": lambda e: (
            f"WITH c AS (SELECT b.k, sum(b.{other}) AS sw FROM {e.source(1)} GROUP BY b.k)"
            f" SELECT a.k, a.v, c.sw FROM {e.source(0)} JOIN c ON a.k = c.k"
        ),
        "cte in": lambda e: (
            f"WITH c AS (SELECT b.k FROM {e.source(1)} WHERE b.{other} > 0)"
            f" SELECT a.k, a.v FROM {e.source(0)} WHERE a.k IN (SELECT c.k FROM c)"
        ),
        "counts": lambda e: (
            f"SELECT y.n, z.m FROM (SELECT count(*) AS n FROM {e.source(0)} WHERE a.v > 0) y"
            f" CROSS JOIN (SELECT count(*) AS m FROM {e.source(1)} WHERE b.{other} <= 0) z"
        ),
        "with table": lambda e: (
            f"SELECT a.k, b.{other} AS bw, t.name FROM {e.source(0)} JOIN {e.source(1)} ON a.k = b.k"
            f" JOIN {e.table('t', 't')} ON t.k = a.k{e.as_of('t', 'a', 'b')}"
        ),
    }
    return bodies[kind]


# queries


@st.composite
def window_queries(draw: st.DrawFn) -> Drawn:
    """Hopping, tumbling and cumulating windows, over one or two streams."""
    window = scaled(draw(st.sampled_from(HOPS)))
    changes = draw(st.sampled_from([False, False, True]))
    first = Source("s", "a", window)
    kind = draw(st.sampled_from(["one", "one", "one", "table", "two"]))
    if kind == "one":
        body, ordered = bodies_of_one(draw)
        query = Query((first,), body, changes, ordered)
        uses_group = "window(" in WeftText(query, "spark").text()
        spellings = ["brackets", "flink", "spark"] if uses_group else ["brackets", "flink"]
        if isinstance(window, Cumulate):
            spellings = ["flink"]
        return Drawn(query, draw(st.sampled_from(spellings)))
    if kind == "table":
        return Drawn(Query((first,), bodies_with_table(draw), changes), "brackets")
    same = draw(st.booleans())
    second = Source("s" if same else "r", "b", window)
    return Drawn(Query((first, second), bodies_of_two(draw, same), changes), "brackets")


@st.composite
def row_queries(draw: st.DrawFn) -> Drawn:
    count = draw(st.integers(1, 4))
    window = RowsSlide(count, draw(st.integers(1, count)))
    body, ordered = bodies_of_one(draw)
    return Drawn(Query((Source("s", "a", window),), body, is_ordered=ordered), "brackets")


@st.composite
def session_queries(draw: st.DrawFn) -> Drawn:
    where, keeps = draw(st.sampled_from(FILTERS))
    where = where.format(a="a")
    measure = draw(st.sampled_from(MEASURES)).format(a="a")
    window = Sessions(draw(st.sampled_from([2, 4, 7])) * SECOND, "k")

    def body(e: Env) -> str:
        return f"SELECT a.k, {measure} FROM {e.source(0)}{where} GROUP BY a.k{e.by_window('a')}"

    changes = draw(st.sampled_from([False, False, True]))
    query = Query((Source("s", "a", window),), body, changes, keeps=keeps)
    return Drawn(query, draw(st.sampled_from(["flink", "spark"])))


@st.composite
def standing_queries(draw: st.DrawFn, base: int) -> Drawn:
    first = Source("s", "a", draw(standing_windows(base)))
    kind = draw(st.sampled_from(["one", "one", "table", "two", "psoup"]))
    if kind == "psoup":
        lag = draw(st.sampled_from([0, 3])) * SECOND
        body, ordered = bodies_of_one(draw)
        window = Slide(draw(st.sampled_from([4, 10])) * SECOND, lag)
        return Drawn(Query((Source("s", "a", window),), body, is_ordered=ordered), "psoup")
    if kind == "one":
        body, ordered = bodies_of_one(draw)
        return Drawn(Query((first,), body, is_ordered=ordered), "brackets")
    if kind == "table":
        return Drawn(Query((first,), bodies_with_table(draw)), "brackets")
    same = draw(st.booleans())
    second = Source("s" if same else "r", "b", draw(standing_windows(base)))
    return Drawn(Query((first, second), bodies_of_two(draw, same)), "brackets")


def queries(base: int) -> st.SearchStrategy[Drawn]:
    return st.one_of(
        window_queries(),
        window_queries(),
        standing_queries(base),
        standing_queries(base),
        row_queries(),
        session_queries(),
    )


# queries over queries

BELOW = Drawn(
    Query(
        (Source("s", "a", Hop(5 * SECOND, 5 * SECOND)),),
        lambda e: f"SELECT a.k, count(*) AS n, sum(a.v) AS sv FROM {e.source(0)} GROUP BY a.k",
    ),
    "brackets",
)
VIEW = Drawn(
    Query(
        (Source("s", "a", Slide(20 * SECOND)),),
        lambda e: f"SELECT a.k, a.v FROM {e.source(0)} WHERE a.v > 0",
    ),
    "brackets",
)
ABOVE = [
    Drawn(
        Query(
            (Source("below", "a", Hop(10 * SECOND, 10 * SECOND)),),
            lambda e: f"SELECT a.k, sum(a.n) AS t FROM {e.source(0)} GROUP BY a.k",
        ),
        "brackets",
    ),
    Drawn(
        Query(
            (Source("below", "a", Slide(15 * SECOND)),),
            lambda e: f"SELECT a.k, a.n, a.sv, a.window_end FROM {e.source(0)} WHERE a.n > 1",
        ),
        "brackets",
    ),
    Drawn(
        Query(
            (Source("below", "a", Whole()),),
            lambda e: f"SELECT a.k, max(a.n) AS top FROM {e.source(0)} GROUP BY a.k",
        ),
        "brackets",
    ),
    Drawn(
        Query(
            (),
            lambda e: f"SELECT a.k, count(*) AS n FROM {e.view('seen', 'a')} GROUP BY a.k",
            views=("seen",),
        ),
        "brackets",
    ),
    Drawn(
        Query(
            (Source("s", "b", Last(4)),),
            lambda e: (
                f"SELECT a.k, b.v FROM {e.view('seen', 'a')} JOIN {e.source(0)} ON a.k = b.k AND a.v = b.v"
            ),
            views=("seen",),
        ),
        "brackets",
    ),
]
