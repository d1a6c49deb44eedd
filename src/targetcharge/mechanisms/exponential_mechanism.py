"""The exponential mechanism, drawn exactly: better candidates are exponentially more likely.

>>> from targetcharge.randomness import SystemEntropy
>>> votes = ["tea"] * 90 + ["coffee"] * 10
>>> drinks = ["coffee", "tea"]
>>> algorithm = exponential(lambda data: [data.count(drink) for drink in drinks], 1.0, drinks)
>>> algorithm.run(votes, SystemEntropy())
'tea'
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from targetcharge.mechanisms.algorithm import Algorithm
from targetcharge.mechanisms.finite_law import FiniteOracle
from targetcharge.mechanisms.naming import title
from targetcharge.mechanisms.scored import scored
from targetcharge.randomness import below, bernoulli_exp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from targetcharge.mechanisms.candidates import Outcomes
    from targetcharge.randomness import Entropy


def exponential(
    scores: Callable[[Any], Iterable[float]],
    epsilon: float,
    outcomes: Outcomes,
    *,
    sensitivity: float = 1,
    monotone: bool = False,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that picks an outcome with probability proportional to e^{ε·score/(2·sensitivity)}.

    With monotone scores the exponent is ε·score/sensitivity: numerator and normaliser move the same way.
    Drawing takes up to as many tries as there are outcomes on average; scores are taken exactly as they are.

    Args:
        scores: a function of the data: one number for each outcome, in their order. What counts is the number it
            returns, rounding errors included.
        epsilon: ε of one run.
        outcomes: what is published, declared beforehand; a number n stands for 0 … n-1.
        sensitivity: the most any one score changes when a unit is added or removed.
        monotone: whether adding a unit lowers no score (or raises none).
        name: what the transcript calls it.
    """
    found = scored(scores, epsilon, outcomes, sensitivity=sensitivity, monotone=monotone)

    def run(data: object, entropy: Entropy) -> object:
        exponents = found.exponents(data)
        while True:
            index = below(entropy, len(exponents))
            if bernoulli_exp(entropy, exponents[index].numerator, exponents[index].denominator):
                return found.names[index]

    def law(data: object) -> list[float]:
        weights = found.weights(data)
        total = math.fsum(weights)
        return [weight / total for weight in weights]

    return Algorithm(
        name=title(name, "exponential", scores),
        epsilon=found.epsilon,
        delta=0.0,
        run=run,
        oracle=FiniteOracle(found.names, law),
    )
