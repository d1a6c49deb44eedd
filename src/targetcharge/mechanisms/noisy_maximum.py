"""Report noisy max: the candidate whose score plus discrete Laplace noise is largest.

>>> from targetcharge.randomness import SystemEntropy
>>> votes = ["tea"] * 90 + ["coffee"] * 10
>>> drinks = ["coffee", "tea"]
>>> algorithm = noisy_max(lambda data: [data.count(drink) for drink in drinks], 1.0, drinks, monotone=True)
>>> algorithm.run(votes, SystemEntropy())
'tea'
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from targetcharge import checks
from targetcharge.mechanisms.algorithm import Algorithm
from targetcharge.mechanisms.candidates import Outcomes, declared, scores_of
from targetcharge.mechanisms.finite_law import FiniteOracle
from targetcharge.mechanisms.naming import title
from targetcharge.mechanisms.noise import NoiseLaw, rate_for
from targetcharge.randomness import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy

_MOST_CELLS: Final = 4_000_000
"""Above this many (outcome, value) pairs the law takes too long to compute: the algorithm has no oracle."""

_NEVER: Final = 50.0
"""Noise beyond this many times its scale has probability below 1e-21."""


def noisy_max(
    scores: Callable[[Any], Iterable[int]],
    epsilon: float,
    outcomes: Outcomes,
    *,
    sensitivity: int = 1,
    monotone: bool = False,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that publishes the outcome of the largest noisy score; of equal ones the first.

    The noise has rate ε/(2·sensitivity), ε/sensitivity if monotone. *Why it is ε-DP:* fix the noise of all
    others. Outcome i wins exactly if its noise is at least T - score_i, where T is the largest of the others'
    noisy scores, plus 1 for those listed before i, which win ties. A neighbour moves score_i and T by at most
    the sensitivity each, so T - score_i by at most twice it (once if all scores move the same way), an integer;
    and Pr[noise ≥ k + m] ≥ e^{-rate·m}·Pr[noise ≥ k] for every k and m ≥ 0. Average over the others' noise.

    Args:
        scores: a function of the data: one integer for each outcome, in their order.
        epsilon: ε of one run.
        outcomes: what is published, declared beforehand; a number n stands for 0 … n-1.
        sensitivity: the most any one score changes when a unit is added or removed; an integer.
        monotone: whether adding a unit lowers no score (or raises none).
        name: what the transcript calls it.
    """
    checks.function_of_data("scores", scores)
    rate = rate_for(epsilon, sensitivity, shifts=1 if checks.flag("monotone", monotone) else 2)
    noise = NoiseLaw.of(rate)
    names = declared(outcomes)
    count = len(names)

    def integers(data: object) -> list[int]:
        return [operator.index(score) for score in scores_of(scores(data), count)]

    def run(data: object, entropy: Entropy) -> object:
        noisy = [score + discrete_laplace(entropy, rate) for score in integers(data)]
        return names[noisy.index(max(noisy))]

    feasible = count * (2 * _reach(noise, count) + 1) <= _MOST_CELLS
    return Algorithm(
        name=title(name, "noisy_max", scores),
        epsilon=float(epsilon),
        delta=0.0,
        run=run,
        oracle=FiniteOracle(names, lambda data: winner_law(integers(data), noise)) if feasible else None,
    )


def _reach(noise: NoiseLaw, count: int) -> int:
    return math.ceil((_NEVER + math.log(count)) / noise.rate)


def winner_law(scores: list[int], noise: NoiseLaw) -> list[float]:
    """Return the probability of each index to win, within 1e-12.

    Pr[i] = Σ_v Pr[noisy_i = v]·Π_{j<i} Pr[noisy_j < v]·Π_{j>i} Pr[noisy_j ≤ v], over the values v near the best
    score: further below it the winner is, and further above it any candidate, with probability below 1e-20.
    """
    best, reach = max(scores), _reach(noise, len(scores))
    # Candidates far below all the values that count are as good as at a distance that floats hold exactly.
    values = np.arange(-reach, reach + 1, dtype=np.float64)
    above = [values + float(min(best - score, 10**15)) for score in scores]
    before = np.ones((len(scores), len(values)))
    for index, distance in enumerate(above[:-1]):
        before[index + 1] = before[index] * _at_most(noise, distance - 1)
    after = np.ones(len(values))
    law = []
    for index in range(len(scores) - 1, -1, -1):
        mass = math.tanh(noise.rate / 2) * np.exp(-noise.rate * np.abs(above[index]))
        law.append(float((mass * before[index] * after).sum()))
        after *= _at_most(noise, above[index])
    return law[::-1]


def _at_most(noise: NoiseLaw, distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Pr[noise ≤ distance]: 1 - p^{d+1}/(1+p) from 0 on, p^{-d}/(1+p) below."""
    p = noise.decay(1)
    tail = np.exp(-noise.rate * np.where(distance >= 0, distance + 1, -distance)) / (1 + p)
    return np.where(distance >= 0, 1 - tail, tail)
