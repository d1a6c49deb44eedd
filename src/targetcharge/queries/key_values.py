"""Values of keys: what a caller's program holds, as a value of a column's kind.

>>> from targetcharge.queries.columns import Exact
>>> fit = fitting(Column("price", Kind.NUMBER, Exact(scale=2, low=0, high=99999)))
>>> fit(9.5), fit(Decimal("9.99")), fit(9.999), fit(True)
(950, 999, None, None)
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge.queries.columns import Column, Kind
from targetcharge.queries.instants import ISO_DATE, as_date, as_time
from targetcharge.queries.parsing import NO_TEXT
from targetcharge.queries.predicates import decimal_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.queries.columns import Exact, Value

DAYS: Final = np.dtype("datetime64[D]")
"""Of numpy's dates."""

_DATE_LENGTH: Final = len("2024-01-31")
_MOST_DIGITS: Final = 100
_EXACTLY: Final = decimal.Context(prec=_MOST_DIGITS, traps=[decimal.Inexact, decimal.InvalidOperation])


def fitting(column: Column) -> Callable[[object], Value | None]:
    """Return the function that makes a key a value of the column, or None of one that is not of its kind."""
    match column.kind:
        case Kind.NUMBER:
            return _grid(column.exact) if column.exact else _floating
        case Kind.TEXT:
            return _text
        case Kind.DATE:
            return as_date
        case Kind.TIME:
            return _time
        case Kind.BOOLEAN:
            return _boolean


def expected(column: Column) -> str:
    """Return what a key of the column must be, for an error's text."""
    match column.kind:
        case Kind.NUMBER if column.exact:
            exact = column.exact
            low, high, step = (decimal_text(units, exact.scale) for units in (exact.low, exact.high, 1))
            return f"a number from {low} to {high} in steps of {step}, as {column.name} is"
        case Kind.NUMBER:
            return f"a finite number in double precision, as {column.name} is"
        case Kind.TEXT:
            return f"text, as {column.name} is"
        case Kind.DATE:
            return f"a date, as {column.name} is: a datetime.date, or text such as '2024-01-31'"
        case Kind.TIME:
            return f"a time without a zone, as {column.name} is: a datetime, or text such as '2024-01-31 08:00'"
        case Kind.BOOLEAN:
            return f"True or False, as {column.name} is"


def plain(key: np.generic) -> object:
    """Return one of numpy's values as Python's own; a time with nanoseconds stays as it is."""
    if isinstance(key, np.datetime64) and key.dtype != DAYS:
        time = key.astype("datetime64[us]")
        return time.item() if time == key else key
    return key.item()


def is_date(key: object) -> bool:
    """Return whether a key is a date or the text of one, and not a time."""
    if isinstance(key, str):
        return len(key) == _DATE_LENGTH and ISO_DATE.fullmatch(key) is not None
    return isinstance(key, dt.date) and not isinstance(key, dt.datetime)


def _text(key: object) -> str | None:
    return str.__str__(key) if isinstance(key, str) and not NO_TEXT.search(key) else None


def _boolean(key: object) -> bool | None:
    return key if isinstance(key, bool) else None


def _time(key: object) -> dt.datetime | None:
    return None if is_date(key) else as_time(key)


def _floating(key: object) -> float | None:
    if isinstance(key, bool) or not isinstance(key, int | float):
        return None
    try:
        number = float(key) + 0.0
    except OverflowError:
        return None
    return number if math.isfinite(number) and number == key else None


def _grid(exact: Exact) -> Callable[[object], int | None]:
    """Return the function that puts a number in units of 10^-scale, and None of one that is not on the grid."""
    factor, low, high = 10**exact.scale, exact.low, exact.high

    def fit(key: object) -> int | None:
        if isinstance(key, int) and not isinstance(key, bool):
            units = int(key) * factor
        elif isinstance(key, float | Decimal):
            units = _decimal_units(key, exact.scale)
        else:
            return None
        return units if units is not None and low <= units <= high else None

    return fit


def _decimal_units(key: float | Decimal, scale: int) -> int | None:
    """Return a number in units; of a float, the shortest decimal number that is read as it."""
    number = Decimal(repr(float(key))) if isinstance(key, float) else key
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        return None
    try:
        return int(number.scaleb(scale, _EXACTLY).to_integral_exact(context=_EXACTLY))
    except decimal.DecimalException:
        return None
