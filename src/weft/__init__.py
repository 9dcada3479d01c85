"""Weft: hundreds of standing SQL queries over a few streams, woven into one pipeline on Spark.

    import weft

    db = weft.connect("warehouse")
    db.sql("CREATE STREAM trades (sym STRING, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
    hot = db.sql("CREATE CONTINUOUS QUERY hot AS SELECT sym, max(price) AS top FROM trades [RANGE 1 HOUR SLIDE 1 HOUR] GROUP BY sym")
    db.push("trades", [{"sym": "A", "price": 1.5, "ts": "2026-01-01T10:00:00Z"}])
    db.run()
    hot.results()

Names are loaded when they are first used, so that `import weft` is quick.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "connect": "weft.delivery.api",
    "aggregate": "weft.logical.declared",
    "Database": "weft.delivery.api",
    "Query": "weft.delivery.api",
    "Change": "weft.results.subscribe",
    "Subscription": "weft.results.subscribe",
    "WeftError": "weft.errors",
    "SqlError": "weft.errors",
    "SyntaxProblem": "weft.errors",
    "UnknownName": "weft.errors",
    "NameTaken": "weft.errors",
    "InvalidWindow": "weft.errors",
    "TypeProblem": "weft.errors",
    "Unsupported": "weft.errors",
    "InputError": "weft.errors",
    "SourceError": "weft.errors",
    "StorageError": "weft.errors",
    "WarehouseBusy": "weft.errors",
    "EnvironmentProblem": "weft.errors",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'weft' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
