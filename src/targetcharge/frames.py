"""Frames: published facts as typed columns. Types follow from what was asked, never from what came of it.

>>> days = ["2024-02-07", "2024-02-08"]
>>> columns = Columns({"day": (Type.DATE, days), "outcome": (Type.INTEGER, [5, None])})
>>> columns.to_arrow().schema.types
[DataType(date32[day]), DataType(int64)]
>>> columns.to_pandas().dtypes.astype(str).tolist()
['datetime64[us]', 'Int64']
"""

from __future__ import annotations

import datetime as dt
import operator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pandas as pd
    import polars as pl
    import pyarrow as pa

_INT64: Final = 2**63


class Type(Enum):
    """What a column holds besides missing values."""

    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIME = "time"


_PANDAS: Final = {
    Type.INTEGER: "Int64",
    Type.NUMBER: "Float64",
    Type.TEXT: "string",
    Type.BOOLEAN: "boolean",
    Type.DATE: "datetime64[us]",  # pandas has no dates
    Type.TIME: "datetime64[us]",
}

_READ: Final[dict[Type, Callable[..., object]]] = {
    Type.INTEGER: operator.index,  # refuses what is no integer
    Type.NUMBER: float,
    Type.TEXT: str,
    Type.BOOLEAN: bool,
    Type.DATE: dt.date.fromisoformat,
    Type.TIME: dt.datetime.fromisoformat,
}


def type_of_numbers(numbers: Sequence[object]) -> Type:
    """Return the type of a column of declared numbers that changes none of them."""
    if all(isinstance(number, int) and -_INT64 <= number < _INT64 for number in numbers):
        return Type.INTEGER
    exact = all(isinstance(number, int | float) and float(number) == number for number in numbers)
    return Type.NUMBER if exact else Type.TEXT


@final
@dataclass(frozen=True)
class Columns:
    """Columns of one length, by their names.

    Attributes:
        typed: the type of each and its values, as they are published: dates and times as ISO text.
    """

    typed: Mapping[str, tuple[Type, Sequence[object]]]

    def values(self) -> dict[str, list[object]]:
        """Return the values as they are published."""
        return {name: list(values) for name, (_, values) in self.typed.items()}

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas DataFrame of pandas' nullable types."""
        import pandas as pd  # noqa: PLC0415 - optional

        read = {name: pd.Series(values, dtype=_PANDAS[kind]) for name, kind, values in self._read()}
        return pd.DataFrame(read)

    def to_polars(self) -> pl.DataFrame:
        """Return a polars DataFrame."""
        import polars as pl  # noqa: PLC0415 - optional

        types = {
            Type.INTEGER: pl.Int64(),
            Type.NUMBER: pl.Float64(),
            Type.TEXT: pl.String(),
            Type.BOOLEAN: pl.Boolean(),
            Type.DATE: pl.Date(),
            Type.TIME: pl.Datetime("us"),
        }
        return pl.DataFrame([pl.Series(name, values, types[kind]) for name, kind, values in self._read()])

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table."""
        import pyarrow as pa  # noqa: PLC0415 - optional

        types = {
            Type.INTEGER: pa.int64(),
            Type.NUMBER: pa.float64(),
            Type.TEXT: pa.string(),
            Type.BOOLEAN: pa.bool_(),
            Type.DATE: pa.date32(),
            Type.TIME: pa.timestamp("us"),
        }
        return pa.table({name: pa.array(values, types[kind]) for name, kind, values in self._read()})

    def _read(self) -> Iterator[tuple[str, Type, list[object]]]:
        """Yield each column with its values in Python's types."""
        for name, (kind, values) in self.typed.items():
            read = _READ[kind]
            yield name, kind, [None if value is None else read(value) for value in values]
