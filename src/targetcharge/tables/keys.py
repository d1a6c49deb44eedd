"""Keys as they are published, and back: plain data, dates and times as ISO text."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from targetcharge.errors import InvalidParameter
from targetcharge.queries.columns import Column, Kind, column_of
from targetcharge.queries.key_values import expected, fitting
from targetcharge.queries.keys import Grain, Keys
from targetcharge.queries.predicates import decimal_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from targetcharge.queries.columns import Value


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


def key_again(by: Sequence[str], keys: Sequence[object], grain: str | None, schema: Mapping[str, Column]) -> Keys:
    """Return the keys that were published as these."""
    columns = tuple(column_of(name, schema, "by") for name in by)
    kinds = [Column(column.name, Kind.DATE) if grain == Grain.DAY else column for column in columns]
    pairs = [key if len(by) > 1 and isinstance(key, tuple | list) else (key,) for key in keys]
    values = tuple(tuple(_value(column, part) for column, part in zip(kinds, pair, strict=True)) for pair in pairs)
    return Keys(columns, values, None if grain is None else Grain(grain))


def _value(column: Column, part: object) -> Value:
    decimal = isinstance(part, str) and column.kind is Kind.NUMBER
    value = fitting(column)(Decimal(str(part)) if decimal else part)
    if value is None:
        raise InvalidParameter("key", part, expected(column))
    return value
