"""Selections: each evaluation of a stream knows which rows had come by then."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("clocks", sa.Column("seen", sa.BigInteger, nullable=False, server_default="-1"))
    # queries that are registered from now on start with the rows that are there
    op.execute(
        "UPDATE clocks SET seen = COALESCE((SELECT CAST(f.value AS BIGINT) FROM facts f"
        " WHERE f.key = 'consumed:' || CAST(clocks.stream_id AS VARCHAR)), -1)"
    )

    op.add_column("classes", sa.Column("density", sa.Float))


def downgrade() -> None:
    op.drop_column("classes", "density")
    op.drop_column("clocks", "seen")
