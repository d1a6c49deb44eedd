"""Keys: the groups of a batch, declared by the caller, so that their number tells nothing about the data.

A caller declares them (`declare`), answers carry them as plain values (`Keys.published`), and from those they are
made again (`from_published`).

>>> from targetcharge.queries.tree import Exact
>>> schema = {"at": Column("at", Kind.TIME), "age": Column("age", Kind.NUMBER, Exact(0, 0, 255))}
>>> leap = declare("at", ["2024-02-29"], schema)
>>> str(leap.where(0))
"at >= '2024-02-29 00:00:00' AND at <= '2024-02-29 23:59:59.999999'"
>>> leap.published(), from_published(["at"], ["2024-02-29"], "day", schema) == leap
(('2024-02-29',), True)
>>> declare("age", [30, 300], schema)
Traceback (most recent call last):
targetcharge.errors.InvalidKey: keys[1] is 300; it must be a number from 0 to 255 in steps of 1, as age is
"""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.errors import InvalidKey, InvalidParameter, Parameter
from targetcharge.outcomes import MISSING
from targetcharge.queries.tree import All, Column, Compare, Kind, Missing, Operator, column_of, decimal_text
from targetcharge.queries.values import DAYS, as_date, as_time, expected, fitting, is_date, plain, read_as

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from targetcharge.queries.tree import Predicate, Value

MOST_KEYS: Final = 1_000_000
"""Keys of one question."""

_LIST: Final = "a list of keys, or a range of days or hours"
_PAIR: Final = "a pair, with a value for each column"
_READERS: Final = ("to_pylist", "to_list", "tolist")
"""How Arrow, polars, pandas and numpy make a list."""
_LIKE_NULL: Final = frozenset(("NULL", "NAN", "NAT"))
"""How what may stand for a missing value prints, in capitals; only None is taken for one."""


class Period(StrEnum):
    """How much of a time is one key."""

    DAY = "day"
    HOUR = "hour"


_LENGTHS: Final = {Period.DAY: dt.timedelta(days=1), Period.HOUR: dt.timedelta(hours=1)}
_MICROSECOND: Final = dt.timedelta(microseconds=1)


@final
@dataclass(frozen=True, slots=True)
class Keys:
    """Groups of rows: those whose columns have a declared value, or none.

    Attributes:
        columns: one or two.
        values: one for each column, in literals of its kind, None for rows without a value; each once.
        period: if the only column is a time, the part of it that is compared with the values: its day (a date) or
            its hour (a time on the hour).
    """

    columns: tuple[Column, ...]
    values: tuple[tuple[Value | None, ...], ...]
    period: Period | None = None

    @property
    def nullable(self) -> tuple[bool, ...]:
        """Return for each column whether a key has no value of it."""
        return tuple(any(key[place] is None for key in self.values) for place, _ in enumerate(self.columns))

    def at(self, indices: Iterable[int]) -> Keys:
        """Return only the keys at these places."""
        return replace(self, values=tuple(self.values[index] for index in indices))

    def where(self, index: int) -> Predicate:
        """Return the predicate that holds for the rows of one key, and no others."""
        parts = [self._has(column, value) for column, value in zip(self.columns, self.values[index], strict=True)]
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _has(self, column: Column, value: Value | None) -> Predicate:
        if value is None:
            return Missing(column)
        if self.period is not None:
            return _within(column, value, self.period)
        return Compare(column, Operator.EQ, value)

    def published(self) -> tuple[object, ...]:
        """Return the keys as answers carry them: a plain value or a pair each, dates and times as ISO text.

        No value is MISSING.
        """
        if len(self.columns) == 1:
            return tuple(_published(self.columns[0], value) for (value,) in self.values)
        return tuple(tuple(map(_published, self.columns, pair)) for pair in self.values)


def _within(column: Column, key: Value, period: Period) -> Predicate:
    """Return whether a time is in a day or an hour, up to its last microsecond: the calendar may end with it."""
    start = as_time(key) if isinstance(key, dt.date) else None
    if start is None:
        msg = "a key with a period is a date or a time"
        raise TypeError(msg)
    last = start + (_LENGTHS[period] - _MICROSECOND)
    return All((Compare(column, Operator.GE, start), Compare(column, Operator.LE, last)))


