"""Ranges of days and hours: keys that need not be written one by one.

>>> days("2024-02-28", "2024-03-01").listed()
[datetime.date(2024, 2, 28), datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)]
>>> len(hours("2024-01-31", "2024-01-31 23:00").listed())
24
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final, final

from targetcharge.errors import InvalidParameter
from targetcharge.queries.instants import as_date, as_time

MOST_KEYS: Final = 1_000_000
"""Keys of one question."""

_HOUR: Final = dt.timedelta(hours=1)


@final
@dataclass(frozen=True, slots=True)
class Days:
    """The days from one to another, both among them.

    Attributes:
        start: the first day.
        end: the last.
    """

    start: dt.date
    end: dt.date

    def __post_init__(self) -> None:
        """Refuse a range that ends before it starts, or is too long."""
        _check(self.start, self.end, (self.end - self.start).days + 1)

    def listed(self) -> list[dt.date]:
        """Return the days in order."""
        return [dt.date.fromordinal(day) for day in range(self.start.toordinal(), self.end.toordinal() + 1)]


@final
@dataclass(frozen=True, slots=True)
class Hours:
    """The hours from one to another, both among them.

    Attributes:
        start: when the first hour starts.
        end: when the last one starts.
    """

    start: dt.datetime
    end: dt.datetime

    def __post_init__(self) -> None:
        """Refuse a range that ends before it starts, or is too long."""
        _check(self.start, self.end, (self.end - self.start) // _HOUR + 1)

    def listed(self) -> list[dt.datetime]:
        """Return the hours in order."""
        return [self.start + number * _HOUR for number in range((self.end - self.start) // _HOUR + 1)]


def days(start: dt.date | str, end: dt.date | str) -> Days:
    """Return the days from `start` to `end`, both among them, as keys for a column of dates or times.

    Args:
        start: a date, or text such as '2024-01-31'.
        end: likewise, not before `start`.
    """
    return Days(_day("start", start), _day("end", end))


def hours(start: dt.date | str, end: dt.date | str) -> Hours:
    """Return the hours from the one that starts at `start` to the one that starts at `end`, as keys for times.

    Args:
        start: a time on the hour, or text such as '2024-01-31 08:00'; a date is its midnight.
        end: likewise, not before `start`.
    """
    return Hours(_hour("start", start), _hour("end", end))


def _day(name: str, value: object) -> dt.date:
    day = as_date(value)
    if day is None:
        raise InvalidParameter(name, value, "a date, or text such as '2024-01-31'")
    return day


def _hour(name: str, value: object) -> dt.datetime:
    hour = as_time(value)
    if hour is None or hour.minute or hour.second or hour.microsecond:
        raise InvalidParameter(
            name, value, "a time on the hour without a zone, or text such as '2024-01-31 08:00'"
        )
    return hour


def _check(start: dt.date, end: dt.date, number: int) -> None:
    if end < start:
        raise InvalidParameter("end", end.isoformat(), f"{start.isoformat()} or later, since start is that")
    if number > MOST_KEYS:
        raise InvalidParameter("end", end.isoformat(), f"nearer to start, for at most {MOST_KEYS:,} keys")
