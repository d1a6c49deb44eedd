"""A noisy count against a band: below, between or above.

>>> from targetcharge.randomness import SystemEntropy
>>> algorithm = between_thresholds(len, low=90, high=110, epsilon=1.0)
>>> algorithm.run(range(10), SystemEntropy())
<Side.BELOW: 'below'>
>>> algorithm.default_target
Between(low=90, high=110, sensitivity=1)
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from targetcharge import checks
from targetcharge.accounting.targets import Between
from targetcharge.mechanisms.accuracy import Accuracy, sided
from targetcharge.mechanisms.algorithm import ANY_PRIOR, Algorithm
from targetcharge.mechanisms.finite_law import FiniteOracle
from targetcharge.mechanisms.naming import title
from targetcharge.mechanisms.noise import NoiseLaw, rate_for
from targetcharge.outcomes import Side
from targetcharge.randomness import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.randomness import Entropy


def between_thresholds(
    count: Callable[[Any], int],
    low: float,
    high: float,
    epsilon: float,
    *,
    sensitivity: int = 1,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that publishes on which side of the closed band [low, high] a noisy count lies.

    Asked with `Between(low, high, sensitivity)`, its default target, only BETWEEN costs.

    Args:
        count: a function of the data whose value is an integer.
        low: lower threshold.
        high: upper threshold, with at least one integer in [low, high].
        epsilon: ε of one run; the noise has rate ε/sensitivity.
        sensitivity: the most the count changes when a unit is added or removed; an integer.
        name: what the transcript calls it.
    """
    checks.function_of_data("count", count)
    band = Between(low, high, sensitivity)
    least, most = math.ceil(low), math.floor(high)
    rate = rate_for(epsilon, band.sensitivity)
    noise = NoiseLaw.of(rate)

    def run(data: object, entropy: Entropy) -> Side:
        value = operator.index(count(data)) + discrete_laplace(entropy, rate)
        if value < least:
            return Side.BELOW
        return Side.ABOVE if value > most else Side.BETWEEN

    return Algorithm(
        name=title(name, "between_thresholds", count),
        epsilon=float(epsilon),
        delta=0.0,
        run=run,
        targets=(*ANY_PRIOR, band),
        default_target=band,
        accuracy=Accuracy.of(rate, sided(least, most)),
        oracle=FiniteOracle(
            (Side.BELOW, Side.BETWEEN, Side.ABOVE),
            lambda data: side_law(operator.index(count(data)), least, most, noise),
        ),
    )


def side_law(count: int, least: int, most: int, noise: NoiseLaw) -> list[float]:
    """Return the probabilities of below, between and above, small ones as precise as large ones."""
    below, above = noise.at_least(count - least + 1), noise.at_least(most + 1 - count)
    if least <= count <= most:
        p = noise.decay(1)
        between = (noise.shortfall(count - least + 1) + p * noise.shortfall(most - count)) / (1 + p)
    else:
        between = noise.at_least(max(least - count, count - most)) * noise.shortfall(most - least + 1)
    return [below, between, above]
