"""Consensus: where the copies of a sketch say that a stream is, by a private choice that has a reason to stay.

What a stream may publish is a grid: 0 and a geometric series, where each value is 1 + tolerance times the one
before. From any of them a move goes one step, two, four and so on, either way: far enough in a few moves, with few
candidates, since each candidate is a chance of a false move.

Each copy's estimate lies in the cell of one candidate. The score of a candidate is the smaller of two numbers: the
copies in its cell or below it, and those in its cell or above it. So the median's cell has at least half of all
copies, and a cell that all of them are above has none. Where the stream is gets a public bonus, its *inertia*.

*Why it is ε-DP:* a copy that is replaced moves each score by at most one, some up and some down; the choice is
permute-and-flip with rate ε/2 (docs/theory/labels.md#streams). An estimate that is not a number lies in no cell.

>>> from targetcharge.randomness import SystemEntropy
>>> grid = Grid(smallest=1.0, largest=100.0, tolerance=1.0)
>>> grid.values
(0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
>>> [grid.values[place] for place in grid.moves(3).places]
[1.0, 2.0, 4.0, 8.0, 16.0, 64.0]
>>> [round(edge, 3) for edge in grid.moves(3).edges.tolist()]
[1.414, 2.0, 8.0, 11.314, 32.0]
>>> consensus = Consensus(grid, copies=100, epsilon=0.5)
>>> estimates = np.array([[0.2] * 100, [1.0] * 100])
>>> [grid.values[place] for place in consensus.draw(estimates, 0, SystemEntropy())]
[0.0, 1.0]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.choice import PermuteAndFlip

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy

INERTIA: Final = 0.5
"""The bonus for staying, as a share of the copies, if nobody chooses."""

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
class Grid:
    """All values that may be published.

    Attributes:
        values: rising, from 0.
        ratio: of one to the one before.
    """

    def __init__(self, smallest: float, largest: float, tolerance: float | str) -> None:
        """Make the values from the smallest that is not 0 to the first that is not below the largest."""
        if isinstance(tolerance, str):
            tolerance = checks.percent_of(tolerance, 1, "tolerance", 'a share such as 0.2 or "20%"')
        self.ratio = 1 + _moderate("tolerance", tolerance)
        first, last = _moderate("smallest", smallest), _moderate("largest", largest)
        if not last > first:
            raise InvalidParameter("largest", largest, f"above smallest={smallest!r}")
        steps = _MOST_VALUES
        if self.ratio > 1:
            steps = math.ceil(math.log(last / first) / math.log(self.ratio) - 1e-9)
        if steps + 2 > _MOST_VALUES:
            expected = (
                f"large enough for at most {_MOST_VALUES:,} values from smallest={smallest!r} to {largest!r}"
            )
            raise InvalidParameter("tolerance", tolerance, expected)
        self.values = (0.0, *(first * self.ratio**step for step in range(steps + 1)))

    @property
    def most_moves(self) -> int:
        """Return to how many other values a stream can move at once, at most."""
        return 2 * (len(self.values) - 1).bit_length()

    def place(self, name: str, value: float) -> int:
        """Return the place of the closest value."""
        number = checks.fitting(value, name, "a finite number of at least 0", lambda given: 0 <= given < math.inf)
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
    return checks.fitting(value, name, expected, lambda number: _LEAST <= number <= _MOST)


@final
@dataclass(frozen=True)
class Consensus:
    """A private choice of the next value.

    Attributes:
        grid: what may be published.
        copies: how many estimates there are.
        epsilon: of one choice.
        inertia: the bonus for staying, as a share of the copies.
    """

    grid: Grid
    copies: int
    epsilon: float
    inertia: float = INERTIA

    @property
    def bonus(self) -> int:
        """Return by how much the score of staying is raised."""
        return bonus_of(self.inertia, self.copies)

    @cached_property
    def _choice(self) -> PermuteAndFlip:
        return PermuteAndFlip(self.epsilon)

    def scores(self, estimates: NDArray[np.float64], place: int) -> NDArray[np.int64]:
        """Return the scores of the candidates from a place, for rows of estimates by all copies."""
        moves = self.grid.moves(place)
        rows, count = len(estimates), len(moves.places)
        cells = np.searchsorted(moves.edges, estimates, side="right")
        cells += np.arange(rows)[:, None] * count
        votes = np.bincount(cells[~np.isnan(estimates)], minlength=rows * count).reshape(rows, count)
        below = votes.cumsum(axis=1)
        above = below[:, -1:] - below + votes
        scores: NDArray[np.int64] = np.minimum(below, above)
        scores[:, moves.here] += self.bonus
        return scores

    def draw(self, estimates: NDArray[np.float64], place: int, entropy: Entropy) -> NDArray[np.intp]:
        """Return the place of the next value for each row, each as if the stream were at `place`."""
        chosen = self._choice.choose_rows(self.scores(estimates, place), entropy)
        places: NDArray[np.intp] = self.grid.moves(place).places[chosen]
        return places


def bonus_of(inertia: float, copies: int) -> int:
    """Return the bonus for staying: a share of the copies from 0 up to, but not including, all of them."""
    expected = "a number from 0 up to, but not including, 1"
    return int(checks.fitting(inertia, "inertia", expected, lambda share: 0 <= share < 1) * copies)
