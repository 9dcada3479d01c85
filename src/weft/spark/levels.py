"""Which queries a change reaches, in levels: a query over another's answer comes after it.

Queries of one level are evaluated side by side; what those that share merge is merged once.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pyspark.sql import SparkSession

from weft.spark.answers import Outcome, evaluate, merge_due
from weft.spark.world import QueryState, World
from weft.storage.crash import crash_point


def affected(world: World, streams: set[str], queries: set[str] = frozenset()) -> list[list[str]]:
    """The queries that read changed streams or queries, directly or not, in levels."""
    changed = set(streams) | set(queries)
    levels: list[list[str]] = []
    waiting = {name: _sources(world, state) for name, state in world.queries.items()}
    grew = True
    while grew:  # close over queries that read queries
        grew = False
        for name, reads in waiting.items():
            if name not in changed and reads & changed:
                changed.add(name)
                grew = True
    rest = {name for name in changed if name in world.queries}
    while rest:
        ready = sorted(n for n in rest if not (waiting[n] & (rest - {n})))
        ready = ready or sorted(rest)
        levels.append(ready)
        rest -= set(ready)
    return levels


def _sources(world: World, state: QueryState) -> set[str]:
    return {world.feeds(p.source.relation.name.lower()) for p in state.plan.sources}


def evaluate_levels(
    spark: SparkSession,
    world: World,
    levels: list[list[str]],
    tick: int,
    forced: set[str],
    parallel: int,
) -> list[Outcome]:
    """Evaluate queries level by level; those of the next one see the answers of this one."""
    outcomes: list[Outcome] = []
    for level in levels:
        states = [world.queries[name] for name in level]
        found = evaluate_level(spark, world, states, tick, forced, parallel)
        for state, outcome in zip(states, found, strict=True):
            if outcome is not None:
                outcomes.append(outcome)
                _advance(state, outcome)
        crash_point("batch.level-written")
    return outcomes


def evaluate_level(
    spark: SparkSession,
    world: World,
    states: Sequence[QueryState],
    tick: int,
    forced: set[str],
    parallel: int,
) -> list[Outcome | None]:
    """Evaluate queries of which none reads another."""
    merged = merge_due(spark, world, states, tick)
    try:
        with ThreadPoolExecutor(parallel, thread_name_prefix="weft-evaluate") as pool:
            jobs = [
                pool.submit(
                    evaluate, spark, world, s, tick, s.record.name.lower() in forced, merged
                )
                for s in states
            ]
            return [job.result() for job in jobs]
    finally:
        if merged is not None:
            merged.release()


def _advance(state: QueryState, outcome: Outcome) -> None:
    """Let queries above see this evaluation within the same batch."""
    state.clock = outcome.clock
    state.segments = state.segments + list(outcome.segments)
    state.record = replace(state.record, clock=outcome.clock, evaluation=outcome.evaluation)
