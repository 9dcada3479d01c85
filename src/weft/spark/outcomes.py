"""What evaluations came to, written into the catalog with the batch that they belong to."""

from __future__ import annotations

from weft.catalog.change import Change
from weft.spark.answers import Outcome


def commit_outcomes(change: Change, outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        if outcome is None:
            continue
        values = {"last_ms": outcome.ms, "error": outcome.error}
        if outcome.error is None:
            change.add_segments(outcome.segments)
            values |= {
                "clock": outcome.clock,
                "evaluation": outcome.evaluation,
                "evaluated_tick": outcome.tick,
                "frontier": outcome.frontier,
                "newest_end": outcome.newest_end,
            }
            change.add_evaluation(
                query_id=outcome.query_id, evaluation=outcome.evaluation, clock=outcome.clock,
                changes=outcome.changes, ms=outcome.ms,
            )  # fmt: skip
            change.count_rows_out(outcome.query_id, outcome.changes)
        change.set_query(outcome.query_id, **values)
