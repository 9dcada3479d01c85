"""Maps in answers that change: Spark groups by maps, but not by NULLs in them."""

from __future__ import annotations

COLUMNS = "k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts"


def row(k: str, v: int | None, second: int) -> dict:
    return {"k": k, "v": v, "ts": f"2026-01-01T00:00:{second:02d}Z"}


def test_null_and_zero_in_maps_are_told_apart(db) -> None:
    db.sql(f"CREATE STREAM s ({COLUMNS})")
    median = "map('m', max(v), 'n', CAST(NULL AS INT))"
    flat = db.sql(
        f"CREATE CONTINUOUS QUERY flat AS SELECT k, median(v) AS x, {median} AS m FROM s GROUP BY k"
    )
    deep = db.sql(f"""
        CREATE CONTINUOUS QUERY deep AS
        SELECT median(v) AS x, array(named_struct('m', {median})) AS m FROM s GROUP BY k
    """)
    db.push("s", [row("a", None, 0), row("b", 0, 0), row("c", None, 1)])
    db.run()
    assert {r["k"]: dict(r["m"]) for r in flat.results().to_pylist()} == {
        "a": {"m": None, "n": None},
        "b": {"m": 0, "n": None},
        "c": {"m": None, "n": None},
    }
    db.push("s", [row("a", 0, 2)])
    db.run()
    shown = {r["k"]: dict(r["m"]) for r in flat.results().to_pylist()}
    assert shown["a"] == {"m": 0, "n": None}
    assert [c.kind for c in flat.subscribe()] == ["insert"] * 3 + ["retract", "insert"]
    found = sorted(str(dict(r["m"][0]["m"])["m"]) for r in deep.results().to_pylist())
    assert found == ["0", "0", "None"]
