"""The noise of counts: its rate for a sensitivity, its law, and how far it may reach.

>>> rate = rate_for(0.3, sensitivity=3)
>>> rate.numerator / rate.denominator <= 0.1
True
>>> law = NoiseLaw.of(rate)
>>> round(law.mass(0) + 2 * law.at_least(1), 15), law.margin()
(1.0, 30)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.numerics.rounding import quotient_down
from targetcharge.randomness import Rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONFIDENCE: Final = 0.95
"""Of intervals: the true value lies in at least so many of them."""

_FAR: Final = 1 << 900
"""Beyond this distance every mass is 0 in double precision, whatever the rate; a larger one would overflow."""


def rate_for(epsilon: float, sensitivity: int, *, shifts: int = 1) -> Rate:
    """Return a rate of at most ε/(shifts·sensitivity), as exact fractions, and only just below it.

    Args:
        epsilon: what the noise must hide.
        sensitivity: the most a unit changes a count.
        shifts: how many such changes the noise must hide at once.
    """
    epsilon = checks.query_epsilon(epsilon, "epsilon")
    quotient = quotient_down(epsilon, shifts * checks.positive_integer(sensitivity, "sensitivity"))
    if quotient < checks.MIN_QUERY_EPSILON:
        least = checks.MIN_QUERY_EPSILON * shifts * sensitivity
        expected = f"at least {least:g} at sensitivity {sensitivity}: with less it says nothing"
        raise InvalidParameter("epsilon", epsilon, expected)
    return Rate.at_most(quotient)


@final
@dataclass(frozen=True)
class NoiseLaw:
    """The law of discrete Laplace noise X: Pr[X = k] = tanh(rate/2)·e^{-rate·|k|}.

    Probabilities are right to a few units in the last place, also small ones.

    Attributes:
        rate: the rate of decay that is used, as a float (exact: a rate has few bits).
    """

    rate: float

    @staticmethod
    def of(rate: Rate) -> NoiseLaw:
        """Return the law of a rate."""
        return NoiseLaw(rate.numerator / rate.denominator)

    def mass(self, value: int) -> float:
        """Return Pr[X = value]."""
        return math.tanh(self.rate / 2) * self.decay(abs(value))

    def at_least(self, value: int) -> float:
        """Return Pr[X ≥ value], which is also Pr[X ≤ -value]."""
        if value > 0:
            return self.decay(value) / (1 + self.decay(1))
        return (1 + self.decay(1) * self.shortfall(-value)) / (1 + self.decay(1))

    def at_least_array(self, values: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `at_least` for each value of an array."""
        p, tail = self.decay(1), np.exp(-self.rate * np.abs(values))
        return np.where(values > 0, tail, 1 + p * (1 - tail)) / (1 + p)

    def within(self, count: int, first: int | None, last: int | None) -> float:
        """Return Pr[first ≤ count + X ≤ last], as precise where it is small; None stands for an open end."""
        if first is None:
            return 1.0 if last is None else self.at_least(count - last)
        if last is None:
            return self.at_least(first - count)
        if first <= count <= last:
            p = self.decay(1)
            return (self.shortfall(count - first + 1) + p * self.shortfall(last - count)) / (1 + p)
        return self.at_least(max(first - count, count - last)) * self.shortfall(last - first + 1)

    def sides(self, count: int, least: int, most: int) -> list[float]:
        """Return the probabilities of count + X below `least`, from `least` to `most`, and above `most`."""
        ranges = (None, least - 1), (least, most), (most + 1, None)
        return [self.within(count, first, last) for first, last in ranges]

    def decay(self, steps: int) -> float:
        """Return e^{-rate·steps}."""
        return math.exp(-self.rate * min(steps, _FAR))

    def shortfall(self, steps: int) -> float:
        """Return 1 - e^{-rate·steps}."""
        return -math.expm1(-self.rate * min(steps, _FAR))

    def margin(self, confidence: float = CONFIDENCE) -> int:
        """Return the smallest w with Pr[|X| > w] = 2p^{w+1}/(1+p) ≤ 1 - confidence, p = e^-rate."""
        return max(0, math.ceil(math.log(2 / ((1 - confidence) * (1 + self.decay(1)))) / self.rate - 1))
