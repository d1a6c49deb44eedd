"""A table of visits, with or without one more patient whose rows hold everything that could make trouble."""

from __future__ import annotations

import datetime as dt
import math

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

SCHEMA = pa.schema(
    {
        "patient": pa.string(),
        "age": pa.int64(),
        "weight": pa.float64(),
        "kind": pa.string(),
        "day": pa.date32(),
        "at": pa.timestamp("us"),
        "late": pa.bool_(),
        "photo": pa.binary(),
    }
)
TYPES = {"age": "integer", "weight": "number", "day": "date", "at": "time", "late": "boolean"}

_NOON = dt.datetime(2024, 1, 2, 12)
PLAIN = [
    (f"p{place}", 20 + place, 60.5, "ab"[place % 2], dt.date(2024, 1, 1 + place % 3), _NOON, place % 2 == 0, b"")
    for place in range(40)
    for _ in range(1 + place % 3)
]
STRANGE = "<script>alert('visit')</script> \"; DROP TABLE data; -- é\n,"
EXTREME = [
    (STRANGE, None, math.nan, None, None, None, None, None),
    (STRANGE, -(2**63), -math.inf, "", dt.date(1, 1, 1), dt.datetime(1, 1, 1), None, b"\xff\x00"),
    (STRANGE, 2**63 - 1, math.inf, STRANGE, dt.date(9999, 12, 31), dt.datetime(9999, 12, 31), True, b"PAR1"),
    (STRANGE, 2**53 + 1, 1.7e308, "NULL", dt.date(2024, 2, 29), None, False, b"'"),
    (STRANGE, 0, -0.0, "it's", None, _NOON, None, None),
]
"""The rows of one more patient; none of them is of a kind that the others are."""


def table(*, more):
    rows = [*PLAIN[:30], *EXTREME, *PLAIN[30:]] if more else PLAIN
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)],
        schema=SCHEMA,
    )


def frame(*, more):
    """Return a frame as pandas makes it of such rows: with one value missing, whole numbers turn into floats."""
    rows = [*PLAIN[:30], *EXTREME, *PLAIN[30:]] if more else PLAIN
    found = pd.DataFrame({name: [row[place] for row in rows] for place, name in enumerate(SCHEMA.names)})
    found["at"] = found["at"].astype("datetime64[us]")
    found["late"] = found["late"].astype("boolean")
    return found.drop(columns="photo")


def source(kind, *, more):
    """Return the table as it can be opened; files are made in the current folder."""
    made = table(more=more)
    if kind == "arrow":
        return made
    if kind == "polars":
        return pl.from_arrow(made)
    if kind == "pandas":
        return frame(more=more)
    if kind == "parquet":
        pq.write_table(made, "visits.parquet", row_group_size=25)
        return "visits.parquet"
    if kind == "csv":
        pyarrow.csv.write_csv(made.drop_columns("photo"), "visits.csv")
        return "visits.csv"
    with duckdb.connect("visits.duckdb") as connection:
        connection.register("made", made)
        connection.execute("CREATE TABLE visits AS SELECT * FROM made")
    return "visits.duckdb"
