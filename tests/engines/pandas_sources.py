"""Frames of pandas as sources: NumPy's types, its own, and Arrow's."""

# ruff: noqa: ARG002 - one interface, whose implementations need not use every argument

import math

import numpy as np
import pandas as pd

from engines.naive import is_missing
from engines.one_source import Source
from engines.rows import ARROW, BOOLEAN, DATE, DOUBLE, ENUM, FLOAT, TEXT, TIME, WHOLE, ZONED, to_arrow
from targetcharge.queries.columns import Kind


class Pandas(Source):
    """NumPy's types: whole numbers turn into floating point, and booleans into objects, if one is missing."""

    types = (*WHOLE, FLOAT, DOUBLE, TEXT, ENUM, DATE, TIME, ZONED, BOOLEAN)

    def given(self, table, folder):
        declared = {name: "boolean" for name, kind in table.types.items() if kind is BOOLEAN}
        declared |= {name: "date" for name, kind in table.types.items() if kind is DATE}
        frame = pd.DataFrame({name: self.series(table.column(name), kind) for name, kind in table.types.items()})
        return frame, {"types": declared}

    def series(self, cells, kind):
        if kind in WHOLE:
            if None in cells:
                return pd.Series([math.nan if cell is None else float(cell) for cell in cells], dtype="float64")
            return pd.Series(cells, dtype=str(kind.arrow))
        if kind in (FLOAT, DOUBLE):
            return pd.Series(cells, dtype="float32" if kind is FLOAT else "float64")
        if kind is BOOLEAN:
            return pd.Series(cells, dtype="object" if None in cells else "bool")
        if kind in (TIME, ZONED):
            times = pd.Series(cells, dtype="datetime64[us]")
            return times.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin") if kind is ZONED else times
        return pd.Series(cells, dtype="category" if kind is ENUM else "object")

    def kind(self, kind, cells):
        return kind.kind, None

    def value(self, kind, value):
        return float(value) if kind.kind is Kind.NUMBER else value

    def unit(self, kind, value, cells):
        """Units are told apart by what a column holds, and not by what of it can be asked about."""
        return None if is_missing(value) else float(value) if kind in WHOLE and None in cells else value

    def rank(self, kind, value, cells):
        """Units of NumPy's numbers and times are in their order, others in the order of their texts."""
        return value if is_missing(value) or kind.kind in (Kind.NUMBER, Kind.TIME) else str(value)

    def told(self, kind, cells):
        """One that is missing turns whole numbers into others, and booleans into objects."""
        return kind in (*WHOLE, BOOLEAN) and None in cells


class PandasNullable(Pandas):
    """Types of pandas itself, and dates as objects that nobody declared: text."""

    def series(self, cells, kind):
        if kind in WHOLE:
            name = str(kind.arrow)
            return pd.Series(cells, dtype=name.replace("uint", "UInt") if name[0] == "u" else name.capitalize())
        if kind in (FLOAT, DOUBLE):
            return pd.Series(cells, dtype="Float32" if kind is FLOAT else "Float64")
        if kind in (BOOLEAN, TEXT):
            return pd.Series(cells, dtype="boolean" if kind is BOOLEAN else "str")
        return super().series(cells, kind)

    def given(self, table, folder):
        return (
            pd.DataFrame({name: self.series(table.column(name), kind) for name, kind in table.types.items()}),
            {},
        )

    def kind(self, kind, cells):
        return Kind.TEXT if kind is DATE else kind.kind, None

    def value(self, kind, value):
        return value.isoformat() if kind is DATE else super().value(kind, value)

    def unit(self, kind, value, cells):
        return None if is_missing(value) else value

    def rank(self, kind, value, cells):
        """Of numbers, only the whole ones are in their order: the others are told apart by texts, 0.0 as -0.0."""
        if kind in (FLOAT, DOUBLE) and not is_missing(value):
            return str((np.float32 if kind is FLOAT else float)(value) + 0.0)
        return value if kind in WHOLE else super().rank(kind, value, cells)

    def told(self, kind, cells):
        return None


class PandasArrow(Pandas):
    """Arrow's types inside pandas."""

    types = ARROW

    def given(self, table, folder):
        return to_arrow(table).to_pandas(types_mapper=pd.ArrowDtype), {}

    def unit(self, kind, value, cells):
        return None if is_missing(value) else value

    def rank(self, kind, value, cells):
        """Whole numbers are in their order, others in the order of their texts."""
        if kind in WHOLE or is_missing(value):
            return value
        return str(value + 0.0) if kind in (FLOAT, DOUBLE) else str(value)

    def told(self, kind, cells):
        return None
