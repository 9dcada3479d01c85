"""Sketches outside Spark: Apache DataSketches' own library merges and reads the bytes Spark wrote.

Spark's HyperLogLog, KLL and frequent-items states are DataSketches' portable formats, so any of its
libraries reads them. Two details are Spark's: items of APPROX_TOP_K are written by type (small
numbers with a byte that tells their width), and the number of NULLs follows the sketch as eight
bytes. Merging is that of the library: counts come out as Spark's own, HyperLogLog and KLL within their
error (the one depends on the order, the other tosses coins when it compacts).

`finish_sketch` is for one answer; `register` gives DuckDB the same as functions, for whole queries.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from weft.errors import Unsupported

if TYPE_CHECKING:
    import duckdb

EPOCH_DAY, EPOCH = date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
KLL = {"double": "kll_doubles_sketch", "float": "kll_floats_sketch", "bigint": "kll_items_sketch"}
# How items are written: a byte that tells the width, or none, and the layout of the number.
LAYOUTS = {
    "tinyint": (2, "<b"), "smallint": (3, "<h"), "int": (9, "<i"), "date": (9, "<i"),
    "float": (6, "<f"), "bigint": (None, "<q"), "timestamp": (None, "<q"), "double": (None, "<d"),
}  # fmt: skip
READABLE_ITEMS = (*LAYOUTS, "string")


def finish_sketch(
    kind: str, states: Sequence[bytes | None], argument: object = None, item: str = "bigint"
) -> Any:
    """Merge sketches and read the result as Spark would.

    `kind` is "hll" (→ the number of distinct values), "kll" (`argument`: a rank, or a list of them;
    `item`: double, float or bigint) or "top" (`argument`: how many; → [(item, count), …]).
    """
    if kind == "hll":
        return hll_estimate(hll_union(states))
    if kind == "kll":
        return kll_quantile(kll_merge(states, item), argument, item)
    if kind == "top":
        return top_k(top_union(states, item), int(argument), item)
    raise Unsupported(f"sketches of kind {kind} are not read outside Spark")


def _library():
    try:
        import datasketches
    except ImportError:
        raise Unsupported(
            "sketches are read with Apache DataSketches, which is not installed",
            hint="pip install datasketches",
        ) from None
    return datasketches


def _present(states: Sequence[bytes | None] | None) -> list[bytes]:
    """In one order, so that the same states give the same again wherever no coin is tossed."""
    return sorted(bytes(state) for state in states or () if state is not None)


def hll_union(states: Sequence[bytes | None]) -> bytes | None:
    """The union, with the buckets of the largest of the sketches that are merged."""
    library, found = _library(), _present(states)
    if not found:
        return None
    sketches = [library.hll_sketch.deserialize(state) for state in found]
    union = library.hll_union(max(sketch.lg_config_k for sketch in sketches))
    for sketch in sketches:
        union.update(sketch)
    return union.get_result(library.tgt_hll_type.HLL_8).serialize_updatable()


def hll_estimate(state: bytes | None) -> int:
    if state is None:
        return 0
    return math.floor(_library().hll_sketch.deserialize(bytes(state)).get_estimate() + 0.5)


def _kll(state: bytes, item: str):
    library = _library()
    sketch = getattr(library, KLL[item])
    return (
        sketch.deserialize(state, library.PyLongsSerDe())
        if item == "bigint"
        else sketch.deserialize(state)
    )


def kll_merge(states: Sequence[bytes | None], item: str) -> bytes | None:
    found = _present(states)
    if not found:
        return None
    merged = _kll(found[0], item)
    for state in found[1:]:
        merged.merge(_kll(state, item))
    if item == "bigint":
        return merged.serialize(_library().PyLongsSerDe())
    return merged.serialize()


def kll_quantile(state: bytes | None, ranks: object, item: str) -> Any:
    sketch = _kll(bytes(state), item) if state is not None else None
    if sketch is None or sketch.is_empty():
        return None
    if isinstance(ranks, Sequence):
        return [sketch.get_quantile(float(rank), True) for rank in ranks]
    return sketch.get_quantile(float(ranks), True)


def _items(item: str):
    """How items of a type are written and read, as the library asks for it."""
    if item == "string":
        return _texts()
    if item not in LAYOUTS:
        raise Unsupported(f"frequent items of type {item} are not read outside Spark")
    tag, layout = LAYOUTS[item]
    head = b"" if tag is None else bytes([tag])

    class Numbers(_library().PyObjectSerDe):
        def get_size(self, value) -> int:
            return len(head) + struct.calcsize(layout)

        def to_bytes(self, value) -> bytes:
            return head + struct.pack(layout, value)

        def from_bytes(self, data: bytes, offset: int) -> tuple:
            return struct.unpack_from(layout, data, offset + len(head))[0], self.get_size(None)

    return Numbers()


def _texts():
    """Texts by their length in bytes; the library's own counts characters."""

    class Texts(_library().PyObjectSerDe):
        def get_size(self, value: str) -> int:
            return 4 + len(value.encode())

        def to_bytes(self, value: str) -> bytes:
            return struct.pack("<I", len(value.encode())) + value.encode()

        def from_bytes(self, data: bytes, offset: int) -> tuple:
            (length,) = struct.unpack_from("<I", data, offset)
            start = offset + 4
            return bytes(data[start : start + length]).decode(), 4 + length

    return Texts()


