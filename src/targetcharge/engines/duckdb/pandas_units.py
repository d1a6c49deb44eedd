"""Units of pandas columns: one canonical text of each value, whatever the column's type has become.

A column's type may hang on one row: a missing id turns whole numbers into floating point, a text turns them into
objects. So the same person has the same text in all of them. Columns of pandas' own text type are text as it is,
as in files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from targetcharge.engines.duckdb.quoting import identifier, unused
from targetcharge.identity import EXACT, canonical, of_integer

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd
    from numpy.typing import NDArray

_TEXT: Final = ("string", "str")
"""Types of pandas columns that hold text and nothing else, as a file does."""
_NUMBERS: Final = "iufb"
_NO_NUMBER: Final = 2**62
"""Stands where a value is not one of the simple numbers, which are smaller."""


@final
@dataclass(frozen=True)
class Units:
    """What tells the units of a pandas column apart.

    Attributes:
        arrays: columns that are loaded for it and are none of the table's: whole numbers, or texts, or both.
        sql: the canonical text, made of them.
    """

    arrays: dict[str, NDArray[Any]]
    sql: str


def units_of(series: pd.Series, names: Iterable[str]) -> Units | None:
    """Return what tells the units of a column apart; None if its values do as they are.

    Args:
        series: the column.
        names: of all columns of the frame.
    """
    if str(series.dtype).startswith(_TEXT):
        return None
    texts = unused(names, "unit")
    text = f"CAST({identifier(texts)} AS VARCHAR)"  # without values DuckDB takes it for numbers
    if getattr(series.dtype, "kind", "O") not in _NUMBERS:
        return Units({texts: _texts(series)}, text)
    # Numbers in DuckDB, which writes a million in the time that Python takes for a few thousand.
    whole, some = _whole(series)
    numbers = unused([*names, texts], "number")
    digits = f"CASE WHEN {identifier(numbers)} < {_NO_NUMBER} THEN CAST({identifier(numbers)} AS VARCHAR) END"
    return Units({numbers: whole, texts: some}, f"coalesce({text}, {digits})")


def _texts(series: pd.Series) -> NDArray[np.object_]:
    if str(series.dtype) == "category":
        texts = np.array([None, *map(canonical, series.cat.categories)], dtype=object)
        taken: NDArray[np.object_] = np.take(texts, series.cat.codes.to_numpy() + 1)
        return taken
    if getattr(series.dtype, "kind", "O") == "M":  # as objects, those at the end of time are not in every zone
        integers, unit = since_1970(series)
        return np.array([of_integer(number, unit) for number in integers.tolist()], dtype=object)
    return np.array([canonical(each) for each in series], dtype=object)


def since_1970(series: pd.Series) -> tuple[NDArray[np.int64], str]:
    """Return the times or dates of a column as integers, and their unit: "D", "s", "ms", "us" or "ns".

    In UTC. A missing one is the least integer, which is no time that can be represented.
    """
    arrow = getattr(series.dtype, "pyarrow_dtype", None)
    if arrow is None:
        return series.astype("int64").to_numpy(), series.dt.unit
    days = str(arrow).startswith("date32")
    integers = series.astype("int32[pyarrow]") if days else series
    plain = integers.astype("int64[pyarrow]").to_numpy(dtype=np.int64, na_value=-(2**63))
    return plain, "D" if days else getattr(arrow, "unit", "ms")


def _whole(series: pd.Series) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
    """Return whole numbers that floating point tells apart, and the texts of all other values."""
    numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
    simple = (np.abs(numbers) < EXACT) & (numbers == np.floor(numbers))
    texts = np.full(len(numbers), None, dtype=object)
    for place in np.flatnonzero(~simple):
        texts[place] = canonical(float(numbers[place]))
    return np.where(simple, numbers, _NO_NUMBER).astype(np.int64), texts
