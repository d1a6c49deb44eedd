"""Discrete Laplace noise, from its definition: what laws, chances and games in the tests are compared with.

>>> law = DiscreteLaplace(0.5)
>>> round(law.at_least(-30) - law.at_least(31), 6), round(law.mass(2) / law.mass(3), 6) == round(math.exp(0.5), 6)
(1.0, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class DiscreteLaplace:
    """Noise k with probability (1 - p)/(1 + p)·p^|k|, p = e^{-rate}; small probabilities keep their digits."""

    rate: float

    @classmethod
    def of(cls, rate):
        """Return the law of the rate that is drawn with: a fraction."""
        return cls(rate.numerator / rate.denominator)

    def mass(self, value):
        return -math.expm1(-self.rate) / (1 + math.exp(-self.rate)) * math.exp(-self.rate * abs(value))

    def at_least(self, value):
        if value <= 0:
            return 1 - self.at_least(1 - value)
        return math.exp(-self.rate * value) / (1 + math.exp(-self.rate))
