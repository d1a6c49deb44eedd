"""The price of a boundary wrapper that marks doubt more readily than the paper's.

With caution c the mark has probability cπ/(1+cπ), at most c/(2+c), where π is the probability of all outcomes but
the likeliest; c = 1 is the paper's wrapper. A larger c marks more and makes each mark cheaper. Which pairs of laws
can be worst is proven (docs/theory/renyi.md#caution). Over those few families, of one or two parameters, the price
is the largest value on a fine grid, with a margin of 0.1%.

>>> round(boundary(2.0, 0.1, 2.0), 5)
0.01675
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge.accounting.prices import BOUNDARY_MARGIN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Masses = NDArray[np.float64]

MOST_CAUTION: Final = 100.0

_ROUNDING: Final = 1e-13
"""More than what sums of a few numbers near 1 are off by; it makes prices at a tiny ε larger (safe)."""

_ROUNDING_OF_POWERS: Final = 2e-15
"""More than what a power is off by, for each 1 of the order; up to 1.2e-15 was seen."""

_LINE: Final = 129
_SQUARE: Final = 65


@lru_cache(maxsize=4096)
def boundary(order: float, epsilon: float, caution: float) -> float:
    """Return the price of the mark of a wrapper with this caution; infinite where none is known.

    Valid for ε ≤ 1 only; the caller refuses more.
    """
    if order * -math.expm1(-epsilon) >= 1:
        return math.inf  # a nearly sure outcome has no price there
    wrapper = _Wrapper(order, epsilon, caution)
    excess = max(wrapper.vanishing(), wrapper.same_side(), wrapper.undecided(), wrapper.switching())
    excess += _ROUNDING + _ROUNDING_OF_POWERS * order
    return (1 + BOUNDARY_MARGIN) * -math.log1p(-excess) if excess < 1 else math.inf


class _Wrapper:
    """The families of pairs that can be worst. Each method returns the largest 1 - e^{-κ} that one of them needs.

    π₀ and π₁ are the masses of what is not the likeliest outcome, on the two sides.
    """

    def __init__(self, order: float, epsilon: float, caution: float) -> None:
        self._a, self._e, self._c = order, math.exp(epsilon), caution
        # ρ^a on [e^{-ε}, e^ε] is at most the chord: this much for each π₁ and each π₀.
        self._at_one = -math.sinh((order - 1) * epsilon) / math.sinh(epsilon)
        self._at_zero = math.sinh(order * epsilon) / math.sinh(epsilon)
        self._epsilon = epsilon

    def vanishing(self) -> float:
        """One outcome is nearly sure, on both sides: (1+c)/c·(1 - (1 + a(ρ-1))ρ^{-a}), ρ = e^{±ε}."""
        shares = (
            -math.expm1(-self._a * loss) - self._a * math.exp(-self._a * loss) * math.expm1(loss)
            for loss in (self._epsilon, -self._epsilon)
        )
        return (1 + self._c) / self._c * max(shares)

    def same_side(self) -> float:
        """The same outcome is the likeliest on both sides, with ½ on one of them."""
        other = 0.5 * np.exp(-self._epsilon * np.linspace(0, 1, _LINE))
        half = np.full(_LINE, 0.5)
        return max(self._needed(other, half), self._needed(half, other))

    def undecided(self) -> float:
        """No outcome has more than ½ on one side, or on both; the other side is as far away as it can be."""
        response = 1 / (1 + self._e)  # randomised response, where the far side turns
        near = np.append(np.linspace(0.5 / self._e, 0.5, _LINE), response)
        far = np.maximum(0.5, np.minimum(self._e * near, 1 - (1 - near) / self._e))
        moment = self._chord(np.ones(1), np.ones(1))  # of randomised response
        both = self._excess(np.ones(1), np.ones(1), moment)
        return max(self._needed(near, far), self._needed(far, near), both)

    def switching(self) -> float:
        """Two different outcomes are the likeliest on the two sides: all splits at which S can be largest."""
        masses = np.append(np.linspace(0.5 / self._e, 0.5, _SQUARE), 1 / (1 + self._e))
        zero, one = (grid.ravel() for grid in np.meshgrid(masses, masses))
        most_zero, most_one = zero - (1 - one) / self._e, one - (1 - zero) / self._e
        possible = (most_zero >= 0) & (most_one >= 0)
        zero, one, most_zero, most_one = (part[possible] for part in (zero, one, most_zero, most_one))
        rising = np.minimum(most_one, most_zero / self._e)
        falling = np.minimum(most_one, most_zero * self._e)
        corner = (most_zero <= self._e * most_one) & (most_one <= self._e * most_zero)
        splits = (
            (np.zeros_like(zero), np.zeros_like(zero)),
            (self._e * rising, rising),
            (falling / self._e, falling),
            (np.where(corner, most_zero, 0.0), np.where(corner, most_one, 0.0)),
        )
        return max(self._excess(zero, one, self._split(zero, one, *split)) for split in splits)

    def _split(self, zero: Masses, one: Masses, rest_zero: Masses, rest_one: Masses) -> Masses:
        """Return S of 1-π₀ → π₁ - rest, π₀ - rest → 1-π₁ and the rest, cut into small outcomes."""
        first = _moment(1 - zero, one - rest_one, self._a)
        second = _moment(zero - rest_zero, 1 - one, self._a)
        return first + second + self._chord(rest_zero, rest_one)

    def _needed(self, zero: Masses, one: Masses) -> float:
        """One outcome 1-π₀ → 1-π₁, and the rest cut into small outcomes."""
        return self._excess(zero, one, _moment(1 - zero, 1 - one, self._a) + self._chord(zero, one))

    def _chord(self, zero: Masses, one: Masses) -> Masses:
        return self._at_zero * zero + self._at_one * one

    def _excess(self, zero: Masses, one: Masses, moments: Masses) -> float:
        """Return the largest 1 - e^{-κ} that the price inequality needs.

        With n = min(π, ½) it reads S + e^{-κ}·c·n₀^a·n₁^{1-a} ≤ (1+c·n₀)^a·(1+c·n₁)^{1-a}.
        """
        zero, one = np.minimum(zero, 0.5), np.minimum(one, 0.5)
        marked = self._c * _moment(zero, one, self._a)
        all_in_all = _moment(1 + self._c * zero, 1 + self._c * one, self._a)
        return float(((marked + moments - all_in_all) / marked).max())


def _moment(zero: Masses, one: Masses, order: float) -> Masses:
    """Return z₀^a·z₁^{1-a}, by the ratio: neither power on its own would fit."""
    return one * (zero / one) ** order
