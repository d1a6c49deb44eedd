"""Consensus: where the copies of a sketch say that a stream is, by a private choice that has a reason to stay.

Each copy's estimate lies in the cell of one candidate. The score of a candidate is the smaller of two numbers: the
copies in its cell or below it, and those in its cell or above it. So the median's cell has at least half of all
copies, and a cell that all of them are above has none. Where the stream is gets a public bonus, its *inertia*.

*Why it is ε-DP:* a copy that is replaced moves each score by at most one, some up and some down; the choice is
permute-and-flip with rate ε/2 (docs/theory/labels.md#streams). An estimate that is not a number lies in no cell.

>>> import numpy as np
>>> from targetcharge.randomness import SystemEntropy
>>> from targetcharge.streaming.grid import Grid
>>> consensus = Consensus(Grid.of(1.0, 1e6, 0.1), copies=100, epsilon=0.5)
>>> estimates = np.array([[0.2] * 100, [1.0] * 100])
>>> [consensus.grid.values[place] for place in consensus.draw(estimates, 0, SystemEntropy())]
[0.0, 1.0]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.choice import PermuteAndFlip

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy
    from targetcharge.streaming.grid import Grid

INERTIA: Final = 0.5
"""The bonus for staying, as a share of the copies, if nobody chooses."""


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
        """Return the scores of the candidates, for rows of estimates by all copies.

        Args:
            estimates: a row for each choice.
            place: where the stream is.
        """
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
        found: NDArray[np.intp] = self.grid.moves(place).places[chosen]
        return found


def bonus_of(inertia: float, copies: int) -> int:
    """Return the bonus for staying: a share of the copies from 0 up to, but not including, all of them."""
    expected = "a number from 0 up to, but not including, 1"
    share = checks.real("inertia", inertia, expected)
    if not 0 <= share < 1:
        raise InvalidParameter("inertia", inertia, expected)
    return int(share * copies)
