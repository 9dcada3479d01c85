"""Functions that DuckDB is given for finishes that are not SQL alone: Python aggregates, sketches.

The readers of a process share one DuckDB, so a function is made once and then known to all. Names
of Python aggregates carry a digest of the definition, so that warehouses do not meet in one name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import partial

from weft.logical import declared
from weft.logical.aggregates import Aggregates, PythonAggregate
from weft.logical.types import arrow_type
from weft.optimizer.nodes import Finish
from weft.results import duck, sketches

SKETCHES = ("weft_hll_", "weft_kll_", "weft_top_")
_lock = threading.Lock()
_given: set[PythonAggregate | str] = set()


def provide(finish: Finish) -> None:
    """What one finish calls."""
    texts = [finish.duck, *(s.duck_merge or "" for s in finish.statistics)]
    if any(name in text for text in texts for name in SKETCHES):
        provide_sketches()
    if finish.definitions:
        provide_aggregates(finish.definitions)


def provide_known(aggregates: Aggregates, sql: str) -> None:
    """What a SELECT that runs now calls."""
    known = [a.definition for a in aggregates if isinstance(a.definition, PythonAggregate)]
    provide_aggregates(d for d in known if d.function("fold") in sql.lower())


def provide_sketches() -> None:
    with _lock:
        if "sketches" not in _given:
            sketches.register(duck.root())
            _given.add("sketches")


def provide_aggregates(definitions: Iterable[PythonAggregate]) -> None:
    with _lock:
        for definition in definitions:
            if definition not in _given:
                _make(definition)
                _given.add(definition)


def _make(definition: PythonAggregate) -> None:
    from weft.results.answers import duck_type

    result = duck_type(definition.returns)
    rows, work = duck_type(definition.rows_type), declared.instance(definition.target)
    finish = partial(declared.finish_all, work, type_=arrow_type(definition.returns))
    steps = {
        "fold": (partial(declared.fold_all, work), rows, "BLOB"),
        "merge": (partial(declared.merge_all, work), "BLOB[]", "BLOB"),
        "finish": (finish, "BLOB", result),
    }
    for step, (call, given, made) in steps.items():
        duck.root().create_function(
            definition.function(step), _one_argument(call), [given], made, type="arrow",
            null_handling="special",
        )  # fmt: skip


def _one_argument(call):
    """A plain function: DuckDB counts the parameters of what it is given."""
    return lambda column: call(column)
