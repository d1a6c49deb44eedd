"""Between: a noisy count fell into the band between two thresholds.

>>> target = Between(90, 110)
>>> Side.BETWEEN in target, Side.ABOVE in target
(True, False)
>>> target.width
21
>>> Between(90, 110, sensitivity=5).price(1.5, 0.5) > target.price(1.5, 0.5)
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from targetcharge import checks
from targetcharge.accounting import prices, qvalues
from targetcharge.accounting.targets.target import Kind, Target
from targetcharge.errors import InvalidParameter
from targetcharge.numerics.rounding import down, quotient_down, up
from targetcharge.outcomes import Side
from targetcharge.randomness.laplace import Rate


def _rate(epsilon: float, sensitivity: int) -> float:
    """Return the rate of the noise that is drawn for ε: ε/sensitivity, rounded down twice.

    First to a float, then to a `Rate`. Below the smallest rate nothing is drawn: there the float itself.
    """
    quotient = quotient_down(epsilon, sensitivity)
    if quotient < checks.MIN_QUERY_EPSILON:
        return quotient
    rate = Rate.at_most(quotient)
    return rate.numerator / rate.denominator


def _q_at(rate: float, width: int, sensitivity: int) -> float:
    """Return (1 - e^{-w·rate})/(e^{Δ·rate} + 1), Δ the sensitivity (docs/theory/paper.md#q-values, row d)."""
    return qvalues.between(rate, width) * (qvalues.not_prior(sensitivity * rate) / qvalues.not_prior(rate))


@lru_cache(maxsize=4096)
def _q(epsilon: float, width: int, sensitivity: int) -> float:
    """Return the band's q under the noise drawn for ε, from below.

    Its rate is ε/Δ rounded down, so e^{Δ·rate} ≤ e^ε. A q-target with a smaller ε is one with ε.
    """
    return down(_q_at(_rate(epsilon, sensitivity), width, sensitivity))


@final
@dataclass(frozen=True)
class Between(Target):
    """The noisy count lies in the closed band [low, high].

    The price is that of discrete Laplace noise with rate ε/sensitivity, where the band holds `width` integers.

    Attributes:
        low: lower threshold.
        high: upper threshold, with at least one integer in [low, high].
        sensitivity: the most the count changes when a unit is added or removed; an integer.
    """

    low: float
    high: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        """Check that the band is finite and holds an integer, and that the sensitivity is one."""
        checks.threshold(self.low, "low")
        checks.threshold(self.high, "high")
        if self.width < 1:
            expected = f"at least low, with an integer in the closed band from low = {self.low!r} to high"
            raise InvalidParameter("high", self.high, expected)
        object.__setattr__(self, "sensitivity", checks.positive_integer(self.sensitivity, "sensitivity"))

    @property
    def width(self) -> int:
        """Return the number of integers in [low, high]."""
        return math.floor(self.high) - math.ceil(self.low) + 1

    def with_offset(self) -> Between:
        """Return the band as a price sees it where counts carry an offset at λ = ½.

        A unit moves the count by at most half its sensitivity, on the lattice of half steps if that is odd. The
        noise for ε has the rate ε/(half the sensitivity), and a count of the band is both of its half steps. Where
        the band lies has no price.
        """
        steps = 1 + self.sensitivity % 2
        return Between(0, steps * self.width - 1, steps * self.sensitivity // 2)

    def __contains__(self, outcome: object) -> bool:
        """Return whether the published side is BETWEEN."""
        return outcome == Side.BETWEEN

    def kappa(self, order: float, epsilon: float) -> float:
        """Return the (ε, q) price at the band's q; with sensitivity 1 attained at counts low-1 and low."""
        return prices.q_target(order, epsilon, _q(epsilon, self.width, self.sensitivity))

    def part(self, epsilon: float, steps: int) -> tuple[float, float]:
        """Return the (ε, q) of a unit that moves the count by so many steps, at most the sensitivity.

        The noise is the one drawn for ε: its rate R makes the pair (steps·R)-indistinguishable, and the band's q
        is (1 - e^{-wR})/(e^{steps·R} + 1) (docs/theory/paper.md#q-values, row d). ε from above, q from below.
        """
        rate = _rate(epsilon, self.sensitivity)
        return min(epsilon, up(rate * steps)), down(_q_at(rate, self.width, steps))

    def paper_row(self, epsilon: float) -> tuple[float, float]:
        """Return (ε, (1 - e^{-wε/Δ})/(e^ε + 1)), Δ the sensitivity."""
        return epsilon, _q_at(epsilon / self.sensitivity, self.width, self.sensitivity)

    def kind(self, epsilon: float) -> Kind:
        """Return the kind with the band's q at this ε."""
        return Kind(q=_q(epsilon, self.width, self.sensitivity))
