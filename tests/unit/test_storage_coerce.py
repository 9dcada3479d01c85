"""Rows as users have them become the stream's types; what does not fit is marked, not lost."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from weft.errors import InputError, UnknownName
from weft.logical.relations import Column
from weft.storage.coerce import RAW, REASON, coerce

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
COLUMNS = (
    Column("k", "STRING"),
    Column("v", "INT"),
    Column("d", "DECIMAL(10,2)"),
    Column("x", "DOUBLE"),
    Column("ts", "TIMESTAMP"),
)


def made(rows, columns=COLUMNS) -> list[dict]:
    """The rows without the marks, after checking that none is marked."""
    table = coerce(rows, columns, 'stream "s"')
    assert table.column(REASON).null_count == len(table), table.column(REASON).to_pylist()
    return table.drop_columns([RAW, REASON]).to_pylist()


def one(value, kind: str):
    return made([{"c": value}], (Column("c", kind),))[0]["c"]


def reason(value, kind: str) -> str | None:
    table = coerce([{"c": value}], (Column("c", kind),), "stream")
    assert table.column("c").to_pylist() == [None] or table.column(REASON).to_pylist() == [None]
    return table.column(REASON).to_pylist()[0]


GOOD = {"k": "a", "v": 1, "d": Decimal("2.50"), "x": 0.5, "ts": NOON}


@pytest.mark.parametrize(
    "rows",
    [
        [GOOD],
        GOOD,
        iter([GOOD]),
        [{**GOOD, "ts": "2026-01-01T12:00:00Z", "d": "2.50"}],
        [{**GOOD, "ts": "2026-01-01 14:00:00+02:00"}],
        [{**GOOD, "ts": "2026-01-01T12:00:00"}],
        [{**GOOD, "ts": NOON.astimezone(timezone(timedelta(hours=5)))}],
        [{"K": "a", "V": 1, "D": Decimal("2.5"), "X": 0.5, "TS": NOON}],
        pa.Table.from_pylist([GOOD]),
        pa.RecordBatch.from_pylist([GOOD]),
        pa.Table.from_pylist([GOOD]).to_reader(),
        pd.DataFrame([GOOD]),
        pd.DataFrame([{**GOOD, "ts": NOON.replace(tzinfo=None)}]),
        pl.DataFrame([GOOD]),
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_rows_of_every_kind(rows) -> None:
    assert made(rows) == [GOOD]


def test_missing_columns_and_values_are_null() -> None:
    assert made([{"k": "a"}, {}, {"v": None}]) == [
        {"k": "a", "v": None, "d": None, "x": None, "ts": None},
        dict.fromkeys(["k", "v", "d", "x", "ts"]),
        dict.fromkeys(["k", "v", "d", "x", "ts"]),
    ]
    assert made([]) == []
    assert made(pd.DataFrame({"v": [1.0, None]}))[1]["v"] is None
    assert made(pd.DataFrame({"ts": [pd.NaT, NOON]}))[0]["ts"] is None
    nan = made([{"x": float("nan")}])[0]["x"]
    assert nan != nan


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (1, "DOUBLE", 1.0),
        (1.0, "INT", 1),
        ("7", "INT", 7),
        (True, "BOOLEAN", True),
        (7, "STRING", "7"),
        (1, "DECIMAL(10,2)", Decimal("1.00")),
        ("", "STRING", ""),
        ("ü\n'\"", "STRING", "ü\n'\""),
        (date(2026, 1, 1), "DATE", date(2026, 1, 1)),
        ("2026-01-01", "DATE", date(2026, 1, 1)),
        (2**63 - 1, "BIGINT", 2**63 - 1),
        ([1, 2], "ARRAY<INT>", [1, 2]),
        ({"a": 1}, "STRUCT<a: INT>", {"a": 1}),
        (b"x", "BINARY", b"x"),
        (datetime(1960, 1, 1, tzinfo=UTC), "TIMESTAMP", datetime(1960, 1, 1, tzinfo=UTC)),
    ],
)
def test_values_that_fit(value, kind, expected) -> None:
    assert one(value, kind) == expected


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("many", "INT"),
        (1.5, "INT"),
        (Decimal("1.5"), "BIGINT"),
        (float("nan"), "INT"),
        (1767225600000, "TIMESTAMP"),
        (1.5, "TIMESTAMP"),
        (20000, "DATE"),
        (2**40, "INT"),
        (2**70, "BIGINT"),
        ("yesterday", "TIMESTAMP"),
        (Decimal("1.234"), "DECIMAL(10,2)"),
        (Decimal("123456789012.00"), "DECIMAL(10,2)"),
        ("maybe", "BOOLEAN"),
        ([1, "x"], "ARRAY<INT>"),
    ],
)
def test_values_that_do_not_fit_are_marked(value, kind) -> None:
    found = reason(value, kind)
    assert found is not None
    assert 'column "c"' in found
    assert kind in found


def test_only_the_bad_rows_are_marked_and_keep_their_text() -> None:
    rows = [{"k": str(n), "v": n} for n in range(50)]
    rows[7]["v"] = "seven"
    rows[31]["v"] = 2**50
    table = coerce(rows, COLUMNS, "stream")
    bad = [n for n, text in enumerate(table.column(REASON).to_pylist()) if text]
    assert bad == [7, 31]
    assert json.loads(table.column(RAW)[7].as_py()) == {"k": "7", "v": "seven"}
    assert [v for v in table.column("v").to_pylist() if v is not None] == [
        n for n in range(50) if n not in bad
    ]


@pytest.mark.parametrize("rows", [7, "text", b"bytes", [1, 2], [("a", 1)], None])
def test_what_is_no_rows_is_refused(rows) -> None:
    with pytest.raises(InputError) as refused:
        coerce(rows, COLUMNS, 'stream "s"')
    assert refused.value.code == "WEFT_NOT_ROWS"
    assert refused.value.hint


def test_an_unknown_column_is_named() -> None:
    with pytest.raises(UnknownName) as refused:
        coerce([{"kk": 1}], COLUMNS, 'stream "s"')
    assert refused.value.code == "WEFT_UNKNOWN_COLUMN"
    assert refused.value.hint == 'did you mean "k"?'
