"""Aggregates in Python for test_python_aggregates.py: a module of its own, since workers import it."""

from __future__ import annotations

import struct

import pyarrow as pa
import pyarrow.compute as pc

import weft


@weft.aggregate("spread(x DOUBLE) RETURNS DOUBLE")
class Spread:
    """The largest less the smallest value; NULL without any."""

    def zero(self) -> bytes:
        return b""

    def step(self, state: bytes, rows: pa.RecordBatch) -> bytes:
        found = pc.min_max(rows.column("x"))
        low, high = found["min"].as_py(), found["max"].as_py()
        return state if low is None else self.merge(state, struct.pack("<dd", low, high))

    def merge(self, one: bytes, other: bytes) -> bytes:
        if not one or not other:
            return one or other
        (a, b), (c, d) = struct.unpack("<dd", one), struct.unpack("<dd", other)
        return struct.pack("<dd", min(a, c), max(b, d))

    def finish(self, state: bytes) -> float | None:
        return struct.unpack("<dd", state)[1] - struct.unpack("<dd", state)[0] if state else None


@weft.aggregate("names_seen(name STRING, n INT) RETURNS MAP<STRING, BIGINT>")
class NamesSeen:
    """How often each name was seen, by weight; raises an error on the name "bad"."""

    def zero(self) -> bytes:
        return b""

    def step(self, state: bytes, rows: pa.RecordBatch) -> bytes:
        seen = self._read(state)
        for row in rows.to_pylist():
            if row["name"] == "bad":
                raise ValueError("a bad name")
            seen[row["name"]] = seen.get(row["name"], 0) + row["n"]
        return self._written(seen)

    def merge(self, one: bytes, other: bytes) -> bytes:
        seen = self._read(one)
        for name, n in self._read(other).items():
            seen[name] = seen.get(name, 0) + n
        return self._written(seen)

    def finish(self, state: bytes) -> list[tuple[str, int]]:
        return sorted(self._read(state).items())

    def _read(self, state: bytes) -> dict[str, int]:
        lines = (line.rsplit("=", 1) for line in state.decode().splitlines())
        return {name: int(n) for name, n in lines}

    def _written(self, seen: dict[str, int]) -> bytes:
        return "\n".join(f"{name}={n}" for name, n in sorted(seen.items())).encode()


class Unfinished:
    def zero(self) -> bytes:
        return b""
