"""Declared keys: what a caller says the groups are, checked against the columns before any data is read.

>>> from targetcharge.queries.columns import Exact
>>> schema = {"county": Column("county", Kind.TEXT), "age": Column("age", Kind.NUMBER, Exact(0, 0, 255))}
>>> declared("county", ["Kent", "Devon"], schema).values
(('Kent',), ('Devon',))
>>> declared("age", [30, 300], schema)
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: keys[1] is 300; it must be a number from 0 to 255 in steps of 1, as age is
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.errors import InvalidParameter
from targetcharge.queries.columns import Column, Kind, column_of
from targetcharge.queries.key_values import DAYS, expected, fitting, is_date, plain
from targetcharge.queries.keys import Grain, Keys
from targetcharge.queries.ranges import MOST_KEYS, Days, Hours

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from targetcharge.queries.columns import Value

_LIST: Final = "a list of keys, or a range of days or hours"
_READERS: Final = ("to_pylist", "to_list", "tolist")
"""How Arrow, polars, pandas and numpy make a list."""


def declared(by: str | Sequence[str], keys: object, schema: Mapping[str, Column]) -> Keys:
    """Return the groups that a caller declares.

    With a column of times, dates are keys of whole days; times are compared as they are.

    Args:
        by: the name of a column, or of two.
        keys: a list of values of that column, or of pairs of values; `days(…)` or `hours(…)` for one column. A
            tuple, a range of integers, an array and a series of pandas, polars or Arrow are lists too. Keys that
            were declared before, or some of them, are taken as they are.
        schema: the columns there are.

    Raises:
        InvalidParameter: if a column is not there, or a key is not one of its values, or is there twice.
    """
    columns = _columns(by, schema)
    if isinstance(keys, Keys):
        return _before(columns, keys)
    if isinstance(keys, Days | Hours):
        return _ranged(columns, keys)
    found = _listed(keys)
    if len(columns) == 1:
        return _of_one(columns[0], found)
    pairs = [_pair(key, index) for index, key in enumerate(found)]
    sides = [
        _fitted([pair[side] for pair in pairs], column, f"keys[{{}}][{side}]", expected(column))
        for side, column in enumerate(columns)
    ]
    values: list[tuple[Value, ...]] = list(zip(*sides, strict=True))
    _check_different(values, found)
    return Keys(columns, tuple(values))


def _columns(by: str | Sequence[str], schema: Mapping[str, Column]) -> tuple[Column, ...]:
    names = [by] if isinstance(by, str) else by
    if not isinstance(names, list | tuple) or len(names) not in (1, 2):
        raise InvalidParameter("by", by, "the name of a column, or a list of two")
    columns = tuple(column_of(name, schema, "by") for name in names)
    if len(set(columns)) < len(columns):
        raise InvalidParameter("by", columns, "two different columns")
    return columns


def _before(columns: tuple[Column, ...], keys: Keys) -> Keys:
    """Return keys that were declared before, if that was of the same columns."""
    if keys.columns != columns:
        names = " and ".join(column.name for column in keys.columns)
        raise InvalidParameter("by", columns, f"{names}, as these keys were declared for")
    if not keys.values:
        raise InvalidParameter("keys", keys, f"{_LIST}, and at least one")
    return keys


def _ranged(columns: tuple[Column, ...], keys: Days | Hours) -> Keys:
    """Return the keys of a range."""
    grain, kinds = (Grain.DAY, (Kind.DATE, Kind.TIME)) if isinstance(keys, Days) else (Grain.HOUR, (Kind.TIME,))
    if len(columns) > 1:
        raise InvalidParameter("by", columns, f"one column if the keys are a range of {grain}s")
    (column,) = columns
    if column.kind not in kinds:
        wanted = " or ".join(f"a {kind}" for kind in kinds)
        raise InvalidParameter("by", column, f"{wanted} if the keys are a range of {grain}s")
    values = tuple([(key,) for key in keys.listed()])
    return Keys(columns, values, grain if column.kind is Kind.TIME else None)


def _of_one(column: Column, found: Sequence[object]) -> Keys:
    """Return the keys of one column: days if it is one of times and the first key is a date."""
    by_day = column.kind is Kind.TIME and is_date(
        plain(found[0]) if isinstance(found[0], np.generic) else found[0]
    )
    if by_day:
        wanted = "a date, as keys[0] is: write all keys as dates or all as times"
        kept = _fitted(found, Column(column.name, Kind.DATE), "keys[{}]", wanted)
    else:
        kept = _fitted(found, column, "keys[{}]", expected(column))
    values: list[tuple[Value, ...]] = [(value,) for value in kept]
    _check_different(values, found)
    return Keys((column,), tuple(values), Grain.DAY if by_day else None)


def _listed(keys: object) -> Sequence[object]:
    """Return the keys as a list of Python's own."""
    found = keys if isinstance(keys, list | tuple | range) else _converted(keys)
    if found is None:
        raise InvalidParameter("keys", keys, _LIST)
    if not found:
        raise InvalidParameter("keys", keys, f"{_LIST}, and at least one")
    if len(found) > MOST_KEYS:
        raise InvalidParameter("keys", keys, f"at most {MOST_KEYS:,} keys, not {len(found):,}")
    return found


def _converted(keys: object) -> Sequence[object] | None:
    """Return the members of an array or a series, and None of anything else."""
    if isinstance(keys, type):
        return None
    dtype = getattr(keys, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind == "M":  # as a list, nanoseconds would be integers
        times = np.asarray(keys)
        rounded = times if dtype == DAYS else times.astype("datetime64[us]")
        found = rounded.tolist() if bool((rounded == times).all()) else list(times)
    else:
        reader = next((getattr(keys, name) for name in _READERS if hasattr(keys, name)), None)
        found = reader() if callable(reader) else None
    return found if isinstance(found, list) else None


def _pair(key: object, index: int) -> Sequence[object]:
    if not isinstance(key, tuple | list) or len(key) != 2:
        raise InvalidParameter(f"keys[{index}]", key, "a pair, with a value for each column")
    return key


def _fitted(found: Sequence[object], column: Column, name: str, wanted: str) -> list[Value]:
    """Return keys as values of their column."""
    fit = fitting(column)
    values = []
    for index, key in enumerate(found):
        value = fit(plain(key) if isinstance(key, np.generic) else key)
        if value is None:
            raise InvalidParameter(name.format(index), _shown(key), wanted)
        values.append(value)
    return values


def _check_different(values: list[tuple[Value, ...]], found: Sequence[object]) -> None:
    if len(set(values)) == len(values):
        return
    first: dict[tuple[Value, ...], int] = {}
    for index, value in enumerate(values):
        if value in first:
            raise InvalidParameter(
                f"keys[{index}]", _shown(found[index]), f"another key than keys[{first[value]}]"
            )
        first[value] = index


@final
@dataclass(frozen=True, slots=True)
class _Shown:
    """A key as an error's text has it."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _shown(key: object) -> object:
    """Return a key that an error's text can show: the caller wrote it, so it is public."""
    key = plain(key) if isinstance(key, np.generic) else key
    if isinstance(key, dt.date | Decimal):
        return _Shown(str(key))
    return _Shown(repr(key)) if isinstance(key, tuple) else key
