"""Scored outcomes: how much less likely each is made, for the distance of its score from the best.

>>> found = scored(lambda data: data, 0.5, ["a", "b"], sensitivity=1, monotone=True)
>>> [float(exponent) for exponent in found.exponents([3, 5])]
[1.0, 0.0]
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.mechanisms.candidates import declared, scores_of
from targetcharge.randomness import Rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from targetcharge.mechanisms.candidates import Outcomes

_VANISHES: Final = Fraction(1000)
"""e^{-1000} is 0 in double precision."""


@final
@dataclass(frozen=True)
class Scored:
    """Declared outcomes, and a function of the data that scores them.

    Attributes:
        names: the outcomes.
        epsilon: of one run.
        scores: one number for each outcome.
        decay: by how much the exponent grows for each 1 that a score is below the best.
    """

    names: tuple[object, ...]
    epsilon: float
    scores: Callable[[Any], Iterable[float]]
    decay: Fraction

    def exponents(self, data: object) -> list[Fraction]:
        """Return ε·(best - score)/(2·sensitivity) for each outcome; without the 2 for monotone scores."""
        found = [exactly(score) for score in scores_of(self.scores(data), len(self.names))]
        best = max(found)
        return [self.decay * (best - score) for score in found]

    def weights(self, data: object) -> list[float]:
        """Return e to the minus exponent for each outcome."""
        floats = [float(min(exponent, _VANISHES)) for exponent in self.exponents(data)]
        weights: list[float] = np.exp(np.negative(floats)).tolist()
        return weights


def scored(
    scores: Callable[[Any], Iterable[float]],
    epsilon: float,
    outcomes: Outcomes,
    *,
    sensitivity: float,
    monotone: bool,
) -> Scored:
    """Check what a mechanism that chooses by scores was given."""
    checks.function_of_data("scores", scores)
    epsilon = checks.query_epsilon(epsilon, "epsilon")
    rate = Rate.at_most(epsilon)
    shifts = 1 if checks.flag("monotone", monotone) else 2
    decay = Fraction(rate.numerator, rate.denominator * shifts)
    decay /= exactly(checks.positive_real("sensitivity", sensitivity))
    return Scored(declared(outcomes), epsilon, scores, decay)


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
