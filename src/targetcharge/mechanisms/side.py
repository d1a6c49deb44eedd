"""A noisy count against one threshold: below or above.

>>> from targetcharge.mechanisms.boundary_wrapper import boundary
>>> from targetcharge.randomness import SystemEntropy
>>> algorithm = side_of_threshold(len, threshold=100, epsilon=1.0)
>>> algorithm.run(range(10), SystemEntropy())
<Side.BELOW: 'below'>
>>> boundary(algorithm).run(range(1000), SystemEntropy())
<Side.ABOVE: 'above'>
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from targetcharge import checks
from targetcharge.accounting.targets import NotPrior
from targetcharge.mechanisms.accuracy import Accuracy, sided
from targetcharge.mechanisms.algorithm import Algorithm
from targetcharge.mechanisms.finite_law import FiniteOracle
from targetcharge.mechanisms.naming import title
from targetcharge.mechanisms.noise import NoiseLaw, rate_for
from targetcharge.outcomes import Side
from targetcharge.randomness import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.randomness import Entropy


def side_of_threshold(
    count: Callable[[Any], int],
    threshold: float,
    epsilon: float,
    *,
    sensitivity: int = 1,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that publishes whether a noisy count is BELOW a threshold, or at least it: ABOVE.

    As it is, ABOVE costs: `default_target` is NotPrior(Side.BELOW). Wrapped by `boundary`, either side is free and
    only counts close to the threshold cost.

    Args:
        count: a function of the data whose value is an integer.
        threshold: the least noisy count that is ABOVE.
        epsilon: ε of one run; the noise has rate ε/sensitivity.
        sensitivity: the most the count changes when a unit is added or removed; an integer.
        name: what the transcript calls it.
    """
    checks.function_of_data("count", count)
    least = math.ceil(checks.threshold("threshold", threshold))
    rate = rate_for(epsilon, sensitivity)
    noise = NoiseLaw.of(rate)

    def run(data: object, entropy: Entropy) -> Side:
        value = operator.index(count(data)) + discrete_laplace(entropy, rate)
        return Side.ABOVE if value >= least else Side.BELOW

    def law(data: object) -> list[float]:
        distance = least - operator.index(count(data))
        return [noise.at_least(1 - distance), noise.at_least(distance)]

    return Algorithm(
        name=title(name, "side_of_threshold", count),
        epsilon=float(epsilon),
        delta=0.0,
        run=run,
        default_target=NotPrior(Side.BELOW),
        oracle=FiniteOracle((Side.BELOW, Side.ABOVE), law),
        accuracy=Accuracy.of(rate, sided(least, least - 1)),
    )
