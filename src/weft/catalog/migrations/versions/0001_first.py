"""The first schema.

Written out, not taken from schema.py, so that later changes there do not alter history.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "facts",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "streams",
        sa.Column("id", ID, primary_key=True, autoincrement=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("folded", sa.Text, nullable=False, unique=True),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("clock", sa.BigInteger),
        sa.Column("max_time", sa.BigInteger),
        sa.Column("batch_id", sa.BigInteger, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("late", sa.BigInteger, nullable=False),
        sa.Column("rejected", sa.BigInteger, nullable=False),
        sa.Column("pruned_rows", sa.BigInteger, nullable=False),
        sa.Column("pruned_before", sa.BigInteger),
        sa.Column("created_tick", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "tables",
        sa.Column("id", ID, primary_key=True, autoincrement=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("folded", sa.Text, nullable=False, unique=True),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("changed_tick", sa.BigInteger, nullable=False),
        sa.Column("next_row", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "queries",
        sa.Column("id", ID, primary_key=True, autoincrement=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("folded", sa.Text, nullable=False, unique=True),
        sa.Column("statement", sa.Text, nullable=False),
        sa.Column("columns", sa.Text, nullable=False),
        sa.Column("strategy", sa.Text, nullable=False),
        sa.Column("reads", sa.Text, nullable=False),
        sa.Column("horizons", sa.Text, nullable=False),
        sa.Column("created_tick", sa.BigInteger, nullable=False),
        sa.Column("clock", sa.BigInteger),
        sa.Column("evaluated_tick", sa.BigInteger, nullable=False),
        sa.Column("frontier", sa.BigInteger),
        sa.Column("evaluation", sa.BigInteger, nullable=False),
        sa.Column("rows_out", sa.BigInteger, nullable=False),
        sa.Column("last_ms", sa.BigInteger, nullable=False),
        sa.Column("newest_end", sa.BigInteger),
        sa.Column("error", sa.Text),
    )
    op.create_table(
        "segments",
        sa.Column("id", ID, primary_key=True, autoincrement=True),
        sa.Column("owner", sa.String(32), nullable=False),
        sa.Column("part", sa.String(16), nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("min_time", sa.BigInteger),
        sa.Column("max_time", sa.BigInteger),
        sa.Column("evaluation", sa.BigInteger, nullable=False),
        sa.Column("tick", sa.BigInteger, nullable=False),
        sa.Column("dropped_at", sa.BigInteger),
    )
    op.create_index("segments_by_owner", "segments", ["owner", "part"])
    op.create_table(
        "batches",
        sa.Column("id", ID, primary_key=True, autoincrement=True),
        sa.Column("stream_id", sa.BigInteger, nullable=False),
        sa.Column("stream", sa.Text, nullable=False),
        sa.Column("batch_id", sa.BigInteger, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("late", sa.BigInteger, nullable=False),
        sa.Column("rejected", sa.BigInteger, nullable=False),
        sa.Column("queries", sa.BigInteger, nullable=False),
        sa.Column("ms", sa.BigInteger, nullable=False),
        sa.Column("clock", sa.BigInteger),
        sa.Column("committed_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "evaluations",
        sa.Column("query_id", sa.BigInteger, primary_key=True),
        sa.Column("evaluation", sa.BigInteger, primary_key=True),
        sa.Column("clock", sa.BigInteger),
        sa.Column("changes", sa.BigInteger, nullable=False),
        sa.Column("ms", sa.BigInteger, nullable=False),
        sa.Column("committed_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "set_aside",
        sa.Column("id", ID, primary_key=True, autoincrement=True),
        sa.Column("stream_id", sa.BigInteger, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger),
        sa.Column("modified", sa.BigInteger),
        sa.Column("problem", sa.Text, nullable=False),
    )
