"""A noisy count: an integer plus discrete Laplace noise.

>>> from targetcharge.randomness import SystemEntropy
>>> algorithm = noisy_count(len, epsilon=1.0)
>>> abs(algorithm.run(range(1000), SystemEntropy()) - 1000) < 100
True
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from targetcharge import checks
from targetcharge.mechanisms.accuracy import Accuracy, exactly
from targetcharge.mechanisms.algorithm import Algorithm
from targetcharge.mechanisms.naming import title
from targetcharge.mechanisms.noise import NoiseLaw, rate_for
from targetcharge.randomness import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.randomness import Entropy


def noisy_count(
    count: Callable[[Any], int],
    epsilon: float,
    *,
    sensitivity: int = 1,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that publishes a count plus discrete Laplace noise of rate ε/sensitivity.

    Args:
        count: a function of the data whose value is an integer.
        epsilon: ε of one run.
        sensitivity: the most the count changes when a unit is added or removed; an integer.
        name: what the transcript calls it.
    """
    checks.function_of_data("count", count)
    rate = rate_for(epsilon, sensitivity)
    index, draw = operator.index, discrete_laplace

    def run(data: object, entropy: Entropy) -> int:
        return index(count(data)) + draw(entropy, rate)

    return Algorithm(
        name=title(name, "noisy_count", count),
        epsilon=float(epsilon),
        delta=0.0,
        run=run,
        oracle=CountOracle(count, NoiseLaw.of(rate)),
        accuracy=Accuracy.of(rate, exactly),
    )


@final
@dataclass(frozen=True)
class CountOracle:
    """The law of a noisy count."""

    count: Callable[[Any], int]
    noise: NoiseLaw

    def probability(self, data: object, outcome: object) -> float:
        """Return the noise's mass at the distance from the count."""
        return self.noise.mass(outcome - operator.index(self.count(data))) if type(outcome) is int else 0.0

    def peak(self, data: object) -> float:  # noqa: ARG002 - the same wherever the count is
        """Return the noise's mass at 0."""
        return self.noise.mass(0)

    def rest(self, data: object) -> float:  # noqa: ARG002 - the same wherever the count is
        """Return the mass of both tails."""
        return 2 * self.noise.at_least(1)
