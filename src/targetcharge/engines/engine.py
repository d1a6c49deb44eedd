"""What every engine does: exact integers from a table, for a curator who must not show them.

Nothing of what an engine returns or raises while it measures may be published as it is. Units are a column's
values, or rows; rows whose unit is missing are dropped.

>>> contributions = Contributions(np.array([0, 2, 1]), None, np.array([0, 2, 2, 3]))
>>> len(contributions), contributions.of(0)[0].tolist(), contributions.of(1)[0].tolist()
(3, [0, 2], [])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from targetcharge.identity import Identity
    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Additive, Measure, UnitValue
    from targetcharge.queries.tree import Schema


@final
@dataclass(frozen=True, eq=False)
class Contributions:
    """Who contributes to each of several measures, and how much, by the ids of units. As secret as the data.

    Attributes:
        units: ids of units, measure after measure; ascending, each once within a measure.
        steps: what each of them contributes, never 0; None where each contributes 1.
        starts: where each measure's units begin, and the end of the last.
    """

    units: NDArray[np.int64]
    steps: NDArray[np.int64] | None
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        """Return how many measures there are."""
        return len(self.starts) - 1

    def of(self, index: int) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """Return who contributes to one measure, and how much."""
        part = slice(int(self.starts[index]), int(self.starts[index + 1]))
        return self.units[part], None if self.steps is None else self.steps[part]

    def only(self, index: int) -> Contributions:
        """Return the contributions to one measure."""
        units, steps = self.of(index)
        return Contributions(units, steps, np.array([0, len(units)]))

    def __repr__(self) -> str:
        """Return nothing about anybody."""
        return f"<contributions to {len(self)} numbers>"


@final
@dataclass(frozen=True, eq=False)
class Distribution:
    """What units contribute to one number for each, and how many contribute it. As secret as the data.

    Attributes:
        steps: the contributions that occur, ascending.
        units: how many units contribute each of them.
    """

    steps: NDArray[np.int64]
    units: NDArray[np.int64]

    def __repr__(self) -> str:
        """Return nothing about anybody."""
        return "<distribution of contributions>"


class Engine(ABC):
    """A table that can be measured. One call at a time: a session takes turns."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """Return the columns that may be asked about: public."""

    @abstractmethod
    def measure(self, measures: Sequence[Measure]) -> list[int]:
        """Return the value of each measure, in as few scans as the engine can.

        Without keys a histogram is the count of its rows: nobody has more than that one.
        """

    @abstractmethod
    def measure_by(self, measure: Additive, keys: Keys) -> list[int]:
        """Return the value of a measure on the rows of each key, in one scan; 0 for a key without rows."""

    @abstractmethod
    def distribution(self, measure: UnitValue) -> Distribution:
        """Return which contributions to a measure occur and how many units contribute each, in one scan."""

    @abstractmethod
    def units(self) -> int:
        """Return how many units there are: their ids are the integers below it, given when first asked for.

        Ids are in the order of the snapshot in which a unit first has a row, then of its value; of rows, in their
        order. So an append changes no unit's id, and every process that opens the same data gives the same ids.
        """

    @abstractmethod
    def digest_of_units(self, key: bytes, snapshot: int | None = None) -> str:
        """Return a keyed hash of who has which id among the units of the first snapshots; None for all."""

    @abstractmethod
    def contributions(self, measures: Sequence[Additive], snapshot: int | None = None) -> Contributions:
        """Return who contributes to each measure and how much, on the first snapshots; in one scan if it can be.

        What they contribute adds up to the measure.
        """

    @abstractmethod
    def contributions_by(self, measure: Additive, keys: Keys, snapshot: int | None = None) -> Contributions:
        """Return who contributes to a measure on the rows of each key, on the first snapshots; in one scan."""

    @property
    @abstractmethod
    def identity(self) -> Identity:
        """Return how units are told apart. Public."""

    @property
    @abstractmethod
    def snapshot(self) -> int:
        """Return how many snapshots there are: 1, and one more for every append. Public."""

    @property
    @abstractmethod
    def files(self) -> tuple[tuple[str, ...], ...]:
        """Return the names of each snapshot's files in the folder that was opened; none if it was no folder."""

    @abstractmethod
    def in_files(self, snapshot: int) -> bool:
        """Return whether the rows of a snapshot, counted from 1, are those of files: else they are of a frame."""

    @abstractmethod
    def append(self, source: object) -> None:
        """Add the rows of another source as the next snapshot. If that fails nothing has changed.

        Raises:
            InvalidParameter: if it does not have the same columns; it names one that differs.
            EngineError: if it cannot be read.
        """

    @abstractmethod
    def retract(self) -> None:
        """Take back the last append."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Refuse to go on if the table is not what it was when it was opened, or cannot be asked any more.

        Raises:
            NotAllowed: if a file was changed; says what to do.
            EngineError: if the engine has failed for good: a question would fail, and be charged for it.
        """

    @abstractmethod
    def fingerprint(self, key: bytes, snapshot: int, rows: int | None = None) -> str:
        """Return a keyed hash of the contents of one snapshot, counted from 1: as secret as the data.

        Args:
            key: of the hash.
            snapshot: which one.
            rows: of a frame, of how many rows from the first on, beside how many there are; None for all.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the table."""
