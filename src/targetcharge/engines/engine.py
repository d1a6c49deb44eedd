"""What every engine does: exact integers from a table, for a curator who must not show them.

Nothing of what an engine returns or raises while it measures may be published as it is. Units are a column's
values, or rows; rows whose unit is missing are dropped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.queries.columns import Schema
    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Count, Measure, Total


class Engine(ABC):
    """A table that can be measured. One call at a time: a session takes turns."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """Return the columns that may be asked about: public."""

    @abstractmethod
    def measure(self, measures: Sequence[Measure]) -> list[int]:
        """Return the value of each measure, in as few scans as the engine can."""

    @abstractmethod
    def measure_by(self, measure: Count | Total, keys: Keys) -> list[int]:
        """Return the value of a measure on the rows of each key, in one scan; 0 for a key without rows."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Refuse to go on if the table is not what it was when it was opened.

        Raises:
            NotAllowed: if a file was changed; says what to do.
        """

    @abstractmethod
    def fingerprint(self, key: bytes) -> str:
        """Return a keyed hash of the table's contents: as secret as the data."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the table."""
