"""The lattice run: level after level, certified, for every number of hits up to τ and every ε' at once.

>>> from targetcharge.accounting.targets import NOT_PRIOR, Kind
>>> lattice = Lattice.for_hits(NOT_PRIOR, 0.1, hits=5, delta=1e-6)
>>> [round(float(level.delta_at(1.0)), 6) for level in lattice.levels(3)]
[0.000106, 0.000414, 0.000982]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from targetcharge import checks
from targetcharge.accounting.exact.certificate import FLOOR, Certificate, least_hit, violation
from targetcharge.accounting.exact.levels import (
    LEAST_REACH,
    STOP,
    after_hits,
    bellman,
    iterate_policy,
    moves_of,
    sweep_not_prior,
)
from targetcharge.accounting.renyi import (
    best_order_for_budget,
    best_order_for_epsilon,
    best_order_for_hits,
    epsilon_of_total,
    total_of_budget,
)
from targetcharge.accounting.targets import NOT_PRIOR, Kind
from targetcharge.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from targetcharge.accounting.budget import Budget
    from targetcharge.accounting.exact.levels import Game

MAX_WIDTH = 4_000_000
"""The widest lattice: about 1 GiB of working memory."""

MAX_CELLS = 400_000_000
"""The most cells of all levels together where sweeps solve them: about a quarter of a minute."""

MAX_ITERATED_CELLS = 40_000_000
"""The same where policy iteration does."""

_LEVEL_OVERHEAD = 1000
"""A level costs at least as much as this many cells."""


@dataclass(frozen=True)
class Level:
    """The certified profile δ'(ε') of a session with `hits` hits, at ε' = (n + shift)·ε for n = 0, 1, ….

    Attributes:
        hits: the number of hits.
        epsilon: query ε.
        shift: where the lattice stands.
        deltas: upper bounds of δ' by n.
    """

    hits: int
    epsilon: float
    shift: float
    deltas: NDArray[np.float64]

    def delta_at(self, epsilon: float) -> float:
        """Return an upper bound of δ' at any ε' within the lattice.

        Between lattice points it interpolates linearly in e^{ε'}: δ' is convex in it, so the chord is above. Below
        the first point, also at an ε' below 0, it is the chord to δ' = 1 at e^{ε'} = 0.
        """
        place = epsilon / self.epsilon * (1 - 1e-15) - self.shift
        if place < 0:
            below_first = place * self.epsilon
            return min(1.0, float(-math.expm1(below_first) + math.exp(below_first) * self.deltas[0]) * (1 + 1e-12))
        below = math.floor(place)
        if place == below or below >= len(self.deltas) - 1:
            return float(self.deltas[min(below, len(self.deltas) - 1)])
        weight = math.expm1((place - below) * self.epsilon) / math.expm1(self.epsilon)
        lower, upper = self.deltas[below], self.deltas[below + 1]
        return float(min(lower, lower - (1 - 1e-12) * weight * (lower - upper)))

    def epsilon_at(self, delta: float) -> float:
        """Return an upper bound of the smallest ε' ≥ 0 with δ'(ε') ≤ δ; infinite if beyond the lattice."""
        good = np.flatnonzero(self.deltas <= delta)
        if not len(good):
            return math.inf
        first = int(good[0])
        if first == 0:
            return self.shift * self.epsilon
        lower, upper = self.deltas[first - 1], self.deltas[first]
        weight = (lower - delta) / (lower - upper)
        start = (first - 1 + self.shift) * self.epsilon
        return float(start + math.log1p(weight * math.expm1(self.epsilon))) * (1 + 1e-12)


def _shift(kind: Kind | Game, place: float) -> float:
    """Return where a lattice should stand to tell δ' at ε' = place·ε.

    For NotPrior and for plain composition the chord between lattice points is exact; for other kinds the
    lattice is shifted so that ε' is one of its points.
    """
    # A hair below ε', never above: δ' falls with ε'.
    return 0.0 if kind == NOT_PRIOR or kind.all_hits else max(0.0, place - math.floor(place) - 1e-12)


@dataclass(frozen=True)
class Lattice:
    """Where a run lives: which cells, and the Rényi order whose bound closes it off at both ends.

    Attributes:
        kind: what the session may ask, or the game that is played.
        epsilon: query ε, or the width of the game's cells.
        depth: the largest n for which δ' is wanted.
        exponent: u, the Rényi order less one. Any value gives true bounds; a good one gives tight ones.
        charge: roughly the total price of the hits to come; sets how far above zero the lattice reaches.
        shift: in [0, 1): the lattice stands at losses (j - shift)·ε.
    """

    kind: Kind | Game
    epsilon: float
    depth: int
    exponent: float
    charge: float
    shift: float = 0.0

    @classmethod
    def for_hits(cls, kind: Kind | Game, epsilon: float, hits: int, delta: float) -> Lattice:
        """Return the lattice that reaches down to where `hits` hits have δ' ≤ delta."""
        order = best_order_for_hits(kind, epsilon, hits, delta)
        charge = hits * kind.kappa(order, epsilon)
        reach = max(0.0, epsilon_of_total(charge, order, delta))
        return cls(kind, epsilon, math.ceil(reach / epsilon) + 1, order - 1, charge)

    @classmethod
    def for_budget(cls, kind: Kind | Game, epsilon: float, budget: Budget) -> Lattice:
        """Return the lattice that reaches down to the budget's ε' with hits enough to spend its δ'."""
        order = best_order_for_budget(kind, epsilon, budget)
        price = kind.kappa(order, epsilon)
        charge = 1.5 * max(0.0, total_of_budget(budget, order)) + price
        place = budget.epsilon / epsilon
        return cls(kind, epsilon, math.floor(place) + 1, order - 1, charge, _shift(kind, place))

    @classmethod
    def for_epsilon(cls, kind: Kind | Game, epsilon: float, hits: int, whole_epsilon: float) -> Lattice:
        """Return the lattice for δ' at one ε'."""
        order = best_order_for_epsilon(kind, epsilon, hits, whole_epsilon)
        charge = hits * kind.kappa(order, epsilon)
        place = whole_epsilon / epsilon
        return cls(kind, epsilon, math.floor(place) + 1, order - 1, charge, _shift(kind, place))

    @property
    def price(self) -> float:
        """Return the Rényi price of a hit at the order of this lattice."""
        return self.kind.kappa(1 + self.exponent, self.epsilon)

    @property
    def top(self) -> int:
        """Return t: from there on up the value is 1 - e^{-jε} to the last bit."""
        return math.ceil((45 + self.charge) / ((1 + self.exponent) * self.epsilon)) + LEAST_REACH

    @property
    def bottom(self) -> int:
        """Return b: below -b the Rényi bound is too small to matter."""
        return self.depth + math.ceil(35 / ((1 + self.exponent) * self.epsilon)) + LEAST_REACH

    @property
    def width(self) -> int:
        """Return the number of cells of a level."""
        return self.bottom + self.top + 1

    @property
    def most_hits(self) -> int:
        """Return how many levels fit in memory and time."""
        return self.most_cells // max(self.width, _LEVEL_OVERHEAD) if self.width <= MAX_WIDTH else 0

    @property
    def most_cells(self) -> int:
        """Return the limit on the cells of all levels together."""
        if not isinstance(self.kind, Kind):
            return self.kind.most_cells
        return MAX_CELLS if self.swept else MAX_ITERATED_CELLS

    @property
    def swept(self) -> bool:
        """Return whether the optimal policy is known, so that two sweeps solve a level."""
        return self.kind == NOT_PRIOR and self.shift == 0

    def check_size(self, hits: int) -> None:
        """Refuse a run that would not fit in memory or time.

        Raises:
            TooLarge: with the largest number of hits that does.
        """
        if isinstance(self.kind, Kind):
            query, instead = self.epsilon, "; use renyi_epsilon, which needs no lattice"
        else:
            query, instead = self.kind.query_epsilon(self.epsilon), ""
        if not self.most_hits:
            expected = (
                f"such that its lattice fits: this one would be {self.width:,} cells wide and the limit is"
                f" {MAX_WIDTH:,}{instead}"
            )
            raise TooLarge("query_epsilon", query, expected)
        if hits > self.most_hits:
            expected = (
                f"at most {self.most_hits} at query_epsilon {query:g}: the lattice has {self.width:,} cells"
                f" a hit and the limit is {self.most_cells:,} in all{instead}"
            )
            raise TooLarge("hits", hits, expected)

    def levels(self, hits: int) -> Iterator[Level]:
        """Yield the certified levels for 1, 2, …, `hits` hits."""
        self.check_size(checks.hits(hits))
        moves = moves_of(self.kind, self.epsilon)
        reach = max(LEAST_REACH, *(move.reach for move in moves))
        certificate = Certificate(
            self.epsilon,
            self.shift,
            self.bottom,
            self.top,
            self.exponent,
            self.price,
            least_hit(moves),
        )
        options = (*moves, STOP)
        losses = (np.arange(-self.bottom, self.top + 1 + reach) - self.shift) * self.epsilon
        payoff = -np.expm1(-np.maximum(losses, 0.0))
        top, values = payoff[-reach:], payoff[:-reach] + FLOOR
        policy = np.where(losses[:-reach] < 0, 0, min(1, len(moves) - 1)).astype(np.intp)
        depth = np.arange(self.depth + 1)
        worst = 0.0
        up, down = 1 / (1 + math.exp(-self.epsilon)), 1 / (1 + math.exp(self.epsilon))
        for count in range(1, hits + 1):
            after = after_hits(options, values, top)
            if self.swept:
                values = sweep_not_prior(values, top, self.bottom, up, down)
            else:
                values, policy = iterate_policy(options, after, top, policy)
            worst = max(worst, violation(bellman(options, values, after, top), values))
            deltas = certificate.bound(values[self.bottom - depth], depth, count, worst)
            yield Level(count, self.epsilon, self.shift, deltas)
