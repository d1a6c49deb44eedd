"""Private choices of one of several outcomes by their scores: exponential, permute-and-flip, noisy max.

Each is a class that chooses for one row of scores, whatever exact numbers they are, or for a table of counts, a
million rows in seconds; and a function that makes an algorithm of it. A unit changes each score by at most the
sensitivity, some up and some down, monotone scores all up or all down; in a table it changes each count of a row
by at most one, as one vote of many does (docs/theory/labels.md#votes).

>>> from targetcharge.randomness import SystemEntropy
>>> votes = ["tea"] * 90 + ["coffee"] * 10
>>> drinks = ["coffee", "tea"]
>>> algorithm = permute_and_flip(lambda data: [data.count(drink) for drink in drinks], 1.0, drinks)
>>> algorithm.run(votes, SystemEntropy())
'tea'
>>> for mechanism, choice in CHOICES.items():
...     print(mechanism, choice(1.0).choose_rows(np.array([[0, 250], [250, 0]]), SystemEntropy()).tolist())
permute_and_flip [1, 0]
exponential [1, 0]
noisy_max [1, 0]
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from scipy.special import roots_legendre

from targetcharge import checks
from targetcharge.mechanisms.algorithm import Algorithm, algorithm_name, declared_outcomes, row_of
from targetcharge.mechanisms.noise import NoiseLaw, rate_for
from targetcharge.mechanisms.oracles import FiniteOracle
from targetcharge.randomness import (
    ExponentialCoins,
    Rate,
    below,
    below_array,
    bernoulli_exp,
    discrete_laplace,
    discrete_laplace_array,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.mechanisms.algorithm import Outcomes
    from targetcharge.randomness import Entropy

    Shares = Callable[[NDArray[np.float64]], NDArray[np.float64]]
    """From the weights e^{-rate·gap} of each row's candidates to their probabilities."""

Scores = Callable[[Any], Iterable[float]]
"""A function of the data whose value is one number for each outcome, in their order."""

_MOST_CELLS: Final = 4_000_000
"""Above this many terms the law of a row takes too long to compute: the algorithm has no oracle."""

_MOST_EXAMPLES: Final = 8

_FAR: Final = Fraction(700)
"""Exponents are cut off here where weights are computed: 0 would be another thing than very little."""

_NEVER: Final = 50.0
"""Noise beyond this many times its scale has probability below 1e-21."""