def top_union(states: Sequence[bytes | None], item: str) -> bytes | None:
    """The merged sketch, followed by the number of NULLs as Spark writes it."""
    library, found, items = _library(), _present(states), _items(item)
    if not found:
        return None
    merged, nulls = None, 0
    for state in found:
        sketch = library.frequent_items_sketch.deserialize(state[:-8], items)
        nulls += int.from_bytes(state[-8:], "big")
        if merged is None:
            merged = sketch
        else:
            merged.merge(sketch)
    return merged.serialize(items) + nulls.to_bytes(8, "big")


def top_k(state: bytes | None, k: int, item: str) -> list[tuple]:
    """The k most frequent values and their counts, NULL among them, most frequent first."""
    if state is None:
        return []
    library, state = _library(), bytes(state)
    sketch = library.frequent_items_sketch.deserialize(state[:-8], _items(item))
    exact = library.frequent_items_error_type.NO_FALSE_POSITIVES
    found = [(_value(row[0], item), row[1]) for row in sketch.get_frequent_items(exact)]
    if nulls := int.from_bytes(state[-8:], "big"):
        found.append((None, nulls))
    return sorted(found, key=lambda pair: -pair[1])[:k]


def _value(raw: object, item: str) -> object:
    if item == "date":
        return EPOCH_DAY + timedelta(days=raw)
    if item == "timestamp":
        return EPOCH + timedelta(microseconds=raw)
    return raw


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Give a DuckDB connection the functions that finishes with sketches call."""
    import duckdb

    blobs, blob = duckdb.list_type("BLOB"), "BLOB"
    _function(connection, "weft_hll_union", hll_union, [blobs], blob)
    _function(connection, "weft_hll_estimate", hll_estimate, [blob], "BIGINT")
    ranks = duckdb.list_type("DOUBLE")
    for item in KLL:
        read = _quantile(item)
        _function(connection, f"weft_kll_merge_{item}", _merge(kll_merge, item), [blobs], blob)
        _function(connection, f"weft_kll_quantile_{item}", read, [blob, "DOUBLE"], item.upper())
        many = duckdb.list_type(item.upper())
        _function(connection, f"weft_kll_quantiles_{item}", read, [blob, ranks], many)
    types = {"string": "VARCHAR", "timestamp": "TIMESTAMPTZ", "int": "INTEGER"}
    for item in READABLE_ITEMS:
        pair = duckdb.struct_type({"item": types.get(item, item.upper()), "count": "BIGINT"})
        _function(connection, f"weft_top_union_{item}", _merge(top_union, item), [blobs], blob)
        read = _as_rows(item)
        result = duckdb.list_type(pair)
        _function(connection, f"weft_top_k_{item}", read, [blob, "BIGINT"], result)


def _merge(function: Callable, item: str) -> Callable:
    return lambda states: function(states, item)


def _quantile(item: str) -> Callable:
    return lambda state, ranks: kll_quantile(state, ranks, item)


def _as_rows(item: str) -> Callable:
    return lambda state, k: [{"item": v, "count": n} for v, n in top_k(state, k, item)]


def _function(connection, name: str, call: Callable, parameters: list, result: object) -> None:
    connection.create_function(name, call, parameters, result, null_handling="special")
