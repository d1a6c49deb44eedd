"""The grid: what a stream may publish, and what it may move to next.

Values are 0 and a geometric series: each is 1 + tolerance times the one before. From any of them a move goes one
step, two, four and so on, either way: far enough in a few moves, with few candidates, since each candidate is
a chance of a false move.

>>> grid = Grid.of(smallest=1.0, largest=100.0, tolerance=1.0)
>>> grid.values
(0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
>>> moves = grid.moves(3)
>>> [grid.values[place] for place in moves.places]
[1.0, 2.0, 4.0, 8.0, 16.0, 64.0]
>>> [round(edge, 3) for edge in moves.edges.tolist()]
[1.414, 2.0, 8.0, 11.314, 32.0]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_VALUES: Final = 2**15
"""So that two bytes tell them apart in a ledger."""

_LEAST: Final = 1e-100
_MOST: Final = 1e100


@final
@dataclass(frozen=True, eq=False)
class Moves:
    """Where a stream may be after the next estimate.

    Attributes:
        places: of the candidates on the grid, rising.
        here: which of them is where it is.
        edges: between their cells, one fewer. A cell holds its lower edge.
    """

    places: NDArray[np.intp]
    here: int
    edges: NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)  # or else each look at the moves would hash all values
class Grid:
    """All values that may be published.

    Attributes:
        values: rising, from 0.
        ratio: of one to the one before.
    """

    values: tuple[float, ...]
    ratio: float

    @classmethod
    def of(cls, smallest: float, largest: float, tolerance: float) -> Grid:
        """Return the values from the smallest that is not 0 to the first that is not below the largest."""
        ratio = 1 + _moderate("tolerance", tolerance)
        first, last = _moderate("smallest", smallest), _moderate("largest", largest)
        if not last > first:
            raise InvalidParameter("largest", largest, f"above smallest={smallest!r}")
        steps = math.ceil(math.log(last / first) / math.log(ratio) - 1e-9) if ratio > 1 else _MOST_VALUES
        if steps + 2 > _MOST_VALUES:
            expected = (
                f"large enough for at most {_MOST_VALUES:,} values from smallest={smallest!r} to {largest!r}"
            )
            raise InvalidParameter("tolerance", tolerance, expected)
        return cls((0.0, *(first * ratio**step for step in range(steps + 1))), ratio)

    @property
    def most_moves(self) -> int:
        """Return to how many other values a stream can move at once, at most."""
        return 2 * (len(self.values) - 1).bit_length()

    def place(self, name: str, value: float) -> int:
        """Return the place of the closest value."""
        number = checks.real(name, value, "a finite number of at least 0")
        if not 0 <= number < math.inf:
            raise InvalidParameter(name, value, "a finite number of at least 0")
        return int(np.abs(np.array(self.values) - min(number, self.values[-1])).argmin())

    @lru_cache(maxsize=64)  # noqa: B019 - grids are few and small
    def moves(self, place: int) -> Moves:
        """Return the candidates for the next value.

        A copy votes to stay while its estimate is within the tolerance of the value, else for the candidate that
        is closest by ratio.
        """
        last = len(self.values) - 1
        steps = [1 << power for power in range(last.bit_length())]
        places = sorted({place, *(at for step in steps for at in (place - step, place + step) if 0 <= at <= last)})
        edges = [self._edge(low, high, place) for low, high in pairwise(places)]
        return Moves(np.array(places, dtype=np.intp), places.index(place), np.array(edges))

    def _edge(self, low: int, high: int, here: int) -> float:
        """Return the least estimate that is for the higher of two neighbouring candidates."""
        lower, higher = self.values[low], self.values[high]
        if low == here:
            return lower * self.ratio if low else self.values[1]
        if high == here:
            return higher / self.ratio
        return math.sqrt(lower * higher) if low else self.values[1] / math.sqrt(self.ratio)


def _moderate(name: str, value: float) -> float:
    """Return a number whose products with two others are finite and not 0."""
    expected = f"a number from {_LEAST:g} to {_MOST:g}"
    number = checks.real(name, value, expected)
    if not _LEAST <= number <= _MOST:
        raise InvalidParameter(name, value, expected)
    return number
