"""EXPLAIN of registered shared queries, as one readable file.

The queries are registered in the catalog as a session would register them, without Spark: there
are no rows to fold. `WEFT_GOLDEN=write pytest tests/golden` rewrites what follows the arrows.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructField, StructType

import weft
from weft.catalog.records import Segment, to_micros
from weft.delivery.api import as_instant
from weft.delivery.explain_would import lazy_types
from weft.logical.aggregates import BUILT_IN
from weft.logical.relations import Emit
from weft.optimizer.network import load_network
from weft.plan.drafting import draft
from weft.plan.recompute import plan_recompute
from weft.spark.register import make_record
from weft.spark.sharing import Draft, Registration
from weft.spark.world import load_world
from weft.sql.parse import parse

GOLDEN = Path(__file__).with_name("plans") / "explain_shared.txt"
ARROW = "---->"
TOGETHER = """
    CREATE CONTINUOUS QUERY calm AS SELECT sym, count(*) AS n, avg(price) AS a
      FROM t [RANGE 60 SECONDS SLIDE 20 SECONDS] WHERE qty > 3 GROUP BY sym;
    CREATE CONTINUOUS QUERY calm_sum AS SELECT sym, sum(price) AS s
      FROM t [RANGE 60 SECONDS SLIDE 20 SECONDS] WHERE NOT 3 >= qty GROUP BY sym;
    CREATE CONTINUOUS QUERY large AS SELECT sym, count(*) AS n
      FROM t [RANGE 60 SECONDS SLIDE 20 SECONDS] WHERE qty > 5 AND venue LIKE 'x%' GROUP BY sym;
    CREATE CONTINUOUS QUERY long WITH (answers = 'eager') AS SELECT sym, count(*) AS n
      FROM t [RANGE 10 MINUTES SLIDE 20 SECONDS] GROUP BY sym;
    CREATE CONTINUOUS QUERY total AS SELECT count(*) AS n, sum(qty) AS s FROM t;
    CREATE CONTINUOUS QUERY opening AS SELECT sym, count(*) AS n
      FROM t [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY sym EMIT CHANGES
"""
LATER = """
    CREATE CONTINUOUS QUERY highest AS SELECT sym, max(price) AS p
      FROM t [RANGE 60 SECONDS SLIDE 20 SECONDS] WHERE qty > 3 GROUP BY sym
"""
MOVING = """
    CREATE CONTINUOUS QUERY moving AS SELECT sym, max(price) AS p
      FROM t [RANGE 1 HOUR] WHERE qty > 3 GROUP BY sym
"""


def register(db: weft.Database, script: str, tick: int) -> None:
    """Place queries in the network and commit them; no rows, so no job."""
    engine = db._engine
    with engine.catalog.read() as view:
        stream = view.find("t")
        drafts = [
            _draft(engine, view, stream, statement, tick * 10 + i)
            for i, statement in enumerate(parse(script))
        ]
        world, network = load_world(view, engine.root, {}), load_network(view, stream.id)
    found = Registration(world, world.streams["t"], network, drafts, tick)
    with engine.catalog.write() as change:
        found.fill(None, lambda count: [change.reserve_node_id() for _ in range(count)])
        found.commit(change, [])


def _draft(engine, view, stream, statement, query_id: int) -> Draft:
    bound = engine.plans.bind(view, statement.select, statement.emit)
    plan = plan_recompute(bound)
    types = lazy_types(engine, stream.relation(), statement.text)
    policy = statement.options.get("answers", "auto")
    is_changing = statement.emit is Emit.CHANGES
    sharing = draft(plan, stream.id, types, BUILT_IN, (), is_changing, None, policy)
    schema = StructType([StructField("n", LongType())])
    record = make_record(
        query_id, statement.name, statement.text, bound, plan, schema, (stream.owner,), {}, 0
    )
    return Draft(record, sharing.need, sharing.finish, plan)


@pytest.fixture
def db(tmp_path: Path):
    with weft.connect(tmp_path) as database:
        database.sql("""
            CREATE STREAM t (sym STRING, venue STRING, price DOUBLE, qty INT, ts TIMESTAMP,
                             WATERMARK FOR ts AS ts)""")
        register(database, TOGETHER, 5)
        clock = to_micros(as_instant("2026-01-01T00:10:00Z"))
        with database._engine.catalog.write() as change:
            for node in change.nodes():
                change.set_node(node.id, rows_in=500, cells=40 + node.id)
                segment = Segment(f"node:{node.id}", "partials", "x", 40 + node.id, 9, 6, 0, 9)
                change.add_segments([segment])
            change.set_stream(change.find("t").id, clock=clock, evaluation=2, pruned_rows=1)
        yield database
        assert database._engine._session is None, "EXPLAIN started Spark"


def blocks() -> list[tuple[str, str]]:
    pairs = []
    for block in GOLDEN.read_text("utf-8").strip().split("\n\n"):
        query, _, expected = block.partition(f"\n{ARROW}")
        pairs.append((query, expected.strip("\n")))
    return pairs


def test_explained(db) -> None:
    made = []
    for query, _ in blocks():
        if query == "EXPLAIN highest":
            register(db, LATER, 8)
        if query == "EXPLAIN moving":
            register(db, MOVING, 9)
        told = "\n".join(db.sql(query).column("plan").to_pylist())
        made.append((query, re.sub(r"last change \d{4}-.*?: ", "last change then: ", told)))
    if os.environ.get("WEFT_GOLDEN") == "write":
        GOLDEN.write_text("\n\n".join(f"{q}\n{ARROW}\n{f}" for q, f in made) + "\n", "utf-8")
    assert made == blocks(), "if the change is meant, run make golden and review the diff"


def test_json_says_who_shares_what(db) -> None:
    found = json.loads(db.query("calm").explain("json"))
    assert found["strategy"] == "shared, lazy"
    assert found["rows_out"] is None
    shared = found["shared"]
    assert shared["with_queries"] == ["calm_sum"]
    (route,) = shared["routes"]
    node = next(n for n in shared["nodes"] if n["id"] == route["node"])
    users = {s["statistic"]: s["queries"] for s in node["statistics"]}
    assert {"calm", "calm_sum"} <= set(users["sum(price)"])
    assert users["count(price)"] == ["calm"]
    assert (node["rows_in"], node["partials_out"]) == (500, 40 + node["id"])


def test_a_window_that_slides_is_drawn_with_the_rows_at_its_edges(db) -> None:
    register(db, MOVING, 9)
    explained = db.query("moving").explain
    (route,) = json.loads(explained("json"))["shared"]["routes"]
    assert route["edges"] == "rows of at most 20 s at either edge of the window, as they are"
    assert f'  s -->|"{route["edges"]}"| c' in explained("mermaid")


def test_explaining_a_select_changes_nothing(db) -> None:
    def content() -> list:
        with db._engine.catalog.read() as view:
            stream = view.find("t")
            return [view.nodes(), view.classes(stream.id), view.routes_of_stream(stream.id)]

    before = content()
    db.sql("EXPLAIN SELECT venue, min(price) FROM t [RANGE 1 HOUR SLIDE 7 SECONDS] GROUP BY venue")
    assert content() == before


def test_show_queries_shows_no_false_zero(db) -> None:
    rows = {row["name"]: row for row in db.sql("SHOW QUERIES").to_pylist()}
    assert rows["long"]["strategy"] == "shared, eager"
    assert rows["calm"]["strategy"] == "shared, lazy"
    assert (rows["calm"]["rows_out"], rows["calm"]["evaluations"]) == (None, 2)
    assert rows["calm"]["clock"] is not None
    assert {q.rows_out for q in db.status().queries} == {None}


def test_the_catalog_is_relations(db) -> None:
    joined = """
        SELECT q.name, count(DISTINCT e.expression) AS dimensions, max(t.panes) AS panes
        FROM weft.queries q JOIN weft.classes c ON c.class_id = q.class_id
          JOIN weft.routes r ON r.class_id = c.class_id
          JOIN weft.group_topology t ON t.node_id = r.node_id
          JOIN weft.group_sets s ON s.node_id = t.node_id
          JOIN weft.group_expressions e ON e.name = s.name AND e.stream = t.stream
        WHERE e.kind = 'dimension' AND c.answers = 'eager' GROUP BY q.name"""
    assert db.sql(joined).to_pylist() == [
        {"name": "long", "dimensions": 1, "panes": "panes of 20 s"}
    ]
    classes = db.sql("SELECT predicate, queries FROM weft.classes ORDER BY class_id").to_pylist()
    assert classes[0] == {"predicate": "qty > 3", "queries": 2}
    merges = db.sql(
        "SELECT DISTINCT merge_rule FROM weft.group_columns WHERE statistic = 'sum(qty)'"
    )
    assert merges.to_pylist() == [{"merge_rule": "sum(s_cc756b9f3808)"}]
    assert db.sql("SELECT * FROM weft.segments").num_rows == 4
    assert db.sql("SELECT * FROM weft.streams").column("evaluations").to_pylist() == [2]


def test_aggregates_are_the_tables_of_the_paper(db) -> None:
    """ARGUS Tables 1 and 2, for SUM and AVERAGE."""
    rules = (
        "SELECT * FROM weft.aggregate_rules WHERE aggregate IN ('sum', 'avg') ORDER BY aggregate"
    )
    average, total = db.sql(rules).to_pylist()
    assert (total["category"], total["incremental_rule"]) == ("D", "SUM X(H) + SUM X(N)")
    assert (average["category"], average["incremental_rule"]) == ("A", "SUM X / COUNT X")
    basics = "SELECT statistic FROM weft.aggregate_basics WHERE aggregate = 'avg'"
    assert db.sql(basics).column("statistic").to_pylist() == ["SUM(X)", "COUNT(X)"]


def test_show_aggregates(db) -> None:
    found = {row["name"]: row for row in db.sql("SHOW AGGREGATES").to_pylist()}
    assert found["avg"] == {
        "name": "avg", "kind": "algebraic", "statistics": "SUM(X), COUNT(X)",
        "merge": "SUM(SUM X), SUM(COUNT X)", "finish": "SUM X / COUNT X", "error": None,
        "origin": "built-in",
    }  # fmt: skip
    assert found["median"]["kind"] == "holistic"
    assert found["median"]["statistics"] is None
    assert "standard error" in found["approx_count_distinct"]["error"]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELECT * FROM weft.clases", 'did you mean "weft.classes"?'),
        ("EXPLAIN CREATE CONTINUOUS QUERY x AS SELECT * FROM weft.routes", "by a standing query"),
        ("EXPLAIN SELECT * FROM weft.queries", "by a standing query"),
        ("INSERT INTO weft.queries VALUES (1)", "does not exist"),
    ],
)
def test_the_catalog_is_read_only(db, statement: str, words: str) -> None:
    with pytest.raises(weft.WeftError, match=re.escape(words)):
        db.sql(statement)
