"""Permute-and-flip, drawn exactly: never more error than the exponential mechanism at equal ε, and down to half.

Candidates come in random order; each is taken with probability e^{-ε·(best - score)/(2·sensitivity)}, else the
next one is tried (McKenna and Sheldon 2020). The best is taken when its turn comes, so there is always an outcome.

>>> from targetcharge.randomness import SystemEntropy
>>> votes = ["tea"] * 90 + ["coffee"] * 10
>>> drinks = ["coffee", "tea"]
>>> algorithm = permute_and_flip(lambda data: [data.count(drink) for drink in drinks], 1.0, drinks)
>>> algorithm.run(votes, SystemEntropy())
'tea'
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import roots_legendre

from targetcharge.mechanisms.algorithm import Algorithm
from targetcharge.mechanisms.finite_law import FiniteOracle
from targetcharge.mechanisms.naming import title
from targetcharge.mechanisms.scored import scored
from targetcharge.randomness import below, bernoulli_exp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from targetcharge.mechanisms.candidates import Outcomes
    from targetcharge.randomness import Entropy

_MOST_CELLS: Final = 4_000_000
"""Above this many (outcome, node) pairs the law takes too long to compute: the algorithm has no oracle."""


def permute_and_flip(
    scores: Callable[[Any], Iterable[float]],
    epsilon: float,
    outcomes: Outcomes,
    *,
    sensitivity: float = 1,
    monotone: bool = False,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that tries the outcomes in random order and takes each with its own probability.

    That probability is e^{-ε·(best - score)/(2·sensitivity)}; with monotone scores without the 2.
    *Why it is ε-DP:* its outcome has the law of the largest score with independent exponential noise of rate
    ε/(2·sensitivity), for which the argument of `noisy_max` holds (docs/theory/labels.md#permute-and-flip).

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
    count = len(found.names)

    def run(data: object, entropy: Entropy) -> object:
        exponents, left = found.exponents(data), list(range(count))
        while True:
            index = left.pop(below(entropy, len(left)))
            if bernoulli_exp(entropy, exponents[index].numerator, exponents[index].denominator):
                return found.names[index]

    def law(data: object) -> list[float]:
        masses: list[float] = winners(np.array([found.weights(data)]))[0].tolist()
        return masses

    return Algorithm(
        name=title(name, "permute_and_flip", scores),
        epsilon=found.epsilon,
        delta=0.0,
        run=run,
        oracle=FiniteOracle(found.names, law) if count * (count // 2 + 1) <= _MOST_CELLS else None,
    )


def winners(accepted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each candidate's probability to win, for rows of probabilities p to be taken; one of each row is 1.

    Pr[r] = p_r·∫₀¹ Π_{s≠r} (1 - p_s·t) dt. The integrand has degree m-1 in t, so Gauss and Legendre's rule with
    m/2 nodes is exact; all its terms are positive, so small probabilities keep their relative precision.
    """
    total = np.zeros_like(accepted)
    for node, weight in nodes(accepted.shape[1]):
        refused = 1 - accepted * node
        total += weight * accepted / refused * refused.prod(axis=1, keepdims=True)
    return total


@lru_cache(maxsize=16)
def nodes(candidates: int) -> tuple[tuple[float, float], ...]:
    """Return the nodes in (0, 1) and weights that integrate polynomials of degree candidates - 1 exactly."""
    places, weights = roots_legendre(candidates // 2 + 1)
    return tuple(zip(((places + 1) / 2).tolist(), (weights / 2).tolist(), strict=True))
