"""The weave optimiser: profiles of streams, and the log of what it changed and why."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "profiles",
        sa.Column("stream_id", sa.BigInteger, primary_key=True),
        sa.Column("sample", sa.LargeBinary, nullable=False),
        sa.Column("taken_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "weaves",
        sa.Column("id", ID, primary_key=True, autoincrement=True),
        sa.Column("stream_id", sa.BigInteger, nullable=False),
        sa.Column("tick", sa.BigInteger, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("ms_before", sa.Float, nullable=False),
        sa.Column("ms_after", sa.Float, nullable=False),
        sa.Column("trees_before", sa.BigInteger, nullable=False),
        sa.Column("trees_after", sa.BigInteger, nullable=False),
    )
