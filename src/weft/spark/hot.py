"""Partials that eager classes read batch after batch, kept in Spark with each group in one place.

Why: a long window reads the partials of many batches again with every batch. What is cached is a
piece for the segments of a batch, moved to where its groups are once; so a batch reads and moves
only what is new. Pieces are merged when there are many, let go when no window reaches them, and
when maintenance has replaced their segments.
A piece is only a copy: if an executor is lost, or memory is short, Spark makes it again from the
segments.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from weft.catalog.records import Segment
from weft.optimizer.nodes import LiveNode, Route
from weft.spark.fold import VERSION
from weft.spark.partials import read_partials

MOST_PIECES = 6  # more of them, and planning costs more than reading them again
MOST_ROWS = 5_000_000  # of a node; more are read from their segments each time
LEAST_ROWS = 50_000  # fewer are read in less time than a plan of many pieces takes to make
ROWS_A_PART = 10_000  # of merged windows: those of few groups at a time fit a processor's cache
MOST_PARTS = 128
LEVELS = 2  # partials of all levels, over those of the lowest

Groups = tuple[str, ...]  # columns that a class groups by
Place = tuple[int, int, int | None, Groups]  # a stretch of ticks of a node, by groups


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    segments: frozenset[str]  # paths
    rows: DataFrame


class HotPartials:
    def __init__(self) -> None:
        self._pieces: dict[Place, list[Piece]] = {}
        self._parts: dict[tuple[int, Groups], int] = {}  # by stream and groups
        self._lock = threading.Lock()

    def read(
        self,
        spark: SparkSession,
        root: Path,
        live: LiveNode,
        route: Route,
        needed: list[Segment],
        present: list[Segment],
        windows: int,
        groups: Groups,
    ) -> list[DataFrame]:
        """A node's partials on a route, whole segments of them: at least those needed, none twice.

        `present` are all that the route holds; whatever else was cached is gone. `windows`: how many
        are made of them.
        """
        if not groups or sum(s.rows for s in needed) < LEAST_ROWS:
            return [read_partials(spark, root, live, needed)]
        place = (live.id, route.from_tick, route.to_tick, groups)
        with self._lock:
            parts = self._part_count(spark, live, windows * groups_of(needed), groups)
            if sum(s.rows for s in needed) > MOST_ROWS:
                self._forget(place)
                return [_placed(read_partials(spark, root, live, needed), groups, parts)]
            pieces = self._kept(place, needed, present)
            known = frozenset().union(*(p.segments for p in pieces))
            fresh = [s for s in needed if s.path not in known]
            if fresh and len(pieces) >= MOST_PIECES:
                self._forget(place)
                pieces, fresh = [], needed
            if fresh:
                rows = _placed(read_partials(spark, root, live, fresh), groups, parts)
                rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
                pieces.append(Piece(frozenset(s.path for s in fresh), rows))
            self._pieces[place] = pieces
            return [p.rows for p in pieces]

    def _kept(self, place: Place, needed: list[Segment], present: list[Segment]) -> list[Piece]:
        asked, there = {s.path for s in needed}, {s.path for s in present}
        kept = []
        for piece in self._pieces.get(place, []):
            if piece.segments <= there and piece.segments & asked:
                kept.append(piece)
            else:
                piece.rows.unpersist()
        return kept

    def _part_count(self, spark: SparkSession, live: LiveNode, rows: int, groups: Groups) -> int:
        """The same for all nodes with these groups, so that what they hold can be merged in place;
        more when far more is made of them than before."""
        key = (live.stream_id, groups)
        least = int(spark.conf.get("spark.sql.shuffle.partitions"))
        wanted = max(least, min(MOST_PARTS, rows // ROWS_A_PART))
        if wanted > 4 * self._parts.get(key, 0):
            self._parts[key] = wanted
            for place in [place for place in self._pieces if place[3] == groups]:
                self._forget(place)
        return self._parts[key]

    def _forget(self, place: Place) -> None:
        for piece in self._pieces.pop(place, []):
            piece.rows.unpersist()

    def keep_only(self, node_ids: set[int]) -> None:
        """Let go of the pieces of nodes that no eager class reads any more."""
        with self._lock:
            for place in [place for place in self._pieces if place[0] not in node_ids]:
                self._forget(place)


def groups_of(partials: list[Segment]) -> int:
    """About how many groups a pane of some partials has; their times are numbers of panes."""
    newest = max(partials, key=lambda s: s.max_time)
    return max(1, newest.rows // (LEVELS * (newest.max_time - newest.min_time + 1)))


def _placed(partials: DataFrame, groups: Groups, parts: int) -> DataFrame:
    return partials.drop(VERSION).repartition(parts, *groups)
