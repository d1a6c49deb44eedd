"""Between: a noisy count fell into the band between two thresholds.

>>> target = Between(90, 110)
>>> Side.BETWEEN in target, Side.ABOVE in target
(True, False)
>>> target.width
21
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from targetcharge import checks
from targetcharge.accounting import prices, qvalues
from targetcharge.accounting.kind import Kind
from targetcharge.accounting.targets.target import Target
from targetcharge.errors import InvalidParameter
from targetcharge.numerics.rounding import down
from targetcharge.outcomes import Side
from targetcharge.randomness.laplace import Rate


@lru_cache(maxsize=4096)
def _q(epsilon: float, width: int) -> float:
    """Return the band's q under the noise drawn for ε: its rate is the ε rounded down, so q is a hair smaller."""
    rate = Rate.at_most(epsilon)
    return down(qvalues.between(rate.numerator / rate.denominator, width))


@final
@dataclass(frozen=True)
class Between(Target):
    """The noisy count lies in the closed band [low, high].

    The price is that of discrete Laplace noise with parameter ε, where the band holds `width` integers.

    Attributes:
        low: lower threshold.
        high: upper threshold, with at least one integer in [low, high].
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        """Check that the band is finite and holds an integer."""
        checks.threshold("low", self.low)
        checks.threshold("high", self.high)
        if self.width < 1:
            expected = f"at least low, with an integer in the closed band from low = {self.low!r} to high"
            raise InvalidParameter("high", self.high, expected)

    @property
    def width(self) -> int:
        """Return the number of integers in [low, high]."""
        return math.floor(self.high) - math.ceil(self.low) + 1

    def __contains__(self, outcome: object) -> bool:
        """Return whether the published side is BETWEEN."""
        return outcome == Side.BETWEEN

    def kappa(self, order: float, epsilon: float) -> float:
        """Return the (ε, q) price at the band's q; attained at counts low-1 and low."""
        return prices.q_target(order, epsilon, _q(epsilon, self.width))

    def paper_row(self, epsilon: float) -> tuple[float, float]:
        """Return (ε, (1 - e^{-wε})/(e^ε + 1))."""
        return epsilon, qvalues.between(epsilon, self.width)

    def kind(self, epsilon: float) -> Kind:
        """Return the kind with the band's q at this ε."""
        return Kind(q=_q(epsilon, self.width))
