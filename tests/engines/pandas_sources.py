"""Frames of pandas as sources: NumPy's types, its own, and Arrow's."""

# ruff: noqa: ARG002 - one interface, whose implementations need not use every argument

import math

import pandas as pd
from tests.engines.identities import by_value, in_order
from tests.engines.one_source import Source
from tests.engines.rows import ARROW, BOOLEAN, DATE, DOUBLE, ENUM, FLOAT, TEXT, TIME, WHOLE, ZONED, to_arrow

from targetcharge.queries.tree import Kind


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
        """Units are told apart by value; those of columns that are declared, by what they are declared to be."""
        if kind is BOOLEAN:
            return None if value is None else str(value).lower()
        return by_value(value)

    def rank(self, kind, value, cells):
        return in_order(self.unit(kind, value, cells))


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
        return by_value(value)


class PandasArrow(Pandas):
    """Arrow's types inside pandas."""

    types = ARROW

    def given(self, table, folder):
        return to_arrow(table).to_pandas(types_mapper=pd.ArrowDtype), {}

    def unit(self, kind, value, cells):
        return by_value(value)
