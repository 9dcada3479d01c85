"""Shared aggregation: classes, routes, ARGUS's system catalog, the stream's log of evaluations."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.add_column(
        "streams", sa.Column("evaluation", sa.BigInteger, nullable=False, server_default="1")
    )
    op.add_column("queries", sa.Column("class_id", sa.BigInteger))
    op.add_column("queries", sa.Column("shared", sa.Text))
    op.create_index("ix_queries_class_id", "queries", ["class_id"])
    op.create_table(
        "clocks",
        sa.Column("stream_id", sa.BigInteger, primary_key=True),
        sa.Column("evaluation", sa.BigInteger, primary_key=True),
        sa.Column("clock", sa.BigInteger),
        sa.Column("tick", sa.BigInteger, nullable=False),
    )
    # streams that are there start their log of evaluations now
    op.execute(
        "INSERT INTO clocks (stream_id, evaluation, clock, tick)"
        " SELECT id, 1, clock, created_tick FROM streams"
    )
    op.create_table(
        "classes",
        sa.Column("id", ID, primary_key=True, autoincrement=True),
        sa.Column("stream_id", sa.BigInteger, nullable=False),
        sa.Column("key", sa.String(64), nullable=False, unique=True),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("eager_from", sa.BigInteger),
    )
    op.create_table(
        "routes",
        sa.Column("class_id", sa.BigInteger, primary_key=True),
        sa.Column("from_tick", sa.BigInteger, primary_key=True),
        sa.Column("to_tick", sa.BigInteger),
        sa.Column("node_id", sa.BigInteger, nullable=False),
        sa.Column("condition", sa.Text, nullable=False),
    )
    op.create_index("ix_routes_node_id", "routes", ["node_id"])
    op.create_table(
        "group_topology",
        sa.Column("id", ID, primary_key=True, autoincrement=True),
        sa.Column("stream_id", sa.BigInteger, nullable=False),
        sa.Column("parent_id", sa.BigInteger),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("born_tick", sa.BigInteger, nullable=False),
        sa.Column("retired_tick", sa.BigInteger),
        sa.Column("rows_in", sa.BigInteger, nullable=False),
        sa.Column("cells", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "group_expressions",
        sa.Column("id", ID, primary_key=True, autoincrement=True),
        sa.Column("stream_id", sa.BigInteger, nullable=False),
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("expression", sa.Text, nullable=False),
        sa.UniqueConstraint("stream_id", "name"),
    )
    op.create_table(
        "group_sets",
        sa.Column("node_id", sa.BigInteger, primary_key=True),
        sa.Column("name", sa.String(32), primary_key=True),
    )
    op.create_table(
        "group_columns",
        sa.Column("node_id", sa.BigInteger, primary_key=True),
        sa.Column("name", sa.String(32), primary_key=True),
        sa.Column("statistic", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("merge", sa.Text, nullable=False),
    )
    op.create_table(
        "aggregates",
        sa.Column("folded", sa.String(128), primary_key=True),
        sa.Column("statement", sa.Text, nullable=False),
    )
