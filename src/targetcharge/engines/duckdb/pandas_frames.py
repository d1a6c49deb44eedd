"""Frames of pandas: columns that are read in the same way whatever type one row has made of them.

A missing value turns whole numbers into floating point, so both are the same kind here, `number`, compared in
double precision. A text turns numbers into objects, and so does a missing value booleans. Columns of objects are
text, and whatever is not text in them is missing, unless their type is declared: what is declared is first written
as text, numbers as floating point writes them, and then read as what it is declared to be. Of a column that nobody
declared units are told apart by one canonical text of each value (`targetcharge.identity`). Times are handed over
as integers: DuckDB refuses a whole table for one that it cannot hold.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from targetcharge.engines.duckdb.types import date_from, identifier, number_text, time_from, unused
from targetcharge.errors import InvalidParameter
from targetcharge.identity import EXACT, canonical, of_integer, of_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pandas as pd
    from numpy.typing import NDArray

    from targetcharge.engines.duckdb.table import Options

    Objects = NDArray[np.object_]
    Arrays = dict[str, NDArray[Any]]

_NUMBERS: Final = "iufb"
"""Kinds of NumPy's types that hold numbers, and booleans."""
_TEXT: Final = ("string", "str")
_OTHER: Final = (
    *("complex", "interval", "period", "timedelta", "duration", "time32", "time64"),
    *("list", "large_list", "fixed_size", "struct", "map", "binary", "large_binary"),
)
"""Types of columns that cannot be asked about; whatever else is not a number or a time is text."""
_NO_NUMBER: Final = 2**62
"""Stands where a value is not one of the simple numbers, which are smaller."""
_WHOLE: Final = 2**63


def columns_of(frame: pd.DataFrame, options: Options) -> tuple[Arrays, dict[str, str], dict[str, str]]:
    """Return arrays that DuckDB can read, the SQL of a value of each, and columns that cannot be asked about.

    Raises:
        InvalidParameter: if there are only such columns.
    """
    arrays: Arrays = {}
    values: dict[str, str] = {}
    other: dict[str, str] = {}
    for name in frame.columns:
        series, raw, kind, dtype = frame[name], identifier(name), _kind(frame[name]), str(frame[name].dtype)
        declared = name in options.declared
        number = f"nullif({raw}, CAST('nan' AS DOUBLE))"
        if kind in _NUMBERS and not (kind == "b" and declared):
            arrays[name] = _doubles(series)
            truth = f"CASE {raw} WHEN 1 THEN TRUE WHEN 0 THEN FALSE END"
            values[name] = number_text(number) if declared else truth if kind == "b" else number
        elif kind == "M":
            arrays[name], values[name] = _times(series, raw)
        elif dtype.startswith(_OTHER):
            other[name] = dtype
        elif dtype.startswith("decimal") and not declared:
            arrays[name], values[name] = _doubles(series), number
        else:
            undeclared = _category_text if dtype == "category" else _text
            arrays[name] = texts(series, written if declared else undeclared)
            values[name] = f"CAST({raw} AS VARCHAR)"  # without values DuckDB takes it for numbers
    if not arrays:
        raise InvalidParameter("source", type(frame), "a table with at least one column that can be asked about")
    return arrays, values, other


def units_of(series: pd.Series, names: Iterable[str]) -> tuple[Arrays, str]:
    """Return what tells the units of a column apart: the SQL of a canonical text.

    With the columns that it is made of, which are none of the frame's: whole numbers, or texts, or both.
    """
    name = unused(names, "unit")
    text = f"CAST({identifier(name)} AS VARCHAR)"  # without values DuckDB takes it for numbers
    if _kind(series) == "M":  # as objects, those at the end of time are not in every zone
        integers, step = _since_1970(series)
        return {name: _each_once(integers, lambda number: of_integer(int(number), step))}, text
    if _kind(series) not in _NUMBERS:
        return {name: texts(series, canonical)}, text
    # Most numbers in DuckDB, which writes a million in the time that Python takes for a few thousand.
    numbers = unused([*names, name], "number")
    doubles = _doubles(series)
    simple = (np.abs(doubles) < EXACT) & (doubles == np.floor(doubles))
    others = np.full(len(doubles), None, dtype=object)
    others[~simple] = _each_once(doubles[~simple], of_number)
    whole = np.where(simple, doubles, _NO_NUMBER).astype(np.int64)
    digits = f"CASE WHEN {identifier(numbers)} < {_NO_NUMBER} THEN CAST({identifier(numbers)} AS VARCHAR) END"
    return {numbers: whole, name: others}, f"coalesce({text}, {digits})"


