"""Small random tables full of trouble: units with many rows, missing and extreme values, and their neighbours."""

from __future__ import annotations

import datetime as dt
import math
import random
from dataclasses import dataclass, replace
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

UNITS = {
    "text": (pa.string(), ["a", "A", "a ", "", "é", "e\u0301", "0", "NULL", "x'y", "b", "c", None]),
    "integer": (pa.int64(), [0, 1, -1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, 7, 8, None]),
    "floating": (pa.float64(), [0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, None, 1e-30, 1e308, 2.0]),
    "boolean": (pa.bool_(), [True, False, None]),
    "date": (
        pa.date32(),
        [dt.date(1, 1, 1), dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(9999, 12, 31), None],
    ),
    "decimal": (pa.decimal128(20, 2), [Decimal("0.10"), Decimal("0.20"), Decimal("-999999999999.99"), None]),
}
"""The type of a unit column and the values it takes: some differ by little, some are missing."""

COLUMNS = {
    "x": (
        pa.float64(),
        [0.0, -0.0, 1.0, -1.0, 2.5, 99.999, 100.0, 1e-9, 1e15, 1e300, -1e300, math.inf, -math.inf, math.nan, None],
    ),
    "n": (pa.int64(), [0, 1, -1, 7, 100, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), None]),
    "m": (
        pa.decimal128(20, 2),
        [Decimal("0.00"), Decimal("1.25"), Decimal("-7.50"), Decimal("99999999.99"), None],
    ),
    "t": (pa.string(), ["a", "ab", "b", "", "<b>", "it's", "é", None]),
    "b": (pa.bool_(), [True, False, None]),
    "d": (pa.date32(), [dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(1, 1, 1), None]),
    "s": (
        pa.timestamp("us"),
        [
            dt.datetime(2024, 1, 1, 0, 30),
            dt.datetime(2024, 1, 1, 23, 59, 59, 999999),
            dt.datetime(2024, 1, 2),
            None,
        ],
    ),
}
SOURCES = ("arrow", "polars", "pandas", "parquet")


def missing(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


@dataclass(frozen=True)
class World:
    """A table, row by row.

    Attributes:
        kind: of its units; "row" if every row is one.
        rows: values by column, the unit's under "u".
    """

    kind: str
    rows: tuple[dict[str, object], ...]

    @classmethod
    def drawn(cls, seed, kind, most=60):
        """Drawn a table in which one unit has many of the rows."""
        rng = random.Random(f"{seed} {kind}")
        values = UNITS["text" if kind == "row" else kind][1]
        loud = rng.choice(values)
        rows = [
            {
                "u": loud if rng.random() < 0.4 else rng.choice(values),
                **{name: rng.choice(column) for name, (_, column) in COLUMNS.items()},
            }
            for _ in range(rng.randrange(most))
        ]
        return cls(kind, tuple(rows))

    @property
    def unit(self):
        return None if self.kind == "row" else "u"

    def units(self):
        """Return the rows of each unit, in order; rows without a unit are of none."""
        if self.kind == "row":
            return [[row] for row in self.rows]
        found: dict[object, list[dict[str, object]]] = {}
        for row in self.rows:
            if not missing(row["u"]):
                found.setdefault(row["u"], []).append(row)  # 0.0 and -0.0 are one key, as they are one value
        return list(found.values())

    def without(self, place):
        """Return the neighbour that lacks one unit."""
        gone = {id(row) for row in self.units()[place]}
        return replace(self, rows=tuple(row for row in self.rows if id(row) not in gone))

    def arrow(self):
        types = {"u": UNITS["text" if self.kind == "row" else self.kind][0]}
        types |= {name: kind for name, (kind, _) in COLUMNS.items()}
        arrays = {name: pa.array([row[name] for row in self.rows], kind) for name, kind in types.items()}
        return pa.table(arrays)

    def source(self, kind, folder, together=7):
        """Return the table as one that can be opened; in a Parquet file so many rows share their statistics."""
        table = self.arrow()
        if kind == "arrow":
            return table
        if kind == "polars":
            return pl.from_arrow(table)
        if kind == "pandas":
            return self.pandas()
        path = folder / f"{len(list(folder.iterdir()))}.parquet"
        pq.write_table(table, path, row_group_size=together)
        return path

    def pandas(self):
        """Return a frame of pandas: whole numbers keep every digit, and decimals are plain numbers."""
        kinds = {"n": "Int64", "b": "boolean", "t": "object", "x": "float64", "m": "float64", "d": "object"}
        own = {"integer": "Int64", "floating": "float64", "boolean": "boolean", "decimal": "float64"}
        kinds["u"] = own.get(self.kind, "object")
        found = {}
        for name in ("u", *COLUMNS):
            values = [row[name] for row in self.rows]
            if name == "m" or (name == "u" and self.kind == "decimal"):
                values = [None if each is None else float(each) for each in values]
            if name == "s":
                found[name] = pd.Series(pd.array(values, dtype="datetime64[us]"))
            else:
                found[name] = pd.Series(values, dtype=kinds[name])
        return pd.DataFrame(found)
