"""Decay: e^{-ε·gap/2}, as exact coins and as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.randomness import ExponentialCoins, Rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy

_FAR: Final = 700.0


@final
@dataclass(frozen=True)
class Decay:
    """The rate ε/2, with ε rounded down to a fraction.

    Attributes:
        numerator: of the rate.
        denominator: of the rate; a power of two up to 2^53.
    """

    numerator: int
    denominator: int

    @classmethod
    def of(cls, epsilon: float) -> Decay:
        """Return half of a rate of at most ε."""
        rate = Rate.at_most(epsilon)
        return cls(rate.numerator, 2 * rate.denominator)

    @cached_property
    def _coins(self) -> ExponentialCoins:
        return ExponentialCoins(self.numerator, self.denominator)

    def coins(self, gaps: NDArray[np.int64], entropy: Entropy) -> NDArray[np.bool_]:
        """Return True with probability e^{-ε·gap/2}, exactly, for gaps of at most a million."""
        return self._coins.draw(gaps, entropy)

    def weights(self, gaps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return e^{-ε·gap/2}, at least e^{-700}: 0 would be another thing than very little."""
        exponents = np.minimum(gaps * (self.numerator / self.denominator), _FAR)
        weights: NDArray[np.float64] = np.exp(-exponents)
        return weights


def gaps_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how far each count is below the largest of its row."""
    gaps: NDArray[np.int64] = counts.max(axis=1, keepdims=True) - counts
    return gaps
