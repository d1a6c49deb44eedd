"""Columns of pandas, read in the same way whatever type one row has made of them.

A missing id turns whole numbers into floating point, a text turns them into objects. What is asked about, and who
is who, must not change for all other rows. So of a column that nobody declared units are told apart by one
canonical text of each value (`targetcharge.identity`); and what is declared is first written as text, numbers as
floating point writes them, and then read as what it is declared to be.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from targetcharge.engines.duckdb.quoting import identifier, unused
from targetcharge.engines.duckdb.types import number_text
from targetcharge.identity import EXACT, canonical, of_integer, of_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pandas as pd
    from numpy.typing import NDArray

    Objects = NDArray[np.object_]

NUMBERS: Final = "iufb"
"""Kinds of NumPy's types that hold numbers, and booleans."""
_TEXT: Final = ("string", "str")
_NO_NUMBER: Final = 2**62
"""Stands where a value is not one of the simple numbers, which are smaller."""
_WHOLE: Final = 2**63


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


def units_of(series: pd.Series, names: Iterable[str]) -> Units:
    """Return what tells the units of a column apart.

    Args:
        series: the column.
        names: of all columns of the frame.
    """
    texts = unused(names, "unit")
    text = f"CAST({identifier(texts)} AS VARCHAR)"  # without values DuckDB takes it for numbers
    if kind_of(series) not in NUMBERS:
        return Units({texts: _canonical_texts(series)}, text)
    # Most numbers in DuckDB, which writes a million in the time that Python takes for a few thousand.
    numbers = unused([*names, texts], "number")
    doubles = doubles_of(series)
    simple = (np.abs(doubles) < EXACT) & (doubles == np.floor(doubles))
    others = np.full(len(doubles), None, dtype=object)
    others[~simple] = _each_once(doubles[~simple], of_number)
    whole = np.where(simple, doubles, _NO_NUMBER).astype(np.int64)
    digits = f"CASE WHEN {identifier(numbers)} < {_NO_NUMBER} THEN CAST({identifier(numbers)} AS VARCHAR) END"
    return Units({numbers: whole, texts: others}, f"coalesce({text}, {digits})")


def _canonical_texts(series: pd.Series) -> Objects:
    if str(series.dtype) == "category":
        return _of_categories(series, canonical)
    if kind_of(series) == "M":  # as objects, those at the end of time are not in every zone
        integers, unit = since_1970(series)
        return _each_once(integers, lambda number: of_integer(int(number), unit))
    if str(series.dtype).startswith(_TEXT):
        codes, values = series.factorize()
        texts = np.array([*map(canonical, values), None], dtype=object)
        taken: Objects = texts[codes]
        return taken
    return np.array([canonical(each) for each in series], dtype=object)


def _each_once(values: NDArray[Any], text: Callable[[Any], str | None]) -> Objects:
    """Return the text of each value, made once for all that are equal."""
    different, places = np.unique(values, return_inverse=True)
    texts: Objects = np.array([text(each) for each in different.tolist()], dtype=object)
    return texts[places]


def kind_of(series: pd.Series) -> str:
    """Return the kind of a column's type, as NumPy calls it; O for objects and whatever else there is."""
    return str(getattr(series.dtype, "kind", "O"))


def doubles_of(series: pd.Series) -> NDArray[np.float64]:
    """Return the numbers of a column in double precision; NaN where they are missing."""
    with np.errstate(all="ignore"):  # that one is too large is nobody's business
        plain = series.astype("Float64") if kind_of(series) == "b" else series
        doubles: NDArray[np.float64] = plain.to_numpy(dtype=np.float64, na_value=np.nan)
    return doubles


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


def texts_of(series: pd.Series) -> Objects:
    """Return the texts of a column that nobody declared, and None for whatever is none."""
    return _of_categories(series, _name) if str(series.dtype) == "category" else _mapped(series, _text)


def written(series: pd.Series) -> Objects:
    """Return each value of a declared column as it would be written; None for what cannot be."""
    return _of_categories(series, _written) if str(series.dtype) == "category" else _mapped(series, _written)


def number_written(raw: str) -> str:
    """Return the SQL of what `written` gives for the numbers of a column, from doubles."""
    return number_text(f"nullif({raw}, CAST('nan' AS DOUBLE))")


def _mapped(series: pd.Series, text: Callable[[object], str | None]) -> Objects:
    return np.array([_safely(text, each) for each in series], dtype=object)


def _of_categories(series: pd.Series, text: Callable[[object], str | None]) -> Objects:
    texts = np.array([*(_safely(text, each) for each in series.cat.categories), None], dtype=object)
    taken: Objects = texts[series.cat.codes.to_numpy()]
    return taken


def _safely(text: Callable[[object], str | None], value: object) -> str | None:
    try:
        found = text(value)
        return None if found is None else found.encode().decode()
    except Exception:  # noqa: BLE001 - half of a surrogate pair, a class of the caller's own
        return None


def _name(category: object) -> str:
    """Return a category as text: those of an enum are."""
    return str.__str__(category) if isinstance(category, str) else str(category)


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return str.__str__(value)
    return value.isoformat() if type(value) is dt.date else None


def _written(value: object) -> str | None:
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | float | Decimal | np.number):
        return _number(float(value))
    if isinstance(value, dt.datetime):
        plain = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        whole, part = plain.isoformat(sep=" ", timespec="seconds"), f".{plain.microsecond:06d}".rstrip("0")
        return (whole + part).rstrip(".") if plain == plain else None  # as DuckDB writes it; NaT is missing
    if isinstance(value, bytes):
        return value.decode()
    return _text(value)


def _number(double: float) -> str | None:
    if double != double:
        return None
    return str(int(double)) if abs(double) < _WHOLE and double.is_integer() else repr(double)
