"""The demo: its queries are many and of every kind, it runs, and its answers are right."""

from __future__ import annotations

import importlib.util
import io
from datetime import date, datetime
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

import weft
from weft.delivery.demo import data, story
from weft.logical.windows import (
    Cumulating,
    Hopping,
    Landmark,
    LastRows,
    Session,
    Sliding,
    Snapshot,
    WholeStream,
)
from weft.sql.parse import parse

FILES = (*story.FIRST, story.EVE_OF_STORM)


def queries() -> list[story.Query]:
    return [query for name in FILES for query in story.queries_in(name)]


def test_there_are_fifty_queries_each_with_a_purpose() -> None:
    found = queries()
    assert len(found) >= 50
    assert len({query.name for query in found}) == len(found)
    assert all(query.purpose.endswith((".", "?")) for query in found)


def test_they_parse_one_by_one() -> None:
    for query in queries():
        assert len(parse(query.text)) == 1


def test_missing_data_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(weft.EnvironmentProblem) as caught:
        data.folder()
    assert "pip install" in caught.value.hint


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(weft.WeftError) as caught:
        story.fresh_warehouse(tmp_path)
    assert caught.value.code == "WEFT_NOT_EMPTY"
    assert (tmp_path / "precious.txt").exists()


@pytest.mark.slow
def test_the_demo_runs_and_its_answers_are_right(tmp_path: Path, spark) -> None:
    place, out = tmp_path / "demo", io.StringIO()
    console = Console(file=out, width=120, highlight=False)
    story.run(keep=place, quick=True, console=console, spark=spark)
    assert "Done in" in out.getvalue()
    with weft.connect(place) as db:
        assert [q.name for q in db.status().queries if q.error] == []
        check_answers(db)
        check_kinds_of_windows(db)


def check_answers(db: weft.Database) -> None:
    """A few answers against pandas, over the same rows."""
    spans = [(date(2013, 2, a), date(2013, 2, b)) for a, b in story.FEW_DAYS]
    batches = [batch.flights for batch in data.load_batches(spans)]
    flights = {stream.name: stream for stream in db.status().streams}["flights"]
    assert flights.rejected == len(data.GARBLED)
    assert flights.rows + flights.late == sum(map(len, batches))

    policy = {r["allowed_minutes"]: r for r in db.query("delayed_by_policy").results().to_pylist()}
    first = batches[0].dropna(subset=["dep_delay"])
    assert policy[15]["flights"] == len(first)
    assert policy[15]["breaches"] == int((first["dep_delay"] > 15).sum())

    answer = {r["origin"]: r["scheduled"] for r in db.query("since_storm").results().to_pylist()}
    assert answer == departures_since_storm(db, pd.concat(batches), flights.clock)


def departures_since_storm(db: weft.Database, rows: pd.DataFrame, clock: datetime) -> dict:
    key = ["carrier", "flight", "scheduled"]
    late = db.sql(f"SELECT {', '.join(key)} FROM flights.late").to_pandas()
    in_time = rows[~rows.set_index(key).index.isin(late.set_index(key).index)]
    is_shown = (in_time["scheduled"] >= "2013-02-08T00:00Z") & (in_time["scheduled"] <= clock)
    return in_time[is_shown].groupby("origin").size().to_dict()


def check_kinds_of_windows(db: weft.Database) -> None:
    """Every kind of window is in use."""
    text = "\n".join(db.query(q.name).explain() for q in queries() if q.name not in story.DROPPED)
    kinds = {Hopping: "hopping", Cumulating: "cumulating", Session: "session", LastRows: "last ",
             Sliding: "sliding", Landmark: "since ", Snapshot: "from ", WholeStream: "whole stream"}  # fmt: skip
    for kind, words in kinds.items():
        assert words in text, kind.__name__
    assert "tumbling" in text
