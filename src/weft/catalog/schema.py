"""The catalog's relations. Instants are microseconds since the epoch, so every database agrees.

A *tick* is the position of an event in the order in which this warehouse saw things happen:
pushes, batches, changes of tables, registrations. It is what "before" and "after" mean for
non-retroactive tables (UPA §4.1) and for stream-prefix consistency (PSoup §4.1).
"""

from __future__ import annotations

import sqlalchemy as sa

VERSION = "0005"  # the newest migration, see migrations/versions

metadata = sa.MetaData()


def _id() -> sa.Column:
    # SQLite only autoincrements a plain INTEGER key.
    kind = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    return sa.Column("id", kind, primary_key=True, autoincrement=True)


def _count(name: str) -> sa.Column:
    return sa.Column(name, sa.BigInteger, nullable=False, default=0)


facts = sa.Table(
    "facts",
    metadata,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

streams = sa.Table(
    "streams",
    metadata,
    _id(),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("folded", sa.Text, nullable=False, unique=True),  # the name in lower case
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("clock", sa.BigInteger),
    sa.Column("max_time", sa.BigInteger),
    sa.Column("batch_id", sa.BigInteger, nullable=False, default=-1),  # newest committed batch
    _count("rows"),
    _count("late"),
    _count("rejected"),
    _count("pruned_rows"),
    sa.Column("pruned_before", sa.BigInteger),  # every row from here on is retained
    sa.Column("evaluation", sa.BigInteger, nullable=False, default=1, server_default="1"),
    sa.Column("created_tick", sa.BigInteger, nullable=False),
)

tables = sa.Table(
    "tables",
    metadata,
    _id(),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("folded", sa.Text, nullable=False, unique=True),
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("changed_tick", sa.BigInteger, nullable=False),
    _count("next_row"),
)

queries = sa.Table(
    "queries",
    metadata,
    _id(),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("folded", sa.Text, nullable=False, unique=True),
    sa.Column("statement", sa.Text, nullable=False),
    sa.Column("columns", sa.Text, nullable=False),  # JSON: output columns
    sa.Column("strategy", sa.Text, nullable=False),
    sa.Column("reads", sa.Text, nullable=False),  # JSON: ["stream:1", "table:2", ...]
    sa.Column("horizons", sa.Text, nullable=False),  # JSON: stream id → first visible instant
    sa.Column("created_tick", sa.BigInteger, nullable=False),
    sa.Column("clock", sa.BigInteger),  # evaluated up to this instant
    sa.Column("evaluated_tick", sa.BigInteger, nullable=False, default=0),
    sa.Column("frontier", sa.BigInteger),  # sessions: first instant of an open one
    _count("evaluation"),  # number of the newest evaluation
    _count("rows_out"),
    _count("last_ms"),
    sa.Column("newest_end", sa.BigInteger),  # end of the newest emitted window
    sa.Column("error", sa.Text),
    sa.Column("class_id", sa.BigInteger, index=True),  # shared queries: what they share
    sa.Column("shared", sa.Text),  # JSON: how the class's statistics are finished
)

segments = sa.Table(
    "segments",
    metadata,
    _id(),
    sa.Column("owner", sa.String(32), nullable=False),  # "stream:1", "table:2", "query:3", "node:4"
    sa.Column(
        "part", sa.String(16), nullable=False
    ),  # rows, late, …, changes, base, partials, totals
    sa.Column("path", sa.Text, nullable=False),  # relative to the warehouse
    _count("rows"),
    _count("bytes"),
    sa.Column("min_time", sa.BigInteger),
    sa.Column("max_time", sa.BigInteger),
    _count("evaluation"),  # queries: newest evaluation inside
    sa.Column("tick", sa.BigInteger, nullable=False),
    sa.Column("dropped_at", sa.BigInteger),  # wall clock; swept when no reader can hold it
    sa.Index("segments_by_owner", "owner", "part"),
)

batches = sa.Table(
    "batches",
    metadata,
    _id(),
    sa.Column("stream_id", sa.BigInteger, nullable=False),
    sa.Column("stream", sa.Text, nullable=False),
    sa.Column("batch_id", sa.BigInteger, nullable=False),
    _count("rows"),
    _count("late"),
    _count("rejected"),
    _count("queries"),
    _count("ms"),
    sa.Column("clock", sa.BigInteger),
    sa.Column("committed_at", sa.BigInteger, nullable=False),
)

evaluations = sa.Table(
    "evaluations",
    metadata,
    sa.Column("query_id", sa.BigInteger, primary_key=True),
    sa.Column("evaluation", sa.BigInteger, primary_key=True),
    sa.Column("clock", sa.BigInteger),
    _count("changes"),
    _count("ms"),
    sa.Column("committed_at", sa.BigInteger, nullable=False),
)

set_aside = sa.Table(
    "set_aside",
    metadata,
    _id(),
    sa.Column("stream_id", sa.BigInteger, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger),
    sa.Column("modified", sa.BigInteger),
    sa.Column("problem", sa.Text, nullable=False),
)

# Shared aggregation. A shared query is evaluated with its stream, so the log of evaluations is the
# stream's: one row a batch, however many queries there are.

clocks = sa.Table(
    "clocks",
    metadata,
    sa.Column("stream_id", sa.BigInteger, primary_key=True),
    sa.Column("evaluation", sa.BigInteger, primary_key=True),
    sa.Column("clock", sa.BigInteger),
    sa.Column("tick", sa.BigInteger, nullable=False),
    # the largest tick of a row that had come by then
    sa.Column("seen", sa.BigInteger, nullable=False, server_default="-1"),
)

classes = sa.Table(
    "classes",
    metadata,
    _id(),
    sa.Column("stream_id", sa.BigInteger, nullable=False),
    sa.Column("key", sa.String(64), nullable=False, unique=True),  # digest of what is shared
    sa.Column("definition", sa.Text, nullable=False),
    # windows that end later are kept ready; of selections: rows from here on are in a list
    sa.Column("eager_from", sa.BigInteger),
    sa.Column("density", sa.Float),  # selections: the share of rows that satisfy the predicate
)

routes = sa.Table(
    "routes",
    metadata,
    sa.Column("class_id", sa.BigInteger, primary_key=True),
    sa.Column("from_tick", sa.BigInteger, primary_key=True),
    sa.Column("to_tick", sa.BigInteger),  # NULL: until further notice
    sa.Column("node_id", sa.BigInteger, nullable=False, index=True),
    sa.Column("condition", sa.Text, nullable=False),  # JSON: tests on the node's signature columns
)

# ARGUS §3.1's system catalog. `group_topology` is the relation of aggregate nodes (GroupTopology),
# `group_expressions` all canonical group expressions (GroupExprIndex), `group_sets` which node has
# which of them (GroupExprSet), `group_columns` its statistics (GroupColumns).

group_topology = sa.Table(
    "group_topology",
    metadata,
    _id(),
    sa.Column("stream_id", sa.BigInteger, nullable=False),
    sa.Column("parent_id", sa.BigInteger),  # the node it is computed from; NULL: from the rows
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("born_tick", sa.BigInteger, nullable=False),
    sa.Column("retired_tick", sa.BigInteger),  # it folds no rows from here on
    _count("rows_in"),  # rows folded, and cells that they made: what sharing saves
    _count("cells"),
)

group_expressions = sa.Table(
    "group_expressions",
    metadata,
    _id(),
    sa.Column("stream_id", sa.BigInteger, nullable=False),
    sa.Column("name", sa.String(32), nullable=False),  # its column in partials
    sa.Column("kind", sa.String(16), nullable=False),  # dimension, ranking, bit
    sa.Column("expression", sa.Text, nullable=False),  # canonical
    sa.UniqueConstraint("stream_id", "name"),
)

group_sets = sa.Table(
    "group_sets",
    metadata,
    sa.Column("node_id", sa.BigInteger, primary_key=True),
    sa.Column("name", sa.String(32), primary_key=True),
)

group_columns = sa.Table(
    "group_columns",
    metadata,
    sa.Column("node_id", sa.BigInteger, primary_key=True),
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("statistic", sa.Text, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("merge", sa.Text, nullable=False),
)

aggregates = sa.Table(
    "aggregates",
    metadata,
    sa.Column("folded", sa.String(128), primary_key=True),
    sa.Column("statement", sa.Text, nullable=False),  # user-defined ones; built-in ones need none
)

# The weave optimiser: a sample of each stream's rows, coded (optimizer/profile.py), and a log of the
# plans that were changed.

profiles = sa.Table(
    "profiles",
    metadata,
    sa.Column("stream_id", sa.BigInteger, primary_key=True),
    sa.Column("sample", sa.LargeBinary, nullable=False),
    sa.Column("taken_at", sa.BigInteger, nullable=False),
)

weaves = sa.Table(
    "weaves",
    metadata,
    _id(),
    sa.Column("stream_id", sa.BigInteger, nullable=False),
    sa.Column("tick", sa.BigInteger, nullable=False),  # it holds from the next one on
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("ms_before", sa.Float, nullable=False),  # a batch by the costs then
    sa.Column("ms_after", sa.Float, nullable=False),
    sa.Column("trees_before", sa.BigInteger, nullable=False),
    sa.Column("trees_after", sa.BigInteger, nullable=False),
)
