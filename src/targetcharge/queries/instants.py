"""Dates and times: Python's own, without zones, from ISO text and from the classes of other libraries.

>>> iso_time("2024-01-31 08:00")
datetime.datetime(2024, 1, 31, 8, 0)
>>> print(as_time("31.1.2024"))
None
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

ISO_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
ISO_TIME: Final = re.compile(
    ISO_DATE.pattern + r"([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)?"
)


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
        return _plain(value)
    return dt.datetime(value.year, value.month, value.day) if isinstance(value, dt.date) else None


def as_date(value: object) -> dt.date | None:
    """Return a date from a date, a midnight or the ISO text of a date, and None from anything else."""
    if type(value) is dt.date:
        return value
    if isinstance(value, str) and not ISO_DATE.fullmatch(value):
        return None
    time = as_time(value)
    return None if time is None or time.time() != dt.time() else time.date()


def _plain(value: dt.datetime) -> dt.datetime | None:
    """Return a time in Python's own class, and None if it has a zone, nanoseconds or no value (pandas' NaT)."""
    if value.tzinfo is not None:
        return None
    if type(value) is dt.datetime:
        return value.replace(fold=0) if value.fold else value
    nanoseconds: int = getattr(value, "nanosecond", 0)
    if value != value or nanoseconds:  # NaT is not equal to itself
        return None
    return dt.datetime.combine(dt.date(value.year, value.month, value.day), dt.datetime.time(value))
