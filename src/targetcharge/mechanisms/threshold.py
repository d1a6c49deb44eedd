"""A private test: the noisy count if it reaches a threshold, else nothing.

>>> from targetcharge.randomness import SystemEntropy
>>> algorithm = above_threshold(len, threshold=100, epsilon=1.0)
>>> algorithm.run(range(10), SystemEntropy()) is None
True
>>> algorithm.default_target
NotPrior(prior=None)
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from targetcharge import checks
from targetcharge.accounting.targets import NotPrior
from targetcharge.mechanisms.accuracy import Accuracy, above
from targetcharge.mechanisms.algorithm import Algorithm
from targetcharge.mechanisms.naming import title
from targetcharge.mechanisms.noise import NoiseLaw, rate_for
from targetcharge.randomness import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.randomness import Entropy


def above_threshold(
    count: Callable[[Any], int],
    threshold: float,
    epsilon: float,
    *,
    sensitivity: int = 1,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that publishes a noisy count where it is at least the threshold, else None.

    It costs only when it publishes a count: `default_target` is NotPrior(None).

    Args:
        count: a function of the data whose value is an integer.
        threshold: the least noisy count that is published.
        epsilon: ε of one run; the noise has rate ε/sensitivity.
        sensitivity: the most the count changes when a unit is added or removed; an integer.
        name: what the transcript calls it.
    """
    checks.function_of_data("count", count)
    least = math.ceil(checks.threshold("threshold", threshold))
    rate = rate_for(epsilon, sensitivity)
    index, draw = operator.index, discrete_laplace

    def run(data: object, entropy: Entropy) -> int | None:
        value = index(count(data)) + draw(entropy, rate)
        return value if value >= least else None

    return Algorithm(
        name=title(name, "above_threshold", count),
        epsilon=float(epsilon),
        delta=0.0,
        run=run,
        default_target=NotPrior(None),
        oracle=ThresholdOracle(count, least, NoiseLaw.of(rate)),
        accuracy=Accuracy.of(rate, above(least - 1)),
    )


@final
@dataclass(frozen=True)
class ThresholdOracle:
    """The law of a noisy count that is published from `least` on."""

    count: Callable[[Any], int]
    least: int
    noise: NoiseLaw

    def probability(self, data: object, outcome: object) -> float:
        """Return the mass of all counts below for None, else the noise's mass at the distance from the count."""
        count = operator.index(self.count(data))
        if outcome is None:
            return self.noise.at_least(count - self.least + 1)
        return self.noise.mass(outcome - count) if type(outcome) is int and outcome >= self.least else 0.0

    def peak(self, data: object) -> float:
        """Return the larger of None's mass and the largest mass of a published count."""
        none, published, _ = self._peaks(data)
        return max(none, published)

    def rest(self, data: object) -> float:
        """Return the mass of what is published if None is the peak, else of all but that count."""
        none, published, distance = self._peaks(data)
        # A count is the peak only where the true count is published: below it None has more than half.
        return self.noise.at_least(distance) if none >= published else 2 * self.noise.at_least(1)

    def _peaks(self, data: object) -> tuple[float, float, int]:
        distance = self.least - operator.index(self.count(data))
        return self.noise.at_least(1 - distance), self.noise.mass(max(0, distance)), distance
