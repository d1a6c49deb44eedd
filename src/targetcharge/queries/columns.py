"""Columns: what of a table's schema a question may use. From metadata or declaration, never from rows.

>>> age = Column("age", Kind.NUMBER, Exact(scale=0, low=-128, high=127))
>>> age
age (number)
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, final

from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(StrEnum):
    """What an analyst knows of a column's type."""

    NUMBER = "number"
    TEXT = "text"
    DATE = "date"
    TIME = "time"
    BOOLEAN = "boolean"


Value = float | int | str | bool | dt.date | dt.datetime
"""A literal, as the column's kind wants it: exact numbers are integers in steps of 10^-scale."""


@final
@dataclass(frozen=True, slots=True)
class Exact:
    """Numbers that are whole multiples of 10^-scale.

    Attributes:
        scale: digits after the point.
        low: the smallest value of the type, in steps of 10^-scale.
        high: the largest.
    """

    scale: int
    low: int
    high: int


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column that may be asked about.

    Attributes:
        name: as the table spells it.
        kind: of its values.
        exact: for numbers, which ones there are; None for floating point.
    """

    name: str
    kind: Kind
    exact: Exact | None = None

    def __repr__(self) -> str:
        """Return the name and the kind; public."""
        return f"{self.name} ({self.kind})"


Schema = dict[str, Column]
"""The columns that may be asked about, by name."""


def find(name: str, schema: Mapping[str, Column]) -> Column | None:
    """Return a column by its name, as it is spelled or in other capitals if that names only one."""
    if name in schema:
        return schema[name]
    alike = [column for spelled, column in schema.items() if spelled.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def column_of(name: str, schema: Mapping[str, Column], parameter: str = "column") -> Column:
    """Return a column by its name, as `find` does.

    Raises:
        InvalidParameter: if there is none.
    """
    if isinstance(name, str):
        column = find(name, schema)
        if column is not None:
            return column
    raise InvalidParameter(parameter, name, f"one of the columns {listed(schema)}")


def listed(schema: Mapping[str, Column]) -> str:
    """Return all columns with their kinds, for an error's text."""
    return ", ".join(map(repr, schema.values())) or "(the table has none that may be asked about)"
