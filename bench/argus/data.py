"""The bank's transactions (the paper's Fed) and the hospital's admissions (its Med).

The files hold fewer rows than the paper's, so they are scaled up: each copy has accounts or patients
of its own and amounts a little off, and all copies run side by side through the same days. Where the
files are absent, rows of the same shape are generated. Either way they are in order of time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

SEED = 3
DAY = np.timedelta64(86_400_000_000, "us")


@dataclass(frozen=True, slots=True)
class Dataset:
    """A stream of the paper: its columns, where its file is, and how its rows are made up."""

    name: str
    columns: tuple[tuple[str, str], ...]  # without the time
    identity: str  # the column that a copy has values of its own in
    wobbly: tuple[str, ...]  # columns that a copy has slightly other values in
    file: str
    read: Callable[[Path], pd.DataFrame]
    invent: Callable[[np.random.Generator], pd.DataFrame]

    @property
    def declaration(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns)
        return f"CREATE STREAM {self.name} ({columns}, ts TIMESTAMP, WATERMARK FOR ts AS ts)"


def load(dataset: Dataset, rows: int, folder: Path) -> tuple[pa.Table, str]:
    """The first so many rows of the scaled-up stream, and where they come from."""
    path = folder / dataset.file
    dice = np.random.default_rng(SEED)
    if path.exists():
        base, origin = dataset.read(path), "file"
    else:
        base, origin = dataset.invent(dice), "generated"
    return to_arrow(dataset, scale(dataset, base, rows, dice)), origin


def scale(
    dataset: Dataset, base: pd.DataFrame, rows: int, dice: np.random.Generator
) -> pd.DataFrame:
    copies = -(-rows // len(base))
    step = int(base[dataset.identity].max()) + 1
    parts = []
    for copy in range(copies):
        part = base.copy()
        part[dataset.identity] += copy * step
        for column in dataset.wobbly if copy else ():
            part[column] = (part[column] * dice.uniform(0.9, 1.1, len(part))).round(2)
        parts.append(part)
    every = pd.concat(parts, ignore_index=True).sort_values("day", kind="stable")
    return spread(every).head(rows)


def spread(rows: pd.DataFrame) -> pd.DataFrame:
    """Give the rows of a day times that ascend through it."""
    by_day = rows.groupby("day", sort=False)["day"]
    share = by_day.cumcount().to_numpy() / by_day.transform("size").to_numpy()
    return rows.assign(ts=rows["day"].to_numpy().astype("datetime64[us]") + share * DAY)


def to_arrow(dataset: Dataset, rows: pd.DataFrame) -> pa.Table:
    kinds = {"BIGINT": pa.int64(), "INT": pa.int32(), "DOUBLE": pa.float64()}
    arrays = {
        name: pa.array(rows[name], kinds.get(kind, pa.string()), from_pandas=True)
        for name, kind in dataset.columns
    }
    arrays["ts"] = pa.array(rows["ts"].to_numpy(), pa.timestamp("us")).cast(
        pa.timestamp("us", tz="UTC")
    )
    return pa.table(arrays)


def read_bank(path: Path) -> pd.DataFrame:
    found = pd.read_csv(path, dtype={"bank": str, "k_symbol": str, "operation": str})
    return found.assign(day=pd.to_datetime(found["ts"])).drop(columns="ts")


def invent_bank(dice: np.random.Generator) -> pd.DataFrame:
    count = 49_102
    kinds = ["VYDAJ", "PRIJEM", "VYBER"]
    operations = ["VYBER", "VKLAD", None, "PREVOD NA UCET", "PREVOD Z UCTU", "VYBER KARTOU"]
    symbols = [None, "UROK", "SLUZBY", "SIPO", "DUCHOD", "POJISTNE", "UVER"]
    banks = [None, *(f"B{i}" for i in range(13))]
    return pd.DataFrame(
        {
            "account_id": dice.integers(1, 1230, count),
            "type": dice.choice(kinds, count, p=[0.52, 0.47, 0.01]),
            "operation": dice.choice(operations, count, p=[0.4, 0.2, 0.19, 0.13, 0.07, 0.01]),
            "k_symbol": dice.choice(symbols, count, p=[0.56, 0.19, 0.11, 0.08, 0.04, 0.01, 0.01]),
            "bank": dice.choice(banks, count, p=[0.792, *[0.016] * 13]),
            "amount": np.minimum(dice.lognormal(7.5, 1.8, count), 76_500).round(2),
            "balance": dice.normal(35_000, 20_000, count).round(2),
            "day": days(dice, count, "1993-01-01", 455),
        }
    )


def read_hospital(path: Path) -> pd.DataFrame:
    names = {
        "mrd_no": "patient",
        "type_of_admission_emergency_opd": "admission",
        "duration_of_stay": "stay",
        "duration_of_intensive_unit_stay": "icu",
    }
    found = pd.read_csv(path, low_memory=False).rename(columns=names)
    patients = pd.to_numeric(found["patient"], errors="coerce").fillna(0).astype("int64")
    numbers = {
        name: pd.to_numeric(found[name], errors="coerce") for name in ("glucose", "urea", "hb")
    }
    return found.assign(patient=patients, **numbers, day=pd.to_datetime(found["admitted"]))


def invent_hospital(dice: np.random.Generator) -> pd.DataFrame:
    count = 15_757
    flags = {"dm": 0.3, "htn": 0.5, "cad": 0.66, "ckd": 0.1, "acs": 0.37, "heart_failure": 0.29}
    return pd.DataFrame(
        {
            "patient": dice.integers(1, 12_300, count),
            "age": np.clip(dice.normal(61, 13, count), 4, 110).astype(int),
            "gender": dice.choice(["M", "F"], count, p=[0.63, 0.37]),
            "rural": dice.choice(["U", "R"], count, p=[0.77, 0.23]),
            "admission": dice.choice(["E", "O"], count, p=[0.69, 0.31]),
            "outcome": dice.choice(["DISCHARGE", "EXPIRY", "DAMA"], count, p=[0.87, 0.07, 0.06]),
            "stay": np.minimum(1 + dice.exponential(5.4, count), 98).astype(int),
            "icu": np.minimum(dice.exponential(3.5, count), 58).astype(int),
            **{name: (dice.random(count) < share).astype(int) for name, share in flags.items()},
            "hb": dice.normal(12.3, 2.3, count).round(1),
            "glucose": dice.lognormal(5, 0.4, count).round(0),
            "urea": dice.lognormal(3.6, 0.6, count).round(0),
            "day": days(dice, count, "2017-04-01", 730),
        }
    )


def days(dice: np.random.Generator, count: int, first: str, number: int) -> np.ndarray:
    offsets = np.sort(dice.integers(0, number, count))
    return np.datetime64(first, "us") + offsets * DAY


FED = Dataset(
    "fed",
    (
        ("account_id", "BIGINT"), ("type", "STRING"), ("operation", "STRING"),
        ("k_symbol", "STRING"), ("bank", "STRING"), ("amount", "DOUBLE"), ("balance", "DOUBLE"),
    ),
    "account_id",
    ("amount", "balance"),
    "bank_transactions/trans_events.csv.gz",
    read_bank,
    invent_bank,
)  # fmt: skip
MED = Dataset(
    "med",
    (
        ("patient", "BIGINT"), ("age", "INT"), ("gender", "STRING"), ("rural", "STRING"),
        ("admission", "STRING"), ("outcome", "STRING"), ("stay", "INT"), ("icu", "INT"),
        ("dm", "INT"), ("htn", "INT"), ("cad", "INT"), ("ckd", "INT"), ("acs", "INT"),
        ("heart_failure", "INT"), ("hb", "DOUBLE"), ("glucose", "DOUBLE"), ("urea", "DOUBLE"),
    ),
    "patient",
    ("hb", "glucose", "urea"),
    "hospital_admissions/admissions_events.csv.gz",
    read_hospital,
    invent_hospital,
)  # fmt: skip
DATASETS = {"fed": FED, "med": MED}
