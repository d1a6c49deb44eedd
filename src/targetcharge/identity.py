"""Identity: one canonical text for each value that tells people apart, however it is typed or written.

A person whose id is written in two ways must not count as two. Numbers are the same by value, times by instant,
and text that reads as a number or a time is that number or time; other text is as it is. To take two people for
one is safe: who protects both protects each of them. So numbers are told apart as well as floating point can tell
them: one person's value may turn a column of whole numbers into that, and must not change who the others are.

>>> canonical(1), canonical(1.0), canonical("1"), canonical(" 01"), canonical(Decimal("1.00")), canonical(True)
('1', '1', '1', '1', '1', '1')
>>> canonical("ann"), canonical(None), canonical(float("nan")), canonical([1])
('ann', None, None, None)
>>> noon = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
>>> later = noon.astimezone(dt.timezone(dt.timedelta(hours=5)))
>>> canonical(noon) == canonical(later) == canonical("2024-01-01T12:00")
True
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Final, SupportsFloat, final
from uuid import UUID

import numpy as np

_EPOCH: Final = dt.datetime(1970, 1, 1)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
FIRST_MICROSECOND: Final = -62_135_596_800_000_000
"""The first microsecond of year 1, counted from 1970: what comes before it cannot be represented."""
LAST_MICROSECOND: Final = 253_402_300_799_999_999
"""The last microsecond of year 9999."""

EXACT: Final = 2**53
"""Up to here floating-point numbers are exact integers."""
_NUMBER: Final = re.compile(r"\s*[+-]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)([eE][+-]?\d+)?\s*", re.ASCII)
_WORDS: Final = {
    "true": "1",
    "false": "0",  # what files and arrays of text make of booleans, which are numbers elsewhere
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), "inf"),
    **dict.fromkeys(("-inf", "-infinity"), "-inf"),
}
_TIME: Final = re.compile(
    r"\s*(\d{4}-\d\d-\d\d)(?:[ T](\d\d(?::\d\d(?::\d\d)?)?)(?:\.(\d{1,9}))?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?\s*",
    re.ASCII,
)
_PER_MICROSECOND: Final = 1000
_MOST: Final = 2**63 - 2
"""Beyond it integers of times stand for what is missing, in pandas, or infinite, in DuckDB."""
_NANOSECONDS: Final = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "D": 24 * 3600 * 10**9,
}
_FINER: Final = ("ps", "fs", "as")


class Way(Enum):
    """A way to tell units apart."""

    EQUAL = "equal"
    BY_VALUE = "by value"
    NANOSECONDS = "nanoseconds"
    READ_AS = "read as"
    TEXT_OF = "text of"


_IN_WORDS: Final = {
    Way.EQUAL: "",
    Way.BY_VALUE: (
        "however typed: 1, 1.0 and '1' are one unit, and long numbers that floating point takes for one"
    ),
    Way.NANOSECONDS: "to the nanosecond",
    Way.READ_AS: "read as {}; what is none, as it is written",
    Way.TEXT_OF: "as the text of a {}",
}


@final
@dataclass(frozen=True)
class Identity:
    """How units are told apart: only with the same is a unit of one table the unit of another.

    Attributes:
        way: in which they are.
        kind: what their column is read as, or whose text it is; empty for other ways.
    """

    way: Way = Way.EQUAL
    kind: str = ""

    @property
    def words(self) -> str:
        """Return it in words; empty if equal values are one unit."""
        return _IN_WORDS[self.way].format(self.kind)


EQUAL: Final = Identity()


def canonical(value: object) -> str | None:
    """Return the text of a value that is the same for all writings of it; None if it is missing, or tells nothing.

    Text, bytes, numbers, booleans, dates, times and UUIDs tell people apart. It never raises: whether it did would
    depend on the value.
    """
    try:
        if isinstance(value, str):
            return _of_text(str.__str__(value))
        return of_number(value) if isinstance(value, int | float) else _of_other(value)
    except Exception:  # noqa: BLE001 - a class of the caller's own may do anything
        return None


def of_number(number: SupportsFloat) -> str | None:
    """Return the canonical text of a number: in double precision if it is whole, else in single precision.

    So stored, it is the same whatever column it was in.
    """
    try:
        double = float(number)
    except OverflowError:  # a whole number or a fraction beyond floating point
        return "inf" if number > 0 else "-inf"  # type: ignore[operator]
    if not math.isfinite(double):
        return None if math.isnan(double) else str(double)
    single = double if double.is_integer() else float(np.float32(double))
    return str(int(single)) if single.is_integer() else str(single)


def of_microseconds(microseconds: int, nanoseconds: int = 0) -> str | None:
    """Return the canonical text of a time, by its microseconds since 1970 and what is left in nanoseconds."""
    if not FIRST_MICROSECOND <= microseconds <= LAST_MICROSECOND:
        return None
    return f"@{microseconds}.{nanoseconds}" if nanoseconds else f"@{microseconds}"


def of_integer(number: int, step: str) -> str | None:
    """Return the canonical text of a time that is a number of days or seconds since 1970, or of parts of them."""
    if abs(number) > _MOST:
        return None
    return of_microseconds(*divmod(number * _NANOSECONDS[step], _PER_MICROSECOND))


def _of_text(text: str) -> str:
    text = text.rstrip("\0")  # as NumPy does
    word = _WORDS.get(text.strip().lower())
    if word is not None:
        return word
    if text[:1].isalpha():
        return _unicode(text)
    if _NUMBER.fullmatch(text):
        return of_number(float(text.replace("_", ""))) or _unicode(text)
    if time := _TIME.fullmatch(text):
        return _of_written_time(*time.groups()) or _unicode(text)
    return _unicode(text)


def _unicode(text: str) -> str:
    """Return a text without halves of characters, which no other program takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _of_other(value: object) -> str | None:
    match value:
        case dt.date():
            return _of_date(value)
        case np.datetime64():
            return _of_numpy_time(value)
        case np.generic():
            return canonical(float(value) if isinstance(value, np.floating) else value.item())
        case Decimal() | Fraction():
            return of_number(value)
        case bytes():
            return _of_text(value.decode("utf-8", "replace"))
        case UUID():
            return str(value)
    return None


