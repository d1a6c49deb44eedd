"""Keys: the groups of a batch, declared by the caller, so that their number tells nothing about the data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from targetcharge.queries.columns import Column, Value


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