def _each_once(values: NDArray[Any], text_of: Callable[[Any], str | None]) -> Objects:
    """Return the text of each value, made once for all that are equal."""
    different, places = np.unique(values, return_inverse=True)
    made: Objects = np.array([text_of(value) for value in different.tolist()], dtype=object)
    return made[places]


def _kind(series: pd.Series) -> str:
    """Return the kind of a column's type, as NumPy calls it; O for objects and whatever else there is."""
    return str(getattr(series.dtype, "kind", "O"))


# Numbers and times


def _doubles(series: pd.Series) -> NDArray[np.float64]:
    """Return the numbers of a column in double precision; NaN where they are missing."""
    with np.errstate(all="ignore"):  # that one is too large is nobody's business
        plain = series.astype("Float64") if _kind(series) == "b" else series
        doubles: NDArray[np.float64] = plain.to_numpy(dtype=np.float64, na_value=np.nan)
    return doubles


def _times(series: pd.Series, raw: str) -> tuple[NDArray[np.int64], str]:
    """Return times or dates as integers, and the SQL that makes times or dates of them again."""
    integers, step = _since_1970(series)
    if step == "D":
        return integers, date_from(raw)
    time = time_from(raw, step)
    return integers, f"CAST({time} AS DATE)" if str(series.dtype).startswith("date64") else time


def _since_1970(series: pd.Series) -> tuple[NDArray[np.int64], str]:
    """Return the times or dates of a column as integers, and their step: "D", "s", "ms", "us" or "ns".

    In UTC. A missing one is the least integer, which is no time that can be represented.
    """
    arrow = getattr(series.dtype, "pyarrow_dtype", None)
    if arrow is None:
        return series.astype("int64").to_numpy(), series.dt.unit
    days = str(arrow).startswith("date32")
    integers = series.astype("int32[pyarrow]") if days else series
    plain = integers.astype("int64[pyarrow]").to_numpy(dtype=np.int64, na_value=-(2**63))
    return plain, "D" if days else getattr(arrow, "unit", "ms")


# Texts


def texts(series: pd.Series, text_of: Callable[[object], str | None]) -> Objects:
    """Return the text of each value of a column; None for what has none, or not in UTF-8."""
    dtype = str(series.dtype)
    if dtype == "category":
        codes, values = series.cat.codes.to_numpy(), series.cat.categories
    elif dtype.startswith(_TEXT):
        codes, values = series.factorize()
    else:
        return np.array([_safely(text_of, value) for value in series], dtype=object)
    made = np.array([*(_safely(text_of, value) for value in values), None], dtype=object)
    taken: Objects = made[codes]  # of a missing value, -1
    return taken


def _safely(text_of: Callable[[object], str | None], value: object) -> str | None:
    try:
        text = text_of(value)
        return None if text is None else text.encode().decode()
    except Exception:  # noqa: BLE001 - half of a surrogate pair, a class of the caller's own
        return None


def _category_text(category: object) -> str:
    """Return a category as text: those of an enum are."""
    return str.__str__(category) if isinstance(category, str) else str(category)


def _text(value: object) -> str | None:
    """Return a value of a column that nobody declared, if it is text."""
    if isinstance(value, str):
        return str.__str__(value)
    return value.isoformat() if type(value) is dt.date else None


def written(value: object) -> str | None:
    """Return a value of a declared column as it would be written; None for what cannot be."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | float | Decimal | np.number):
        double = float(value)
        if double != double:
            return None
        return str(int(double)) if abs(double) < _WHOLE and double.is_integer() else repr(double)
    if isinstance(value, dt.datetime):
        plain = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        whole, part = plain.isoformat(sep=" ", timespec="seconds"), f".{plain.microsecond:06d}".rstrip("0")
        return (whole + part).rstrip(".") if plain == plain else None  # as DuckDB writes it; NaT is missing
    return value.decode() if isinstance(value, bytes) else _text(value)
