"""Contributions: who adds how much to a number, by the ids of units. As secret as the data.

>>> found = Contributions(np.array([0, 2, 1]), None, np.array([0, 2, 2, 3]))
>>> len(found), found.of(0)[0].tolist(), found.of(1)[0].tolist()
(3, [0, 2], [])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@final
@dataclass(frozen=True, eq=False)
class Contributions:
    """Who contributes to each of several numbers, and how much.

    Attributes:
        units: ids of units, number after number; ascending, each once within a number.
        steps: what each of them contributes, never 0; None where each contributes 1.
        starts: where each number's units begin, and the end of the last.
    """

    units: NDArray[np.int64]
    steps: NDArray[np.int64] | None
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        """Return how many numbers there are."""
        return len(self.starts) - 1

    def of(self, index: int) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """Return who contributes to one number, and how much."""
        part = slice(int(self.starts[index]), int(self.starts[index + 1]))
        return self.units[part], None if self.steps is None else self.steps[part]

    def only(self, index: int) -> Contributions:
        """Return the contributions to one number."""
        units, steps = self.of(index)
        return Contributions(units, steps, np.array([0, len(units)]))

    def __repr__(self) -> str:
        """Return nothing about anybody."""
        return f"<contributions to {len(self)} numbers>"