def _published(column: Column, value: Value | None) -> object:
    if value is None:
        return MISSING
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, dt.date):
        return value.isoformat()
    if column.exact is not None and column.exact.scale and isinstance(value, int):
        exact = Fraction(value, 10**column.exact.scale)
        near = float(exact)
        return near if Fraction(repr(near)) == exact else decimal_text(value, column.exact.scale)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def from_published(
    by: Sequence[str], keys: Sequence[object], period: str | None, schema: Mapping[str, Column]
) -> Keys:
    """Return the keys that were published as these plain values.

    Raises:
        InvalidParameter: if a column is not there, or a value is none of its column's.
    """
    columns = tuple(column_of(name, schema, "by") for name in by)
    pairs: list[Sequence[object]] = []
    for key in keys:
        pair = key if len(columns) > 1 else (key,)
        if not isinstance(pair, tuple | list) or len(pair) != len(columns):
            raise InvalidParameter("key", key, _PAIR)
        pairs.append(pair)
    kinds = [Column(column.name, Kind.DATE) if period == Period.DAY else column for column in columns]
    values = [_read([pair[place] for pair in pairs], column) for place, column in enumerate(kinds)]
    return Keys(columns, tuple(zip(*values, strict=True)), None if period is None else Period(period))


def _read(published: Sequence[object], column: Column) -> list[Value | None]:
    fit, is_number = fitting(column), column.kind is Kind.NUMBER
    values: list[Value | None] = []
    for plain_value in published:
        if plain_value is MISSING:
            values.append(None)
            continue
        value = None
        with suppress(InvalidOperation):
            value = fit(Decimal(plain_value) if is_number and isinstance(plain_value, str) else plain_value)
        if value is None:
            raise InvalidParameter("key", plain_value, expected(column))
        values.append(value)
    return values


# Ranges


@final
@dataclass(frozen=True, slots=True)
class KeyRange:
    """All days, or all hours, from one to another, both among them: keys that need not be written one by one.

    Attributes:
        period: what each of them is.
        start: the first; of hours, when it starts.
        end: the last.
    """

    period: Period
    start: dt.date
    end: dt.date

    def __post_init__(self) -> None:
        """Refuse a range that ends before it starts, or is too long."""
        start, end = self.start.isoformat(), self.end.isoformat()
        if self.end < self.start:
            raise InvalidParameter("end", end, f"{start} or later, since ", Parameter("start"), " is that")
        if len(self) > MOST_KEYS:
            most = f", for at most {MOST_KEYS:,} keys"
            raise InvalidParameter("end", end, "nearer to ", Parameter("start"), most)

    def __len__(self) -> int:
        """Return how many there are."""
        return (self.end - self.start) // _LENGTHS[self.period] + 1

    def listed(self) -> list[dt.date]:
        """Return the days or hours in order."""
        length = _LENGTHS[self.period]
        return [self.start + place * length for place in range(len(self))]


def days(start: dt.date | str, end: dt.date | str) -> KeyRange:
    """Return the days from `start` to `end`, both among them, as keys for a column of dates or times.

    Each is a date, or text such as '2024-01-31'.
    """
    return KeyRange(Period.DAY, _day("start", start), _day("end", end))


def hours(start: dt.date | str, end: dt.date | str) -> KeyRange:
    """Return the hours from the one that starts at `start` to the one that starts at `end`, as keys for times.

    Each is a time on the hour, or text such as '2024-01-31 08:00'; a date is its midnight.
    """
    return KeyRange(Period.HOUR, _hour("start", start), _hour("end", end))


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


# Declared keys


def declare(by: str | Sequence[str], keys: object, schema: Mapping[str, Column]) -> Keys:
    """Return the groups that a caller declares, checked against the columns before any data is read.

    With a column of times, dates are keys of whole days; times are compared as they are.

    Args:
        by: the name of a column, or of two.
        keys: a list of values of that column, or of pairs of values; `days(…)` or `hours(…)` for one column. None
            (and MISSING, as answers have it) is the key of the rows without a value. A
            tuple, a range of integers, an array and a series of pandas, polars or Arrow are lists too. Keys that
            were declared before, or some of them, are taken as they are.
        schema: the columns there are.

    Raises:
        InvalidKey: if a key is not a value of its column, or is there twice.
        InvalidParameter: if a column is not there, or the keys are no list.
    """
    columns = _columns(by, schema)
    if isinstance(keys, Keys):
        return _declared_before(columns, keys)
    if isinstance(keys, KeyRange):
        return _ranged(columns, keys)
    written = _listed(keys)
    if len(columns) == 1:
        (column,) = columns
        # Keys of times are days if the first one is a date.
        first = next((index for index, key in enumerate(written) if not _is_missing(key)), 0)
        by_day = column.kind is Kind.TIME and is_date(plain(written[first]))
        wanted = f"a date, as keys[{first}] is: write all keys as dates or all as times"
        wanted = wanted if by_day else expected(column)
        by_column = [_fitted(written, Column(column.name, Kind.DATE) if by_day else column, None, wanted)]
    else:
        by_day = False
        pairs = [_pair(key, index) for index, key in enumerate(written)]
        by_column = [
            _fitted([pair[place] for pair in pairs], column, place, expected(column))
            for place, column in enumerate(columns)
        ]
    values: tuple[tuple[Value | None, ...], ...] = tuple(zip(*by_column, strict=True))
    _check_different(values, written)
    return Keys(columns, values, Period.DAY if by_day else None)


