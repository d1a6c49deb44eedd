"""Values of a column's kind: from what a caller's program holds, and from ISO text.

>>> from targetcharge.queries.columns import Exact
>>> fit = fitting(Column("price", Kind.NUMBER, Exact(scale=2, low=0, high=99999)))
>>> fit(9.5), fit(Decimal("9.99")), fit(9.999), fit(True)
(950, 999, None, None)
>>> iso_time("2024-01-31 08:00")
datetime.datetime(2024, 1, 31, 8, 0)
>>> print(as_time("31.1.2024"))
None
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge.queries.columns import Column, Kind
from targetcharge.queries.predicates import decimal_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.queries.columns import Exact, Value

NO_TEXT: Final = re.compile("[\x00\ud800-\udfff]")
"""Characters that a text cannot hold: NUL, and halves of characters."""

ISO_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
ISO_TIME: Final = re.compile(
    ISO_DATE.pattern + r"([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)?"
)
DAYS: Final = np.dtype("datetime64[D]")
"""The type of numpy's dates."""

_DATE_LENGTH: Final = len("2024-01-31")
_MOST_DIGITS: Final = 100
_EXACTLY: Final = decimal.Context(prec=_MOST_DIGITS, traps=[decimal.Inexact, decimal.InvalidOperation])


def fitting(column: Column) -> Callable[[object], Value | None]:
    """Return the function that makes a Python value one of the column's, and None of what is not of its kind."""
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


def in_words(column: Column) -> str:
    """Return what a column is, so that different ones have different words."""
    if column.exact is not None:
        exact = column.exact
        low, high, step = (decimal_text(steps, exact.scale) for steps in (exact.low, exact.high, 1))
        return f"a number from {low} to {high} in steps of {step}"
    return {Kind.NUMBER: "a floating-point number", Kind.TEXT: "text"}.get(column.kind, f"a {column.kind}")


def expected(column: Column) -> str:
    """Return what a value of the column must be, for an error's text."""
    match column.kind:
        case Kind.NUMBER if column.exact is None:
            return f"a finite number in double precision, as {column.name} is"
        case Kind.NUMBER | Kind.TEXT:
            return f"{in_words(column)}, as {column.name} is"
        case Kind.DATE:
            return f"a date, as {column.name} is: a datetime.date, or text such as '2024-01-31'"
        case Kind.TIME:
            return f"a time without a zone, as {column.name} is: a datetime, or text such as '2024-01-31 08:00'"
        case Kind.BOOLEAN:
            return f"True or False, as {column.name} is"


def plain(value: object) -> object:
    """Return one of numpy's values as Python's own, anything else as it is; a time with nanoseconds stays, too."""
    if not isinstance(value, np.generic):
        return value
    if isinstance(value, np.datetime64) and value.dtype != DAYS:
        time = value.astype("datetime64[us]")
        return time.item() if time == value else value
    return value.item()


# Dates and times


def iso_date(text: str) -> dt.date:
    """Return the date of a text like 2024-01-31.

    Raises:
        ValueError: if it has another form, or the calendar no such day.
    """
    if not ISO_DATE.fullmatch(text):
        raise ValueError
    return dt.date.fromisoformat(text)


def iso_time(text: str) -> dt.datetime:
    """Return the time of a text like 2024-01-31 08:00, with seconds or without; a date is its midnight.

    Raises:
        ValueError: if it has another form, or the calendar no such day.
    """
    if not ISO_TIME.fullmatch(text):
        raise ValueError
    return dt.datetime.fromisoformat(text)


def as_time(value: object) -> dt.datetime | None:
    """Return a time without a zone from a time, a date or ISO text, and None from anything else."""
    if isinstance(value, str):
        try:
            return iso_time(str.__str__(value))
        except ValueError:
            return None
    if isinstance(value, dt.datetime):
        return _own_class(value)
    return dt.datetime(value.year, value.month, value.day) if isinstance(value, dt.date) else None


def as_date(value: object) -> dt.date | None:
    """Return a date from a date, a midnight or the ISO text of a date, and None from anything else."""
    if type(value) is dt.date:
        return value
    if isinstance(value, str) and not ISO_DATE.fullmatch(value):
        return None
    time = as_time(value)
    return None if time is None or time.time() != dt.time() else time.date()


def is_date(value: object) -> bool:
    """Return whether a value is a date or the text of one, and not a time."""
    if isinstance(value, str):
        return len(value) == _DATE_LENGTH and ISO_DATE.fullmatch(value) is not None
    return isinstance(value, dt.date) and not isinstance(value, dt.datetime)


def _own_class(value: dt.datetime) -> dt.datetime | None:
    """Return a time in Python's own class, and None if it has a zone, nanoseconds or no value (pandas' NaT)."""
    if value.tzinfo is not None:
        return None
    if type(value) is dt.datetime:
        return value.replace(fold=0) if value.fold else value
    nanoseconds: int = getattr(value, "nanosecond", 0)
    if value != value or nanoseconds:  # NaT is not equal to itself
        return None
    return dt.datetime.combine(dt.date(value.year, value.month, value.day), dt.datetime.time(value))


def _time(value: object) -> dt.datetime | None:
    return None if is_date(value) else as_time(value)


# Texts, booleans, numbers


def _text(value: object) -> str | None:
    return str.__str__(value) if isinstance(value, str) and not NO_TEXT.search(value) else None


def _boolean(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _floating(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        double = float(value) + 0.0
    except OverflowError:
        return None
    return double if math.isfinite(double) and double == value else None


def _grid(exact: Exact) -> Callable[[object], int | None]:
    """Return the function that puts a number in steps of 10^-scale, and None of one that is not on the grid."""
    factor, low, high = 10**exact.scale, exact.low, exact.high

    def fit(value: object) -> int | None:
        if isinstance(value, int) and not isinstance(value, bool):
            units = int(value) * factor
        elif isinstance(value, float | Decimal):
            units = _decimal_units(value, exact.scale)
        else:
            return None
        return units if units is not None and low <= units <= high else None

    return fit


def _decimal_units(value: float | Decimal, scale: int) -> int | None:
    """Return a number in units; of a float, the shortest decimal number that is read as it."""
    number = Decimal(repr(float(value))) if isinstance(value, float) else value
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        return None
    try:
        return int(number.scaleb(scale, _EXACTLY).to_integral_exact(context=_EXACTLY))
    except decimal.DecimalException:
        return None
