"""Windows that are kept ready lie with their stream, by family: those kept by class are merged anew
when somebody asks."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "UPDATE classes SET eager_from = COALESCE((SELECT s.clock FROM streams s"
        " WHERE s.id = classes.stream_id), eager_from)"
        " WHERE eager_from IS NOT NULL AND id IN (SELECT class_id FROM routes)"
    )
    op.execute(
        "UPDATE segments SET dropped_at = 0"
        " WHERE part = 'results' AND owner LIKE 'node:%' AND dropped_at IS NULL"
    )