def _of_date(value: dt.date) -> str | None:
    """Return the instant of a time, or of a day's first moment; without a zone it is in UTC."""
    if not isinstance(value, dt.datetime):
        return of_microseconds((dt.datetime(value.year, value.month, value.day) - _EPOCH) // _MICROSECOND)
    if value != value:  # pandas' NaT
        return None
    offset = value.utcoffset() or dt.timedelta()
    nanoseconds = int(getattr(value, "nanosecond", 0))
    plain = dt.datetime.combine(dt.date(value.year, value.month, value.day), value.time())
    return of_microseconds((plain - _EPOCH - offset) // _MICROSECOND, nanoseconds)


def _of_numpy_time(value: np.datetime64) -> str | None:
    if np.isnat(value):
        return None
    step, times = np.datetime_data(value.dtype)
    if step not in _NANOSECONDS:
        step, times = ("ns" if step in _FINER else "D"), 1
        value = value.astype(f"datetime64[{step}]")
    return of_integer(int(value.astype(np.int64)) * times, step)


def _of_written_time(day: str, clock: str | None, fraction: str | None, zone: str | None) -> str | None:
    nanoseconds = int((fraction or "").ljust(9, "0"))
    try:
        time = dt.datetime.fromisoformat(f"{day} {clock or '00'}{zone or ''}")
    except ValueError:  # no such day
        return None
    offset = time.utcoffset() or dt.timedelta()
    microseconds = (time.replace(tzinfo=None) - _EPOCH - offset) // _MICROSECOND
    return of_microseconds(microseconds + nanoseconds // _PER_MICROSECOND, nanoseconds % _PER_MICROSECOND)