def _columns(by: str | Sequence[str], schema: Mapping[str, Column]) -> tuple[Column, ...]:
    names = [by] if isinstance(by, str) else by
    if not isinstance(names, list | tuple) or len(names) not in (1, 2):
        raise InvalidParameter("by", by, "the name of a column, or a list of two")
    columns = tuple(column_of(name, schema, "by") for name in names)
    if len(set(columns)) < len(columns):
        raise InvalidParameter("by", columns, "two different columns")
    return columns


def _declared_before(columns: tuple[Column, ...], keys: Keys) -> Keys:
    if keys.columns != columns:
        names = " and ".join(column.name for column in keys.columns)
        raise InvalidParameter("by", columns, f"{names}, as these keys were declared for")
    if not keys.values:
        raise InvalidParameter("keys", keys, f"{_LIST}, and at least one")
    _check_different(keys.values, keys.published())  # some of them may have been taken by `at`
    return keys


def _ranged(columns: tuple[Column, ...], keys: KeyRange) -> Keys:
    kinds = (Kind.DATE, Kind.TIME) if keys.period is Period.DAY else (Kind.TIME,)
    if len(columns) > 1:
        raise InvalidParameter("by", columns, f"one column if the keys are a range of {keys.period}s")
    (column,) = columns
    if column.kind not in kinds:
        wanted = " or ".join(f"a {kind}" for kind in kinds)
        expected_column = f"{wanted} if the keys are a range of {keys.period}s"
        declared = read_as(column, kinds[0]) if column.kind is Kind.TEXT else ()
        raise InvalidParameter("by", column, expected_column, *declared)
    return Keys(
        columns, tuple([(key,) for key in keys.listed()]), keys.period if column.kind is Kind.TIME else None
    )


def _listed(keys: object) -> Sequence[object]:
    """Return the keys as a list of Python's own."""
    members = keys if isinstance(keys, list | tuple | range) else _members(keys)
    if members is None:
        raise InvalidParameter("keys", keys, _LIST)
    if not members:
        raise InvalidParameter("keys", keys, f"{_LIST}, and at least one")
    if len(members) > MOST_KEYS:
        raise InvalidParameter("keys", keys, f"at most {MOST_KEYS:,} keys, not {len(members):,}")
    return members


def _members(keys: object) -> Sequence[object] | None:
    """Return the members of an array or a series, and None of anything else."""
    if isinstance(keys, type):
        return None
    dtype = getattr(keys, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind == "M":  # as a list, nanoseconds would be integers
        times = np.asarray(keys)
        rounded = times if dtype == DAYS else times.astype("datetime64[us]")
        members = rounded.tolist() if bool((rounded == times).all()) else list(times)
    else:
        reader = next((getattr(keys, name) for name in _READERS if hasattr(keys, name)), None)
        members = reader() if callable(reader) else None
    return members if isinstance(members, list) else None


def _pair(key: object, index: int) -> Sequence[object]:
    if not isinstance(key, tuple | list) or len(key) != 2:
        raise InvalidKey(index, key, _PAIR)
    return key


def _is_missing(key: object) -> bool:
    return key is None or key is MISSING


def _fitted(written: Sequence[object], column: Column, place: int | None, wanted: str) -> list[Value | None]:
    """Return keys, or those at one place of pairs, as values of their column."""
    fit = fitting(column)
    values: list[Value | None] = []
    for index, key in enumerate(written):
        value = None if _is_missing(key) else fit(plain(key))
        if value is None and not _is_missing(key):
            null = isinstance(key, str | float | dt.datetime | np.datetime64) and str(key).upper() in _LIKE_NULL
            hint = "; rows without a value are NULL, in Python None" if null else ""
            raise InvalidKey(index, plain(key), f"{wanted}{hint}", column=place)
        values.append(value)
    return values


def _check_different(values: Sequence[tuple[Value | None, ...]], written: Sequence[object]) -> None:
    if len(set(values)) == len(values):
        return
    first: dict[tuple[Value | None, ...], int] = {}
    for index, value in enumerate(values):
        if value in first:
            raise InvalidKey(
                index, plain(written[index]), f"another key than keys[{first[value]}]", same_as=first[value]
            )
        first[value] = index
