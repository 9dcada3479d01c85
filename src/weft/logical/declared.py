"""Aggregates that a user writes in Python: how a class is declared, found again, and run.

    @weft.aggregate("spread(x DOUBLE) RETURNS DOUBLE")
    class Spread:
        def zero(self) -> bytes: ...
        def step(self, state: bytes, rows: pyarrow.RecordBatch) -> bytes: ...
        def merge(self, one: bytes, other: bytes) -> bytes: ...
        def finish(self, state: bytes) -> object: ...

Law, which the user vouches for: stepping through any parts of some rows, each from zero, and merging
gives what finishes as stepping through all of them does. The catalog holds the class's importable
name, so that another process, or this one after a restart, finds the same code.

What is stored is a byte and the state. The byte tells a state from a failure: an exception of step or
merge becomes the state's value and is raised when it is finished, so that one query's bad row does not
stop the pass that all queries share.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from weft.errors import SqlError

if TYPE_CHECKING:
    import pyarrow as pa

GOOD, FAILED = b"\x00", b"\x01"
METHODS = ("zero", "step", "merge", "finish")
SIGNATURE = "__weft_aggregate__"
FAILURE = "the Python aggregate failed: "  # how the reading room knows such an error
C = TypeVar("C", bound=type)


def aggregate(signature: str) -> Callable[[C], C]:
    """Declare a class as an aggregate: "name(x DOUBLE) RETURNS DOUBLE", for db.register_aggregate."""

    def declare(cls: C) -> C:
        _check_methods(cls, cls.__qualname__)
        setattr(cls, SIGNATURE, signature)
        return cls

    return declare


def creation(cls: type) -> str:
    """The statement that registers a declared class."""
    signature = getattr(cls, SIGNATURE, None)
    if signature is None:
        name = getattr(cls, "__qualname__", repr(cls))
        raise SqlError(
            f"{name} is not declared as an aggregate",
            hint='decorate the class with @weft.aggregate("name(x DOUBLE) RETURNS DOUBLE")',
        )
    return f"CREATE OR REPLACE AGGREGATE {signature} AS PYTHON '{importable_name(cls)}'"


def importable_name(cls: type) -> str:
    """module:Class, if another process can import it under that name."""
    target = f"{cls.__module__}:{cls.__qualname__}"
    if find(target) is not cls:
        raise not_importable(target, "that name is another class now")
    return target


def find(target: str) -> type:
    """The class of an importable name, checked."""
    module, _, path = target.partition(":")
    if module == "__main__" or "<locals>" in path:
        raise not_importable(
            target, "a class of a script or a function exists in this process only"
        )
    try:
        found = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise not_importable(target, f"{type(error).__name__}: {error}") from error
    _check_methods(found, target)
    return found


def _check_methods(cls: object, name: str) -> None:
    missing = [m for m in METHODS if not callable(getattr(cls, m, None))]
    if missing or not isinstance(cls, type):
        raise SqlError(
            f"{name} cannot be an aggregate",
            detail=f"it has no {', '.join(missing)}" if missing else "it is not a class",
            hint="write a class with the methods zero, step, merge and finish",
        )


def not_importable(target: str, detail: str) -> SqlError:
    return SqlError(
        f'"{target}" cannot be imported',
        detail=detail,
        hint="put the class in a module on Python's path, and write 'module:Class'",
        code="WEFT_NOT_IMPORTABLE",
    )


@lru_cache(maxsize=256)
def instance(target: str, path: tuple[str, ...] = ()) -> Any:
    """The one object that does a class's work in this process.

    `path` is where the process that compiled the query finds modules: Spark's workers start with
    another one.
    """
    sys.path.extend(entry for entry in path if entry not in sys.path)
    return find(target)()


# whole columns at a time, for Spark and for DuckDB alike


def fold_all(work: Any, lists: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Lists of rows → stored states; no rows → NULL."""
    import pyarrow as pa

    states: list[bytes | None] = []
    for chunk in _chunks(lists):
        ends = chunk.offsets.to_pylist()
        for i, is_there in enumerate(chunk.is_valid().to_pylist()):
            rows = chunk.values.slice(ends[i], ends[i + 1] - ends[i])
            states.append(_fold(work, rows) if is_there and len(rows) else None)
    return pa.array(states, pa.binary())


def _fold(work: Any, rows: pa.StructArray) -> bytes:
    import pyarrow as pa

    return _kept(lambda: work.step(work.zero(), pa.RecordBatch.from_struct_array(rows)))


def merge_all(work: Any, lists: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Lists of stored states → one stored state each; NULL stands for no rows."""
    import pyarrow as pa

    found = (merged(work, states or ()) for chunk in _chunks(lists) for states in chunk.to_pylist())
    return pa.array(list(found), pa.binary())


def merged(work: Any, states: Iterable[bytes | None]) -> bytes | None:
    """One stored state of many. They are merged in the order of their bytes, so that the same states
    give the same to the last digit: what was told can be taken back."""
    whole = None
    for state in sorted(s for s in states if s is not None):
        whole = state if whole is None else _merge(work, whole, state)
    return whole


def _merge(work: Any, one: bytes, other: bytes) -> bytes:
    for state in (one, other):
        if state[:1] == FAILED:
            return state
    return _kept(lambda: work.merge(one[1:], other[1:]))


def finish_all(work: Any, states: pa.Array | pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    """Stored states → values; no rows → what zero finishes to."""
    import pyarrow as pa

    return pa.array([finished(work, s) for s in states.to_pylist()], type_)


def finished(work: Any, state: bytes | None) -> Any:
    if state is not None and state[:1] == FAILED:
        raise RuntimeError(FAILURE + state[1:].decode())
    try:
        return work.finish(work.zero() if state is None else state[1:])
    except Exception as error:
        raise RuntimeError(FAILURE + _described(error)) from error


def _kept(make: Callable[[], bytes]) -> bytes:
    try:
        return GOOD + bytes(memoryview(make()))
    except Exception as error:
        return FAILED + _described(error).encode()


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".replace("\n", " ")


def _chunks(column: pa.Array | pa.ChunkedArray) -> Sequence[pa.Array]:
    return column.chunks if hasattr(column, "chunks") else [column]
