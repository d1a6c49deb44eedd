"""A table whose counts are hundreds of noise scales away from every threshold that is asked about."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from tests.sessions.scripted import budget_of
from tests.tables.anew import anew

import targetcharge as tc

EPSILON = 0.1
MANY = 9000
"""Patients: two of three are of kind a, the others of kind b; each has two rows."""
NEAR = 700
"""No noise of ε 0.1 comes so far: e^-70."""

_FIRST = dt.datetime(2024, 1, 1, 8, 30)


def table(many=MANY, **changes):
    places = [place for place in range(many) for _ in range(2)]
    kinds = ["b" if place % 3 == 0 else "a" for place in places]
    columns = {
        "patient": pa.array(places, pa.int64()),
        "kind": pa.array(kinds, pa.string()),
        "fee": pa.array([2.5] * len(places), pa.float64()),
        "balance": pa.array([3 if kind == "a" else -3 for kind in kinds], pa.int64()),
        "day": pa.array([(_FIRST + dt.timedelta(days=place % 3)).date() for place in places], pa.date32()),
        "at": pa.array([_FIRST + dt.timedelta(hours=place % 2) for place in places], pa.timestamp("us")),
        "doctor": pa.array([place % 3000 for place in places], pa.int64()),
        "old": pa.array([kind == "a" for kind in kinds], pa.bool_()),
    }
    return pa.table(columns | changes)


TYPES = {"fee": "number", "balance": "integer", "day": "date", "at": "time", "doctor": "integer", "old": "boolean"}
SOURCES = ("arrow", "pandas", "polars", "parquet", "csv")


def source(kind, folder, made=None):
    """Return the table as one that can be opened, and the options it needs."""
    made = table() if made is None else made
    if kind == "arrow":
        return made, {}
    if kind == "pandas":
        return made.to_pandas(), {"types": {"day": "date"}}
    if kind == "polars":
        return pl.from_arrow(made), {}
    path = folder / f"people.{kind}"
    if kind == "parquet":
        pq.write_table(made, path)
        return path, {}
    pyarrow.csv.write_csv(made, path)
    return path, {"types": TYPES}


def opened(made=None, hits=20, *, unit="patient", meter="exact", **options):
    """Open a table with this many hits."""
    made = table() if made is None else made
    budget = options.pop("budget", None) or budget_of(hits, EPSILON, meter=meter)
    return anew(tc.open(made, unit=unit, budget=budget, query_epsilon=EPSILON, meter=meter, **options))


def near(found, truth, most=NEAR):
    """Return whether a published number is about the truth, and its interval holds it."""
    low, high = found.interval
    return abs(found.outcome - truth) < most and low <= found.outcome <= high
