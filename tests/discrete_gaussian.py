"""Discrete Gaussian noise, from its definition: what laws, chances and games in the tests are compared with.

>>> law = DiscreteGaussian(4.0)
>>> round(law.at_least(-30) - law.at_least(31), 9), abs(law.mass(3) / law.mass(2) - math.exp(-5 / 8)) < 1e-12
(1.0, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

_DEVIATIONS = 39
"""So many standard deviations away the weight is below the smallest double."""


@dataclass(frozen=True)
class DiscreteGaussian:
    """Noise k with probability proportional to e^{-k²/(2·parameter)}; small probabilities keep their digits."""

    parameter: float

    @classmethod
    def of(cls, rate):
        """Return the law of the rate that is drawn with, a fraction: one over σ."""
        return cls(float((rate.denominator / rate.numerator) ** 2))

    def _weight(self, value):
        return math.exp(-value * value / (2 * self.parameter))

    @cached_property
    def reach(self):
        return math.ceil(_DEVIATIONS * math.sqrt(self.parameter)) + 1

    @cached_property
    def _total(self):
        return math.fsum(self._weight(value) for value in range(-self.reach, self.reach + 1))

    @cached_property
    def standard_deviation(self):
        values = range(-self.reach, self.reach + 1)
        return math.sqrt(math.fsum(value * value * self._weight(value) for value in values) / self._total)

    def mass(self, value):
        return self._weight(value) / self._total

    def at_least(self, value):
        if value <= 0:
            return 1 - self.at_least(1 - value)
        return math.fsum(self._weight(other) for other in range(value, self.reach + 1)) / self._total

    @cached_property
    def margin(self):
        """Return the smallest margin that at most 2.5% of noise exceeds, either way."""
        margin = 0
        while self.at_least(margin + 1) > 0.025:
            margin += 1
        return margin
