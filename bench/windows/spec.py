"""One run of one engine, as a value that travels to the process that does it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.windows.queries import WindowQuery, generate, generate_of_classes
from bench.windows.trades import Trades


@dataclass(frozen=True, slots=True)
class Spec:
    """Which engine, how many queries of which kind, over which files."""

    engine: str  # weft, spark or limit
    queries: int
    answers: str | None
    mix: str
    folder: str
    rows: int
    batch_rows: int
    warm: int = 1
    classes: int | None = None
    reads: int = 100

    @property
    def trades(self) -> Trades:
        return Trades(Path(self.folder), self.batch_rows, self.rows, self.warm)

    def generate(self) -> list[WindowQuery]:
        if self.classes is not None:
            return generate_of_classes(self.queries, self.classes)
        return generate(self.queries, self.mix)

    @property
    def label(self) -> str:
        parts = [self.engine, self.answers if self.engine == "weft" else None]
        parts += [f"{self.queries:,} queries" if self.engine != "limit" else None]
        parts += [f"{self.classes} classes" if self.classes else None]
        parts += [self.mix if self.mix != "plain" else None]
        return ", ".join(part for part in parts if part)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Spec:
        return Spec(**json.loads(text))
