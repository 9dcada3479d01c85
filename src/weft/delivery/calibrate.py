"""`weft calibrate`: what work costs on this machine, from batches of a small generated stream.

Several plans are run over the same rows, so that each cost is told apart from the others: one tree
or many, few cells or many, one grouping set or several, levels or none, eager windows or none. Each
has a stream of its own in a warehouse that is thrown away. Costs are fitted to what the batches took
(optimizer/fitting.py) and kept in the catalog of the warehouse that was named.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weft.delivery.api import Database, connect
from weft.engine.measuring import COSTS, load_costs, load_measures, observation
from weft.optimizer.fitting import Observation, errors, fit
from weft.optimizer.weave.batch import BatchCosts

if TYPE_CHECKING:
    from weft.spark.profiling import Seen

START = 1_767_225_600  # 2026-01-01
SIZES = (0.05, 1.0) * 5  # rows of each batch, as shares of --rows
WARM = 4  # batches that are not counted
SECONDS = 20  # of event time that a batch covers
TRUST = 0.05
COLUMNS = "few STRING, some INT, many INT, v DOUBLE, ts TIMESTAMP"
UNITS = {  # in the table; others are milliseconds
    "brought": 1e3,
    "row": 1e3,
    "expand": 1e3,
    "step": 1e3,
    "cell": 1e3,
    "read": 1e3,
    "answer": 1e3,
}
MEANING = {
    "batch": "a batch, whatever the plan", "brought": "a row, whatever the plan", "tree": "a tree, in a batch",
    "node": "a node, in a batch", "row": "a row, in a tree", "expand": "a row, in a grouping set",
    "step": "a cell, for each level it feeds", "cell": "a partial written",
    "read": "a partial read for an eager window", "answer": "a row of an eager window",
    "part": "a node that eager windows read",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trial:
    """Queries, and how their plan is forced."""

    forced: str
    selects: tuple[str, ...]
    is_eager: bool = False


def _select(by: str, length: int, slide: int, where: str = "") -> str:
    keys = f"{by}, " if by else ""
    grouped = f" GROUP BY {by}" if by else ""
    text = f" WHERE {where}" if where else ""
    return (
        f"SELECT {keys}count(*) AS n, sum(v) AS total FROM {{stream}}"
        f" [RANGE {length} SECONDS SLIDE {slide} SECONDS]{text}{grouped}"
    )


TRIALS = (
    Trial("shared", (_select("few", 10, 10),)),
    Trial("shared", (_select("many", 5, 5),)),
    Trial("shared", (_select("some", 320, 1),)),
    Trial("none", tuple(_select("few", s, s) for s in (7, 10, 11, 13, 20, 30))),
    Trial("shared", tuple(_select(by, 10, 10) for by in ("few", "some", "many", "few, v > 500"))),
    Trial("shared", tuple(_select("few", 10, 10, f"(v > {c}) <> (some > {c})") for c in range(6))),
    Trial("shared", (_select("some", 160, 4), _select("few", 40, 4)), is_eager=True),
)


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    before: BatchCosts
    costs: BatchCosts
    observations: list[Observation]

    def spread(self) -> tuple[float, float]:
        """Predicted over measured: the tenth and the ninetieth in a hundred batches."""
        found = sorted(errors(self.observations, self.costs))
        return found[len(found) // 10], found[-1 - len(found) // 10]


def calibrate(db: Database, rows: int, told: Callable[[str], None]) -> Calibration:
    """Measure, and keep what was found in the catalog of this warehouse."""
    engine = db._engine
    engine.become_writer()
    with engine.catalog.read() as view:
        before = load_costs(view)
    with (
        tempfile.TemporaryDirectory(prefix="weft-calibrate-") as folder,
        connect(folder, spark=engine.spark) as scratch,
    ):
        found = _observed(scratch, rows, told)
    costs = fit(found, BatchCosts(), TRUST)
    with engine.catalog.write() as change:
        change.set_fact(COSTS, json.dumps(asdict(costs)))
    engine.weaver.forget()
    return Calibration(before, costs, found)


def _observed(db: Database, rows: int, told: Callable[[str], None]) -> list[Observation]:
    db._engine.settings = replace(db._engine.settings, maintain_every=10**9)
    for number, trial in enumerate(TRIALS):
        _prepare(db, number, trial)
    for turn, size in enumerate(SIZES):  # all plans take turns: what disturbs one disturbs all
        for number in range(len(TRIALS)):
            db.push(f"s{number}", _rows(turn, max(100, round(size * rows))))
        told(f"batch {turn + 1} of {len(SIZES)} of {len(TRIALS)} plans")
        db.run()
    found = []
    for number in range(len(TRIALS)):
        found += _of_stream(db, f"s{number}")
    return found


def _prepare(db: Database, number: int, trial: Trial) -> None:
    stream = f"s{number}"
    db.sql(f"CREATE STREAM {stream} ({COLUMNS}, WATERMARK FOR ts AS ts)")
    db._engine.weaver.forced = trial.forced
    options = " WITH (answers = 'eager')" if trial.is_eager else ""
    db.sql(
        ";".join(
            f"CREATE CONTINUOUS QUERY q{number}_{i}{options} AS {text.format(stream=stream)}"
            for i, text in enumerate(trial.selects)
        )
    )


def _of_stream(db: Database, name: str) -> list[Observation]:
    engine = db._engine
    with engine.catalog.read() as view:
        stream = view.find(name)
        measures = load_measures(view, stream)
    profile = engine.batches.profile(stream.id)
    measures = replace(measures, profile=profile or measures.profile)
    seen = engine.batches.observed.take(stream.id)[WARM:]
    best: dict[int, Seen] = {}  # of batches alike, the one that was disturbed least
    for each in seen:
        if each.rows not in best or each.ms < best[each.rows].ms:
            best[each.rows] = each
    return [observation(each, measures) for each in best.values()]


def _rows(turn: int, size: int) -> pa.Table:
    dice = np.random.default_rng(turn)
    micros = (START + turn * SECONDS) * 1_000_000 + np.arange(size) * SECONDS * 1_000_000 // size
    names = pa.array([f"group {i}" for i in range(20)])
    return pa.table(
        {
            "few": names.take(pa.array(dice.integers(0, 20, size))),
            "some": pa.array(dice.integers(0, 500, size, dtype=np.int32)),
            "many": pa.array(dice.integers(0, 1_000_000, size, dtype=np.int32)),
            "v": dice.random(size) * 1000,
            "ts": pa.array(micros, pa.timestamp("us", tz="UTC")),
        }
    )


def lines(found: Calibration) -> list[tuple[str, str, str, str]]:
    """(what, shipped, before, measured), with units."""
    shipped, rows = BatchCosts(), []
    for name in BatchCosts.names():
        times, unit = UNITS.get(name, 1.0), "µs" if name in UNITS else "ms"
        values = [getattr(each, name) * times for each in (shipped, found.before, found.costs)]
        rows.append((MEANING[name], *(f"{value:,.2f} {unit}" for value in values)))
    return rows


def median_error(found: Calibration) -> float:
    return statistics.median(abs(e - 1) for e in errors(found.observations, found.costs))
