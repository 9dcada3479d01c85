"""Values and answers as text: for a person (`show_...`), for JSON and for CSV."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from weft.logical.windows import duration

if TYPE_CHECKING:
    import pyarrow as pa

NULL = "NULL"


def show_time(value: datetime, precision: str = "seconds") -> str:
    """2026-01-01 10:00:00, in UTC; the offset is shown only when it is another."""
    text = value.isoformat(sep=" ", timespec=precision)
    return text.removesuffix("+00:00")


def show_value(value: Any) -> str:
    """A value as text on one line, without what could drive a terminal."""
    match value:
        case None:
            return NULL
        case bool():
            return "true" if value else "false"
        case float():
            return show_float(value)
        case datetime():
            return show_time(value, "microseconds" if value.microsecond else "seconds")
        case timedelta():
            return duration(value)
        case bytes():
            return "\\x" + value.hex()
        case list() | tuple():
            return f"[{', '.join(show_value(item) for item in value)}]"
        case dict():
            return "{" + ", ".join(f"{k}: {show_value(v)}" for k, v in value.items()) + "}"
        case _:
            return printable(str(value))


def show_float(value: float) -> str:
    """Ten significant digits, enough to read; csv and json give them all."""
    text = f"{value:.10g}"
    return repr(value) if "e" in text else text


def printable(text: str) -> str:
    """Line ends and control characters as visible escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def plain(value: Any) -> Any:
    """A value as JSON can carry it, without losing a digit."""
    match value:
        case bool() | int() | str() | None:
            return value
        case float():
            return value if value - value == 0 else str(value)  # NaN and infinities have no JSON
        case Decimal():
            return float(value) if Decimal(repr(float(value))) == value else str(value)
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case bytes():
            return value.hex()
        case list() | tuple():
            return [plain(item) for item in value]
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case _:
            return str(value)


def to_json(table: pa.Table) -> str:
    """A JSON array, one row a line."""
    rows = (json.dumps(plain(row), ensure_ascii=False) for row in table.to_pylist())
    return "[" + ",\n ".join(rows) + "]"


def to_csv(table: pa.Table) -> str:
    """RFC 4180 with a header; NULL is an empty field, nested values are JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.column_names)
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        writer.writerow([_csv_field(value) for value in row])
    return out.getvalue().rstrip("\n")


def _csv_field(value: Any) -> str:
    value = str(value) if isinstance(value, float | Decimal) else plain(value)
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def show_lag(then: datetime | None, now: datetime) -> str:
    """How far a clock is behind the wall: the largest unit and no more (3 s, 12 min, 4 d)."""
    if then is None:
        return "-"
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    seconds = (now - then).total_seconds()
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{sign}{seconds / size:,.0f} {unit}"
    return f"{sign}{seconds:.0f} s" if seconds >= 10 else f"{sign}{seconds:.1f} s"
