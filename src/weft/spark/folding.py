"""A batch on its way into segments: its rows, their partials, and the windows somebody waits for.

    rows ──classify──┬──▶ rows, late, rejected                          (ingest)
                     └──▶ partials of paned nodes ──▶ windows that fall due   (meanwhile)

Where a source can be read twice at no great cost, both go on at the same time, and rows that lie in
Parquet already are not written again but taken as they lie; else the rows are stored first and
folded from there. The clock that a batch leads to is known as soon as it is folded.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from weft.catalog.records import Segment, StreamRecord
from weft.catalog.store import Catalog
from weft.catalog.view import now_micros
from weft.errors import SourceError
from weft.logical.relations import StreamDefinition
from weft.optimizer.network import Network
from weft.optimizer.nodes import LiveNode
from weft.spark.eager import assemble_due
from weft.spark.hot import HotPartials
from weft.spark.ingest import Ingested, classify, ingest, rows_only
from weft.spark.rows import TIME
from weft.spark.shared import Advance, fold_batch, fold_paned
from weft.spark.world import StreamState, World
from weft.storage import taken

COLUMNAR = ("parquet", "orc")


@dataclass(frozen=True, slots=True)
class Ahead:
    """What was made of a batch's rows while they were being stored."""

    partials: list[Segment]
    results: list[Segment]
    rows: int
    largest: int | None  # event time


class Folding:
    def __init__(self, spark: SparkSession, catalog: Catalog, root: Path, take_rows: int) -> None:
        self._spark, self._catalog, self._root = spark, catalog, root
        self._take_rows = take_rows
        self._hot = HotPartials()

    def store(
        self, frame: DataFrame, world: World, record: StreamRecord, network: Network, tick: int,
        batch_id: int, files: Sequence[Path] = (),
    ) -> tuple[Ingested, Ahead | None]:  # fmt: skip
        """Write a batch's rows and, where its source can be read twice, fold them meanwhile.

        `files`: what the batch consists of, if that is known; they may be taken as they lie.
        """
        classified = classify(frame, record, tick, now_micros())
        nodes = [n for n in network.folding() if n.node.panes is not None]

        def bring() -> Ingested:
            found = self._take(files, record, tick)
            return found or ingest(classified, record, tick, self._root, batch_id)

        if not nodes or not is_cheap_to_reread(record.definition):
            return bring(), None
        if is_merged(world, network):
            self.load_partials(world, network)
        with ThreadPoolExecutor(1, thread_name_prefix="weft-fold") as pool:
            folding = pool.submit(
                self._fold_ahead, rows_only(classified), world, record, network, nodes, tick
            )
            brought = bring()
            ahead = folding.result()
        check_same(record, brought, ahead)
        return brought, ahead

    def _take(self, files: Sequence[Path], record: StreamRecord, tick: int) -> Ingested | None:
        if not files or not taken.can_be_taken(record.definition):
            return None
        if not taken.fits(files, record, self._take_rows):
            return None
        segments = taken.take(files, record, tick, self._root)
        return None if segments is None else Ingested(tuple(segments), tick)

    def _fold_ahead(
        self, rows: DataFrame, world: World, record: StreamRecord, network: Network,
        nodes: list[LiveNode], tick: int,
    ) -> Ahead:  # fmt: skip
        seen = Observation()
        largest = F.unix_micros(F.max(TIME)).alias("largest")
        rows = rows.observe(seen, F.count(F.lit(1)).alias("rows"), largest)
        evaluation = record.evaluation + 1
        partials = fold_paned(rows, self._root, record.id, nodes, evaluation, tick)
        found = seen.get
        clock, _ = next_clock(record, found["largest"])
        advance = Advance(record.clock, clock, evaluation, tick)
        results = self._assemble(world, network, advance, partials)
        return Ahead(partials, results, found["rows"], found["largest"])

    def fold(
        self, world: World, state: StreamState, network: Network, advance: Advance,
        ahead: Ahead | None = None,
    ) -> list[Segment]:  # fmt: skip
        """The partials, and windows, that a batch or a heartbeat adds, after what was made ahead."""
        nodes = network.folding()
        if ahead is not None:
            nodes = [n for n in nodes if n.node.panes is None]
        found = fold_batch(self._spark, world, state, nodes, advance) if nodes else []
        if ahead is not None:
            see(world, found)
            return found + ahead.partials + ahead.results
        if is_merged(world, network):
            self.load_partials(world, network)
        return found + self._assemble(world, network, advance, found)

    def _assemble(
        self, world: World, network: Network, advance: Advance, partials: list[Segment]
    ) -> list[Segment]:
        see(world, partials)
        if not network.eager() or advance.clock is None:
            return []
        return assemble_due(self._spark, world, network, advance, self._hot)

    def load_partials(self, world: World, network: Network) -> None:
        with self._catalog.read() as view:
            for live in network.nodes.values():
                if live.id not in world.partials:
                    world.partials[live.id] = view.segments(live.owner, "partials", "totals")


def is_merged(world: World, network: Network) -> bool:
    """Whether a batch merges partials: for eager classes, or for queries that Spark finishes."""
    return bool(network.eager()) or any(q.shared is not None for q in world.queries.values())


def is_cheap_to_reread(definition: StreamDefinition) -> bool:
    """Whether a source gives the same rows again, without parsing them."""
    kind = definition.options.get("format", "parquet").lower()
    return definition.source == "push" or (definition.source == "files" and kind in COLUMNAR)


def see(world: World, partials: list[Segment]) -> None:
    """Let what is evaluated in this batch, queries above shared ones too, read its partials."""
    for segment in partials:
        world.partials.setdefault(int(segment.owner.split(":")[1]), []).append(segment)


def check_same(record: StreamRecord, brought: Ingested, ahead: Ahead) -> None:
    """What was folded must be what was stored."""
    stored = (brought.count("rows"), brought.max_time())
    if stored != (ahead.rows, ahead.largest):
        raise SourceError(
            f'stream "{record.name}": the source changed while a batch was read',
            detail=f"stored {stored[0]} rows, folded {ahead.rows}",
            hint="write files under another name and move them into the folder when they are whole",
            code="WEFT_SOURCE_CHANGED",
        )


def next_clock(record: StreamRecord, newest: int | None) -> tuple[int | None, int | None]:
    """The watermark after a batch whose newest row is given, and the largest event time so far:
    the watermark is the latter less the delay, and never moves backwards."""
    times = [t for t in (record.max_time, newest) if t is not None]
    if not times:
        return record.clock, None
    largest = max(times)
    delay = record.definition.delay.total_seconds() * 1_000_000
    watermark = largest - round(delay)
    return (watermark if record.clock is None else max(watermark, record.clock)), largest
