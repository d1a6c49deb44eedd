"""Keys as they are published: plain data, dates and times as ISO text."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import TYPE_CHECKING

from targetcharge.queries.predicates import decimal_text

if TYPE_CHECKING:
    from targetcharge.queries.columns import Column, Value
    from targetcharge.queries.keys import Keys


def published(keys: Keys) -> tuple[object, ...]:
    """Return the keys as answers carry them: a value, or a pair."""
    if len(keys.columns) == 1:
        return tuple(_plain(keys.columns[0], value) for (value,) in keys.values)
    return tuple(
        tuple(_plain(column, value) for column, value in zip(keys.columns, pair, strict=True))
        for pair in keys.values
    )


def _plain(column: Column, value: Value) -> object:
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, dt.date):
        return value.isoformat()
    if column.exact is not None and column.exact.scale and isinstance(value, int):
        exact = Fraction(value, 10**column.exact.scale)
        near = float(exact)
        return near if Fraction(repr(near)) == exact else decimal_text(value, column.exact.scale)
    return int(value) if isinstance(value, float) and value.is_integer() else value
