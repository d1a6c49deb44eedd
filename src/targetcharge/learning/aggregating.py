"""Aggregating: from a row of counts to one outcome, as one ε-DP computation.

An aggregator may first test whether enough teachers agree (ε₁), then choose a class (ε₂): together ε₁ + ε₂.

>>> import numpy as np
>>> from targetcharge.mechanisms.choice import CHOICES
>>> from targetcharge.randomness import SystemEntropy
>>> aggregator = Aggregator(CHOICES["exponential"](1.0), Agreement(threshold=150, epsilon=1.0))
>>> aggregator.draw(np.array([[0, 250], [125, 125]]), SystemEntropy()).tolist()  # the second: too few agree
[1, 2]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from targetcharge.randomness import Rate, discrete_laplace_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.mechanisms.choice import Choice
    from targetcharge.randomness import Entropy


@final
class Agreement:
    """The test that the largest count, with discrete Laplace noise of rate ε, reaches a threshold.

    A changed record moves the largest count by at most one, so it is ε-DP.
    """

    def __init__(self, threshold: float, epsilon: float) -> None:
        """Test against a threshold."""
        self._least = math.ceil(threshold)
        self._rate = Rate.at_most(epsilon)

    def draw(self, counts: NDArray[np.int64], entropy: Entropy) -> NDArray[np.bool_]:
        """Return which rows pass."""
        noise = discrete_laplace_array(entropy, self._rate, len(counts))
        passed: NDArray[np.bool_] = counts.max(axis=1) + noise >= self._least
        return passed

    def law(self, counts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the probabilities to pass and to fail, each without cancellation."""
        distance = self._least - counts.max(axis=1)
        return self._at_least(distance), self._at_least(1 - distance)

    def _at_least(self, distance: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return Pr[noise ≥ d]: p^d/(1+p) above 0, else (1 + p·(1 - p^{-d}))/(1+p), with p = e^{-rate}."""
        rate = self._rate.numerator / self._rate.denominator
        p, tail = math.exp(-rate), np.exp(-rate * np.abs(distance))
        return np.where(distance > 0, tail, 1 + p * (1 - tail)) / (1 + p)


@final
@dataclass(frozen=True)
class Aggregator:
    """A choice, perhaps after a test of agreement.

    Attributes:
        choice: of a class.
        agreement: the test before it, if there is one.
    """

    choice: Choice
    agreement: Agreement | None = None

    def draw(self, counts: NDArray[np.int64], entropy: Entropy) -> NDArray[np.intp]:
        """Return a column for each row, or the number of columns where too few agree."""
        chosen = self.choice.choose_rows(counts, entropy)
        if self.agreement is None:
            return chosen
        return np.where(self.agreement.draw(counts, entropy), chosen, counts.shape[1])

    def rest(self, counts: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return the probability of all outcomes but the likeliest: what the boundary wrapper needs."""
        rest = self.choice.rest_of_rows(counts)
        if rest is None or self.agreement is None:
            return rest
        passed, low = self.agreement.law(counts)
        return np.where(low >= passed * (1 - rest), passed, low + passed * rest)
