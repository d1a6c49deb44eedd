"""Values of a column's kind: from what a caller's program holds, and from what is written in a predicate.

>>> from targetcharge.queries.tree import Exact
>>> fit = fitting(Column("price", Kind.NUMBER, Exact(scale=2, low=0, high=99999)))
>>> fit(9.5), fit(Decimal("9.99")), fit(9.999), fit(True)
(950, 999, None, None)
>>> as_time("2024-01-31 08:00")
datetime.datetime(2024, 1, 31, 8, 0)
>>> literal_of(Column("age", Kind.NUMBER, Exact(0, -128, 127)), Part.TEXT, "65")
Traceback (most recent call last):
targetcharge.queries.values.UnfitError: age is a number: write 65, not '65'
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.errors import Setting
from targetcharge.queries.grammar import MOST_SHOWN, Part
from targetcharge.queries.tree import Column, Kind, decimal_text, quoted, text_literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.queries.tree import Exact, Value

NO_TEXT: Final = re.compile("[\x00\ud800-\udfff]")
"""Characters that a text cannot hold: NUL, and halves of characters."""

ISO_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
ISO_TIME: Final = re.compile(
    ISO_DATE.pattern + r"([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)?"
)
DAYS: Final = np.dtype("datetime64[D]")
"""The type of numpy's dates."""

LARGEST: Final = 2**63
"""An exact literal is nearer to 0 than this."""
MOST_DIGITS: Final = 38
"""Significant digits of an exact literal."""
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
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


def as_time(value: object) -> dt.datetime | None:
    """Return a time without a zone from a time, a date or ISO text, and None from anything else."""
    if isinstance(value, str):
        with suppress(ValueError):  # the calendar has no such day
            return dt.datetime.fromisoformat(str.__str__(value)) if ISO_TIME.fullmatch(value) else None
        return None
    if isinstance(value, dt.datetime):
        return _own_class(value)
    return dt.datetime(value.year, value.month, value.day) if isinstance(value, dt.date) else None


def as_date(value: object) -> dt.date | None:
    """Return a date from a date, a midnight or the ISO text of a date, and None from anything else."""
    if type(value) is dt.date:
        return value
    if isinstance(value, str):
        with suppress(ValueError):
            return dt.date.fromisoformat(str.__str__(value)) if ISO_DATE.fullmatch(value) else None
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
            steps = int(value) * factor
        elif isinstance(value, float | Decimal):
            steps = _decimal_steps(value, exact.scale)
        else:
            return None
        return steps if steps is not None and low <= steps <= high else None

    return fit


def _decimal_steps(value: float | Decimal, scale: int) -> int | None:
    """Return a number in steps; of a float, the shortest decimal number that is read as it."""
    number = Decimal(repr(float(value))) if isinstance(value, float) else value
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        return None
    try:
        return int(number.scaleb(scale, _EXACTLY).to_integral_exact(context=_EXACTLY))
    except decimal.DecimalException:
        return None


# Literals of predicates


class UnfitError(Exception):
    """A value is not one of its column's. Internal: it says what to write instead, to those who know where."""


@final
@dataclass(frozen=True, slots=True)
class Literal:
    """A literal of a column.

    Attributes:
        text: a number with its sign; what a text's quotes hold; TRUE or FALSE.
        value: of the column's kind. For exact numbers that is a fraction, in steps of 10^-scale: the column need
            not have such a value.
    """

    text: str
    value: Value | Fraction


def literal_of(column: Column, part: Part, text: str) -> Literal:
    """Return what was written beside a column, a NUMBER, TEXT or TRUTH, as a value of its kind.

    Raises:
        UnfitError: if it is not of that kind.
    """
    if part is not {Kind.NUMBER: Part.NUMBER, Kind.BOOLEAN: Part.TRUTH}.get(column.kind, Part.TEXT):
        raise UnfitError(*_mismatch(column, part, text))
    match column.kind:
        case Kind.NUMBER:
            return Literal(text, _exactly(text, column.exact) if column.exact else _double(text))
        case Kind.TEXT:
            return Literal(text, text)
        case Kind.DATE | Kind.TIME:
            return Literal(text, _instant(text, column))
        case Kind.BOOLEAN:
            return Literal(text, text == "TRUE")


def read_as(column: Column, kind: Kind) -> tuple[str, Setting]:
    """Return how a column of text is read as what it may hold, as the parts of an error's sentence."""
    return f": if it holds {kind}s, open the table with ", Setting("types", {column.name: str(kind)})


def _mismatch(column: Column, part: Part, text: str) -> tuple[str | Setting, ...]:
    name, short = quoted(column.name), len(text) <= MOST_SHOWN
    if column.kind is not Kind.TEXT:
        return (_mistaken(column, part, text),)
    wanted = text_literal(text) if short and part is Part.NUMBER else "it in single quotes, such as 'flu'"
    as_text = f"; to compare it as text, write {wanted}{f', not {text}' if short else ''}"
    return f"{name} is text", *read_as(column, Kind.NUMBER if part is Part.NUMBER else Kind.BOOLEAN), as_text


def _mistaken(column: Column, part: Part, text: str) -> str:
    name, short = quoted(column.name), len(text) <= MOST_SHOWN
    if column.kind is Kind.NUMBER:
        if part is Part.TEXT and short and _NUMBER.fullmatch(text):
            return f"{name} is a number: write {text}, not {text_literal(text)}"
        return f"{name} is a number: write one without quotes, such as 65"
    if column.kind is Kind.BOOLEAN:
        return f"{name} is a boolean: write TRUE or FALSE, without quotes"
    return _not_iso(column)


def _not_iso(column: Column) -> str:
    name = quoted(column.name)
    if column.kind is Kind.DATE:
        return f"{name} is a date: write one as text in the form '2024-01-31'"
    return f"{name} is a time: write one as text in the form '2024-01-31 08:00:00' or '2024-01-31', without a zone"


def _instant(text: str, column: Column) -> dt.date | dt.datetime:
    instant = as_date(text) if column.kind is Kind.DATE else as_time(text)
    if instant is None:
        formed = (ISO_DATE if column.kind is Kind.DATE else ISO_TIME).fullmatch(text)
        raise UnfitError("the calendar has no such day" if formed else _not_iso(column))
    return instant


def _double(text: str) -> float:
    """Return a decimal number in double precision, 0 without a sign."""
    number = float(text)
    if not math.isfinite(number):
        msg = "this number is beyond the range of numbers"
        raise UnfitError(msg)
    if number == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        msg = "this number is too small to tell from 0: write 0"
        raise UnfitError(msg)
    return number + 0.0


def _exactly(text: str, exact: Exact) -> Fraction:
    """Return a decimal number as it is, in steps of 10^-scale."""
    if _double(text) == 0:  # with an exponent that would take long to write out, perhaps
        return Fraction(0)
    number = Decimal(text)
    if len(number.as_tuple().digits) > MOST_DIGITS:
        msg = f"this number has more than {MOST_DIGITS} digits"
        raise UnfitError(msg)
    if abs(number) >= LARGEST:
        msg = f"this number is too large: write one between -{LARGEST} and {LARGEST}"
        raise UnfitError(msg)
    factor: int = 10**exact.scale
    return Fraction(number) * factor