def exponential(
    scores: Scores,
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
    choice = Exponential(epsilon, sensitivity, monotone=monotone)
    return _algorithm("exponential", choice, scores, epsilon, outcomes, name)


def permute_and_flip(
    scores: Scores,
    epsilon: float,
    outcomes: Outcomes,
    *,
    sensitivity: float = 1,
    monotone: bool = False,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that tries the outcomes in random order and takes each with its own probability.

    That probability is e^{-ε·(best - score)/(2·sensitivity)}; with monotone scores without the 2. The best is
    taken when its turn comes, so there is always an outcome (McKenna and Sheldon 2020). It never errs more than
    the exponential mechanism at equal ε, and down to half as much.

    *Why it is ε-DP:* its outcome has the law of the largest score with independent exponential noise of rate
    ε/(2·sensitivity), for which the argument of `noisy_max` holds (docs/theory/labels.md#permute-and-flip).

    Its arguments are those of `exponential`.
    """
    choice = PermuteAndFlip(epsilon, sensitivity, monotone=monotone)
    return _algorithm("permute_and_flip", choice, scores, epsilon, outcomes, name)


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
    choice = NoisyMax(epsilon, sensitivity, monotone=monotone)
    return _algorithm("noisy_max", choice, scores, epsilon, outcomes, name)


def _algorithm(
    mechanism: str, choice: Choice, scores: Scores, epsilon: float, outcomes: Outcomes, name: str | None
) -> Algorithm:
    checks.function_of_data(scores, "scores")
    declared = declared_outcomes(outcomes)
    count = len(declared)
    law = FiniteOracle(declared, lambda data: choice.law(row_of(scores(data), count)))
    return Algorithm(
        name=algorithm_name(name, mechanism, scores),
        epsilon=float(epsilon),
        delta=0.0,
        run=lambda data, entropy: declared[choice.choose(row_of(scores(data), count), entropy)],
        oracle=law if choice.cells(count) <= _MOST_CELLS else None,
        examples=lambda: declared[:_MOST_EXAMPLES],
    )


@final
class _Decay:
    """e^{-rate·gap}, where the gap is how far a score is below the best: as exact coins and as numbers."""

    def __init__(self, epsilon: float, sensitivity: float, *, monotone: bool) -> None:
        epsilon = checks.query_epsilon(epsilon, "epsilon")
        shifts = 1 if checks.flag(monotone, "monotone") else 2
        most = Rate.at_most(epsilon)
        change = _fraction(checks.positive_real(sensitivity, "sensitivity"))
        self._rate = Fraction(most.numerator, most.denominator * shifts) / change

    def exponents(self, scores: list[Any]) -> list[Fraction]:
        """Return rate·gap for each score."""
        exact = [_fraction(score) for score in scores]
        best = max(exact)
        return [self._rate * (best - score) for score in exact]

    def law(self, scores: list[Any], shares: Shares) -> list[float]:
        """Return each candidate's probability, by its share."""
        exponents = [float(min(exponent, _FAR)) for exponent in self.exponents(scores)]
        law: list[float] = shares(np.exp(np.negative([exponents])))[0].tolist()
        return law

    @cached_property
    def coins(self) -> ExponentialCoins:
        """Return coins with probability e^{-rate·gap} for whole gaps of at most a million."""
        return ExponentialCoins(self._rate.numerator, self._rate.denominator)

    def rest_of_rows(self, counts: NDArray[np.int64], shares: Shares) -> NDArray[np.float64]:
        """Return the probability of all columns but the likeliest, for each row."""
        law = shares(np.exp(-np.minimum(_gaps(counts) * float(self._rate), float(_FAR))))
        np.put_along_axis(law, law.argmax(axis=1)[:, None], 0.0, axis=1)
        rest: NDArray[np.float64] = law.sum(axis=1)
        return rest


def _fraction(score: object) -> Fraction:
    """Return a number as the fraction it stores; NaN, infinities and other things raise."""
    if isinstance(score, numbers.Integral):
        return Fraction(int(score))
    if isinstance(score, Fraction):
        return score
    if isinstance(score, float | np.floating):
        return Fraction(*score.as_integer_ratio())
    msg = "a score must be a real number"
    raise TypeError(msg)


def _gaps(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    gaps: NDArray[np.int64] = counts.max(axis=1, keepdims=True) - counts
    return gaps


@final
class Exponential:
    """A candidate with probability proportional to e^{-rate·gap}."""

    def __init__(self, epsilon: float, sensitivity: float = 1, *, monotone: bool = False) -> None:
        """Choose with the rate ε/(2·sensitivity), or ε/sensitivity if monotone."""
        self._decay = _Decay(epsilon, sensitivity, monotone=monotone)

    def choose(self, scores: list[Any], entropy: Entropy) -> int:
        """Return the index of a candidate: uniform ones, taken with probability e^{-rate·gap}, until one is."""
        exponents = self._decay.exponents(scores)
        while True:
            index = below(entropy, len(exponents))
            if bernoulli_exp(entropy, exponents[index].numerator, exponents[index].denominator):
                return index

    def choose_rows(self, counts: NDArray[np.int64], entropy: Entropy) -> NDArray[np.intp]:
        """Return a column for each row, in the same way for all rows at once."""
        gaps = _gaps(counts)
        chosen = np.empty(len(gaps), dtype=np.intp)
        waiting = np.arange(len(gaps))
        while len(waiting):
            bounds = np.full(len(waiting), gaps.shape[1], dtype=np.uint64)
            candidates = below_array(entropy, bounds).astype(np.intp)
            taken = self._decay.coins.draw(gaps[waiting, candidates], entropy)
            chosen[waiting[taken]] = candidates[taken]
            waiting = waiting[~taken]
        return chosen

    def law(self, scores: list[Any]) -> list[float]:
        """Return each candidate's weight over that of all."""
        return self._decay.law(scores, _over_their_sum)

    def cells(self, candidates: int) -> int:  # noqa: ARG002 - never too many
        """Return 1: the law takes no longer than the scores."""
        return 1

    def rest_of_rows(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the share of all columns but the best, for each row."""
        return self._decay.rest_of_rows(counts, _over_their_sum)


def _over_their_sum(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return shares


@final
class PermuteAndFlip:
    """Candidates in random order; each is taken with probability e^{-rate·gap}, else the next is tried."""

    def __init__(self, epsilon: float, sensitivity: float = 1, *, monotone: bool = False) -> None:
        """Choose with the rate ε/(2·sensitivity), or ε/sensitivity if monotone."""
        self._decay = _Decay(epsilon, sensitivity, monotone=monotone)

    def choose(self, scores: list[Any], entropy: Entropy) -> int:
        """Return the index of the first candidate that is taken."""
        exponents, left = self._decay.exponents(scores), list(range(len(scores)))
        while True:
            index = left.pop(below(entropy, len(left)))
            if bernoulli_exp(entropy, exponents[index].numerator, exponents[index].denominator):
                return index

    def choose_rows(self, counts: NDArray[np.int64], entropy: Entropy) -> NDArray[np.intp]:
        """Return a column for each row: of those whose coin says so, the one whose turn comes first.

        Coins do not depend on the order, so they are thrown first; all orders of what they leave are as likely.
        """
        accepted = self._decay.coins.draw(_gaps(counts), entropy)
        chosen: NDArray[np.intp] = accepted.argmax(axis=1)
        several = np.flatnonzero(accepted.sum(axis=1) > 1)
        if len(several):
            ranks = accepted[several].cumsum(axis=1)
            turn = below_array(entropy, ranks[:, -1].astype(np.uint64)).astype(np.intp)
            chosen[several] = (ranks > turn[:, None]).argmax(axis=1)
        return chosen

    def law(self, scores: list[Any]) -> list[float]:
        """Return each candidate's probability to be the first that is taken."""
        return self._decay.law(scores, first_taken)

    def cells(self, candidates: int) -> int:
        """Return the number of candidates times that of the nodes."""
        return candidates * (candidates // 2 + 1)

    def rest_of_rows(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probability of all columns but the best, for each row."""
        return self._decay.rest_of_rows(counts, first_taken)


def first_taken(accepted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each candidate's probability to win, for rows of probabilities p to be taken; one of each row is 1.

    Pr[r] = p_r·∫₀¹ Π_{s≠r} (1 - p_s·t) dt. The integrand has degree m-1 in t, so Gauss and Legendre's rule with
    m/2 nodes is exact; all its terms are positive, so small probabilities keep their relative precision.
    """
    total = np.zeros_like(accepted)
    for node, weight in _nodes(accepted.shape[1]):
        refused = 1 - accepted * node
        total += weight * refused.prod(axis=1, keepdims=True) / refused
    total *= accepted
    return total


@lru_cache(maxsize=16)
def _nodes(candidates: int) -> tuple[tuple[float, float], ...]:
    """Return the nodes in (0, 1) and weights that integrate polynomials of degree candidates - 1 exactly."""
    places, weights = roots_legendre(candidates // 2 + 1)
    return tuple(zip(((places + 1) / 2).tolist(), (weights / 2).tolist(), strict=True))


@final
class NoisyMax:
    """The candidate with the largest integer score plus discrete Laplace noise; of equal ones the first."""

    def __init__(self, epsilon: float, sensitivity: int = 1, *, monotone: bool = False) -> None:
        """Choose with noise of rate ε/(2·sensitivity), or ε/sensitivity if monotone."""
        self._rate = rate_for(epsilon, sensitivity, shifts=1 if checks.flag(monotone, "monotone") else 2)
        self._noise = NoiseLaw.of(self._rate)

    def choose(self, scores: list[Any], entropy: Entropy) -> int:
        """Return the index of the largest noisy score."""
        noisy = [operator.index(score) + discrete_laplace(entropy, self._rate) for score in scores]
        return noisy.index(max(noisy))

    def choose_rows(self, counts: NDArray[np.int64], entropy: Entropy) -> NDArray[np.intp]:
        """Return the column of the largest noisy count of each row: PATE's LNMax, with discrete noise."""
        noise = discrete_laplace_array(entropy, self._rate, counts.size).reshape(counts.shape)
        chosen: NDArray[np.intp] = (counts + noise).argmax(axis=1)
        return chosen

    def law(self, scores: list[Any]) -> list[float]:
        """Return the probability of each candidate to win, within 1e-12.

        Pr[i] = Σ_v Pr[noisy_i = v]·Π_{j<i} Pr[noisy_j < v]·Π_{j>i} Pr[noisy_j ≤ v], over the values v near the
        best score: further below it the winner is, and further above it any candidate, with probability below
        1e-20.
        """
        integers = [operator.index(score) for score in scores]
        best, reach, rate = max(integers), self._reach(len(integers)), self._noise.rate
        # Candidates far below all the values that count are as good as at a distance that floats hold exactly.
        values = np.arange(-reach, reach + 1, dtype=np.float64)
        above = [values + float(min(best - score, 10**15)) for score in integers]
        before = np.ones((len(integers), len(values)))
        for index, distance in enumerate(above[:-1]):
            before[index + 1] = before[index] * self._noise.at_least_array(1 - distance)
        after = np.ones(len(values))
        law = []
        for index in range(len(integers) - 1, -1, -1):
            mass = math.tanh(rate / 2) * np.exp(-rate * np.abs(above[index]))
            law.append(float((mass * before[index] * after).sum()))
            after *= self._noise.at_least_array(-above[index])
        return law[::-1]

    def cells(self, candidates: int) -> int:
        """Return the number of candidates times that of the values of their noise that count."""
        return candidates * (2 * self._reach(candidates) + 1)

    def rest_of_rows(self, counts: NDArray[np.int64]) -> None:
        """Return nothing: a sum over all values of the noise for every row."""

    def _reach(self, candidates: int) -> int:
        return math.ceil((_NEVER + math.log(candidates)) / self._noise.rate)


Choice = Exponential | PermuteAndFlip | NoisyMax

CHOICES: Final[dict[str, Callable[[float], Choice]]] = {
    "permute_and_flip": PermuteAndFlip,
    "exponential": Exponential,
    "noisy_max": NoisyMax,
}
