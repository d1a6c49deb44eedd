"""Keys: the groups of a batch, declared by the caller, so that their number tells nothing about the data.

>>> from targetcharge.queries.columns import Column, Kind
>>> days = Keys((Column("at", Kind.TIME),), ((dt.date(2024, 2, 29),),), Grain.DAY)
>>> str(days.where(0))
"at >= '2024-02-29 00:00:00' AND at <= '2024-02-29 23:59:59.999999'"
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, final

from targetcharge.queries.predicates import All, Compare, Operator

if TYPE_CHECKING:
    from collections.abc import Iterable

    from targetcharge.queries.columns import Column, Value
    from targetcharge.queries.predicates import Predicate


class Grain(StrEnum):
    """How much of a time is one key."""

    DAY = "day"
    HOUR = "hour"


@final
@dataclass(frozen=True, slots=True)
class Keys:
    """Groups of rows: those whose columns have a declared value.

    Attributes:
        columns: one or two.
        values: one for each column, in literals of its kind; each once.
        grain: if the only column is a time, the part of it that is compared with the values: its day (a date) or
            its hour (a time on the hour).
    """

    columns: tuple[Column, ...]
    values: tuple[tuple[Value, ...], ...]
    grain: Grain | None = None

    def some(self, indices: Iterable[int]) -> Keys:
        """Return only the keys at these places."""
        return replace(self, values=tuple(self.values[index] for index in indices))

    def where(self, index: int) -> Predicate:
        """Return the predicate that holds for the rows of one key, and no others."""
        key = self.values[index]
        if self.grain is not None:
            return _within(self.columns[0], key[0], self.grain)
        parts = [Compare(column, Operator.EQ, value) for column, value in zip(self.columns, key, strict=True)]
        return parts[0] if len(parts) == 1 else All(tuple(parts))


_MICROSECOND: Final = dt.timedelta(microseconds=1)
_LENGTHS: Final = {Grain.DAY: dt.timedelta(days=1), Grain.HOUR: dt.timedelta(hours=1)}


def _within(column: Column, key: Value, grain: Grain) -> Predicate:
    """Return whether a time is in a day or an hour, up to its last microsecond: the calendar may end with it."""
    if isinstance(key, dt.datetime):
        start = key
    elif isinstance(key, dt.date):
        start = dt.datetime.combine(key, dt.time())
    else:
        msg = "a key with a grain is a date or a time"
        raise TypeError(msg)
    last = start + (_LENGTHS[grain] - _MICROSECOND)
    return All((Compare(column, Operator.GE, start), Compare(column, Operator.LE, last)))
