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
import numbers
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from targetcharge import checks
from targetcharge.mechanisms.algorithm import Algorithm
from targetcharge.mechanisms.candidates import Outcomes, declared, scores_of
from targetcharge.mechanisms.finite_law import FiniteOracle
from targetcharge.mechanisms.naming import title
from targetcharge.randomness import Rate, below, bernoulli_exp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from targetcharge.randomness import Entropy

VANISHES = Fraction(1000)
"""e^{-1000} is 0 in double precision."""


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
    checks.function_of_data("scores", scores)
    epsilon = checks.query_epsilon(epsilon, "epsilon")
    rate = Rate.at_most(epsilon)
    shifts = 1 if checks.flag("monotone", monotone) else 2
    decay = Fraction(rate.numerator, rate.denominator * shifts)
    decay /= exactly(checks.positive_real("sensitivity", sensitivity))
    names = declared(outcomes)
    count = len(names)

    def run(data: object, entropy: Entropy) -> object:
        found = [exactly(score) for score in scores_of(scores(data), count)]
        best = max(found)
        while True:
            index = below(entropy, count)
            exponent = decay * (best - found[index])
            if bernoulli_exp(entropy, exponent.numerator, exponent.denominator):
                return names[index]

    def law(data: object) -> list[float]:
        found = [exactly(score) for score in scores_of(scores(data), count)]
        best = max(found)
        weights = [math.exp(-float(min(decay * (best - score), VANISHES))) for score in found]
        total = math.fsum(weights)
        return [weight / total for weight in weights]

    return Algorithm(
        name=title(name, "exponential", scores),
        epsilon=epsilon,
        delta=0.0,
        run=run,
        oracle=FiniteOracle(names, law),
    )


def exactly(score: object) -> Fraction:
    """Return a number as the fraction it stores; NaN, infinities and other things raise."""
    if isinstance(score, numbers.Integral):
        return Fraction(int(score))
    if isinstance(score, Fraction):
        return score
    if isinstance(score, float | np.floating):
        return Fraction(*score.as_integer_ratio())
    msg = "a score must be a real number"
    raise TypeError(msg)
