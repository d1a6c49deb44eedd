"""The games of at-least questions: what is left of a unit once a secret offset has taken its share.

One secret offset is subtracted from every number of a session. Coupling it with a copy that lies λ steps away
turns a unit that moves every number by 0 or 1 into one that moves it by λ one way or by 1-λ the other: a question
to which the unit does not contribute has the first dataset *above* the second by λ, one to which it does has it
*below* by 1-λ (docs/theory/offsets.md#coupling). A game says what an adversary makes of such questions, given the
noise.

Losses lie in cells of some width d, and the query ε of a game is (above + below)·d.

>>> laplace, gumbel = LaplaceGame(3, 2), GumbelGame(3, 2)
>>> [move.name for move in laplace.moves(0.02)]
['A', 'B', 'C above', 'C below']
>>> round(laplace.kappa(2.0, 0.02), 6), round(gumbel.kappa(2.0, 0.02), 6)
(0.006607, 0.003397)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from targetcharge import checks
from targetcharge.accounting import prices
from targetcharge.accounting.exact.levels import Move
from targetcharge.errors import InvalidParameter
from targetcharge.numerics.rounding import up


@final
@dataclass(frozen=True)
class LaplaceGame:
    """At-least questions under discrete Laplace noise.

    The ratio of a shifted pair rises with the number, so a miss, which is a lower tail, tells "-" where the first
    dataset is above (move B: + hits) and "+" where it is below (move A: - hits); in either both signs may hit (C).

    Attributes:
        above: λ in cells: where the unit does not contribute.
        below: 1-λ in cells, at least 1: where it does.
    """

    above: int
    below: int

    @property
    def all_hits(self) -> bool:
        """Return False: misses are free."""
        return False

    @property
    def most_cells(self) -> int:
        """Return how many cells policy iteration with long steps takes a minute for."""
        return 10_000_000

    def query_epsilon(self, epsilon: float) -> float:
        """Return the query ε: what the unit moves in all, in cells of width ε."""
        return (self.above + self.below) * epsilon

    def check_epsilon(self, epsilon: float, name: str = "epsilon") -> float:
        """Return the width of a cell."""
        return checks.query_epsilon(epsilon, name)

    def kappa(self, order: float, epsilon: float) -> float:
        """Return the Rényi price of the dearer of A and B; C, whose misses hit too, is cheaper than either."""
        return max(prices.not_prior(order, self.below * epsilon), prices.one_sided(order, self.above * epsilon))

    def moves(self, epsilon: float) -> tuple[Move, ...]:
        """Return the moves: A below, B above, and both hits on either side."""
        up_above, down_above = _signs(self.above * epsilon)
        up_below, down_below = _signs(self.below * epsilon)
        return (
            Move("A", miss={+self.below: up_below}, hit={-self.below: down_below}),
            Move("B", miss={-self.above: down_above}, hit={+self.above: up_above}),
            Move("C above", miss={}, hit={+self.above: up_above, -self.above: down_above}),
            Move("C below", miss={}, hit={+self.below: up_below, -self.below: down_below}),
        )


@final
@dataclass(frozen=True)
class GumbelGame:
    """At-least questions under discrete Gumbel noise.

    A number is the top point of a Poisson process that misses and hits explore from above. On the clock of the
    first dataset, where a hit comes at rate 1, the loss drifts by -(1-e^{-r}) and a hit adds +r where the first
    dataset is above by r; it drifts by e^r - 1 and a hit adds -r where it is below
    (docs/theory/offsets.md#gumbel).

    Attributes:
        above: λ in cells: where the unit does not contribute.
        below: 1-λ in cells, at least 1: where it does.
    """

    above: int
    below: int

    @property
    def all_hits(self) -> bool:
        """Return False: misses are free."""
        return False

    @property
    def most_cells(self) -> int:
        """Return how many cells two sweeps take a few seconds for."""
        return 100_000_000

    def query_epsilon(self, epsilon: float) -> float:
        """Return the query ε: what the unit moves in all, in cells of width ε."""
        return (self.above + self.below) * epsilon

    def check_epsilon(self, epsilon: float, name: str = "epsilon") -> float:
        """Return the width of a cell."""
        return checks.query_epsilon(epsilon, name)

    def kappa(self, order: float, epsilon: float) -> float:
        """Return the larger of ur - ln(1 + u(1-e^{-r})) above and -ur - ln(1 - u(e^r - 1)) below, u = a-1.

        They are the least κ with which e^{uL - κ·hits} is a supermartingale on either side.
        """
        exponent = order - 1
        above, below = self.above * epsilon, self.below * epsilon
        drift = exponent * math.expm1(below)
        if drift >= 1:
            return math.inf
        falling = exponent * above - math.log1p(exponent * -math.expm1(-above))
        rising = -exponent * below - math.log1p(-drift)
        rounding = 4e-16 * exponent * (above + below)
        return up(max(falling, rising) + rounding)

    def moves(self, epsilon: float) -> tuple[Move, ...]:  # noqa: ARG002 - as in every game
        """Refuse: this game is played in continuous time (gumbel.py)."""
        raise InvalidParameter("game", self, "one with moves: Gumbel noise has levels of its own")


def _signs(rate: float) -> tuple[float, float]:
    """Return the probabilities x and 1-x of the two signs of randomised response at a rate."""
    return 1 / (1 + math.exp(-rate)), 1 / (1 + math.exp(rate))
