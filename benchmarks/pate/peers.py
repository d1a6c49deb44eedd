"""What the peers' aggregators buy: Confident-GNMax, and mechanisms that pay for every request.

Each gets the best accounting known for it, and is tuned at every budget over a grid of its parameters, as ours is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtr

import targetcharge as tc
from benchmarks.pate.gnmax import AUTHORS, Confident, authors_cost, gaussian_cost
from benchmarks.pate.laws import exponential, gaussian_maximum, noisy_maximum, permute_and_flip
from benchmarks.pate.offers import DELTA, Offer
from targetcharge.accounting.baselines import optimal_hits
from targetcharge.accounting.renyi import total_of_budget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from benchmarks.pate.votes import Votes

AS_PUBLISHED: Final = "Confident-GNMax, as published"
EXACT: Final = "Confident-GNMax, exact accounting"
TUNED: Final = "Confident-GNMax, exact and tuned"
LAPLACE: Final = "LNMax"
EXPONENTIAL: Final = "exponential, bounded range"
PERMUTE: Final = "permute-and-flip, paid always"

_THRESHOLDS: Final = (-math.inf, *range(100, 325, 25))
_TEST_SIGMAS: Final = (20, 30, *range(40, 160, 10), 175, 200, 250, 300)
_ANSWER_SIGMAS: Final = (10, 14, 18, *range(22, 60, 2), 65, 70, 80, 100)
_QUERIES: Final = np.round(np.concatenate([np.arange(0.04, 0.3, 0.01), np.arange(0.3, 0.6, 0.05)]), 3)
_LAPLACE_QUERIES: Final = (0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5)
_EXPONENTS: Final = np.geomspace(1e-2, 1e3, 400)
_SPLITS: Final = np.linspace(0.0, 1.0, 401)[1:-1]


def offers(votes: Votes, epsilons: tuple[float, ...]) -> dict[float, list[Offer]]:
    """Return the offers for each ε'."""
    found: dict[float, list[Offer]] = {epsilon: [] for epsilon in epsilons}
    for epsilon in epsilons:
        found[epsilon].append(confident(votes, AUTHORS, authors_cost(epsilon, DELTA), AS_PUBLISHED))
        found[epsilon].append(confident(votes, AUTHORS, gaussian_cost(epsilon, DELTA), EXACT))
    costs = {epsilon: gaussian_cost(epsilon, DELTA) for epsilon in epsilons}
    for one in _grid(votes):
        for epsilon, cost in costs.items():
            found[epsilon].append(_times(one, cost))
    _always(found, LAPLACE, _LAPLACE_QUERIES, lambda query: noisy_maximum(votes.counts, query), votes)
    _always(found, PERMUTE, _QUERIES, lambda query: permute_and_flip(votes.counts, query), votes)
    _always(found, EXPONENTIAL, _QUERIES, lambda query: exponential(votes.counts, query), votes)
    return found


def confident(votes: Votes, parameters: Confident, cost: float, way: str) -> Offer:
    """Return what Confident-GNMax buys with a budget of ρ."""
    right = gaussian_maximum(votes.counts, parameters.answer_sigma, votes.truth)
    return _times(_one(votes, parameters, right, way), cost)


def _grid(votes: Votes) -> Iterator[Offer]:
    """Yield what a budget of ρ = 1 buys over the grid of parameters."""
    for answer in _ANSWER_SIGMAS:
        right = gaussian_maximum(votes.counts, answer, votes.truth)
        for threshold in _THRESHOLDS:
            for test in _TEST_SIGMAS if threshold > -math.inf else _TEST_SIGMAS[:1]:
                yield _one(votes, Confident(threshold, test, answer), right, TUNED)


def _one(votes: Votes, parameters: Confident, right: NDArray[np.float64], way: str) -> Offer:
    """Return what ρ = 1 buys."""
    top = votes.counts.max(axis=1)
    answered = ndtr((top - parameters.threshold) / parameters.test_sigma)
    share = float(answered.mean())
    asked = 1 / parameters.cost(1.0, share)
    settings = f"σ₂ {parameters.answer_sigma:g}"
    if parameters.threshold > -math.inf:
        settings = f"T {parameters.threshold:g}, σ₁ {parameters.test_sigma:g}, {settings}"
    return Offer(asked * share, float((answered * right).sum() / answered.sum()), asked, way, settings)


def _times(one: Offer, cost: float) -> Offer:
    return Offer(cost * one.labels, one.accuracy, cost * one.asked, one.way, one.settings)


def _always(
    found: dict[float, list[Offer]],
    way: str,
    queries: tuple[float, ...] | NDArray[np.float64],
    law: Callable[[float], NDArray[np.float64]],
    votes: Votes,
) -> None:
    """Add the offers of a mechanism that pays for every request, and labels every one."""
    for query in queries:
        accuracy = float(votes.of_truth(law(query)).mean())
        for epsilon, offers_ in found.items():
            budget = tc.Budget(epsilon, DELTA)
            asked = optimal_hits(query, budget)
            if way == EXPONENTIAL:
                asked = max(asked, bounded_range_requests(query, budget))
            offers_.append(Offer(asked, accuracy, asked, way, f"ε {query:g}"))


def bounded_range_requests(query: float, budget: tc.Budget) -> int:
    """Return how many runs of the exponential mechanism a budget covers, by their bounded range.

    When two counts move by one, the logarithms of the ratios of its probabilities lie in an interval of length ε
    that holds 0, where an ε-DP mechanism may fill [-ε, ε] (Dong, Durfee, Rogers 2020). By convexity the worst pair
    has only the ends t and t-ε as values, with probability p = (e^ε - e^t)/(e^ε - 1) for t; its Rényi moment is
    p·e^{ut} + (1-p)·e^{u(t-ε)}, at most e^{a(a-1)ε²/8}. That allows about four times
    as many runs as ε-DP alone, accounted likewise.
    """
    most = 0.0
    ends = _SPLITS * query
    chance = (math.exp(query) - np.exp(ends)) / math.expm1(query)
    for exponent in _EXPONENTS:
        moment = float(np.max(chance * np.exp(exponent * ends) + (1 - chance) * np.exp(exponent * (ends - query))))
        total = total_of_budget(budget, 1 + exponent)
        if total > 0:
            most = max(most, total / math.log(moment))
    return math.floor(most)
