"""What others offer for the same work: plain compositions, which pay for every question, and published mechanisms.

They are yardsticks, and advanced composition is part of the paper's bound. Each names its source; they protect
different things with different noise: read the docstrings before comparing.

>>> round(optimal_epsilon(0.1, 100, 1e-6), 5)
4.77457
>>> sparse_vector_epsilon(0.1, 5)
0.6...
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from targetcharge import checks
from targetcharge.errors import InvalidParameter, TooLarge
from targetcharge.numerics.search import largest_integer, largest_real, smallest_real

if TYPE_CHECKING:
    from targetcharge.accounting.budget import Budget

MAX_COMPUTATIONS = 1_000_000
"""The most computations whose optimal composition is added up term by term."""


def basic_epsilon(query_epsilon: float, computations: int) -> float:
    """Return kε: pure composition, δ = 0 (Dwork, McSherry, Nissim, Smith 2006)."""
    return checks.hits(computations, "computations") * checks.query_epsilon(query_epsilon)


def advanced_epsilon(query_epsilon: float, computations: float, delta: float) -> float:
    """Return ½kε² + ε·sqrt(2k ln(1/δ)) (Bun and Steinke 2016, by concentrated DP; a real k is allowed)."""
    query_epsilon = checks.query_epsilon(query_epsilon)
    delta = checks.share_of_delta(delta)
    if not 0 < checks.real(computations, "computations", "finite and above 0") < math.inf:
        raise InvalidParameter("computations", computations, "finite and above 0")
    spread = math.sqrt(2 * computations * -math.log(delta))
    return computations * query_epsilon**2 / 2 + query_epsilon * spread


def optimal_delta(query_epsilon: float, computations: int, epsilon: float) -> float:
    """Return δ' of k-fold composition of ε-DP computations at ε', exactly (Kairouz, Oh, Viswanath 2015).

    The worst case is k-fold randomised response: δ' = Σ_i C(k,i) x^i (1-x)^{k-i} max(0, 1 - e^{ε'-(2i-k)ε}).
    All terms are non-negative; the result is rounded up.
    """
    query_epsilon = checks.query_epsilon(query_epsilon)
    count = checks.hits(computations, "computations")
    epsilon = checks.epsilon_or_zero(epsilon)
    if count > MAX_COMPUTATIONS:
        raise TooLarge("computations", count, f"at most {MAX_COMPUTATIONS:,} for optimal composition")
    first = max(0, math.floor((epsilon / query_epsilon + count) / 2))
    ups = np.arange(first, count + 1, dtype=np.float64)
    log_up, log_down = -math.log1p(math.exp(-query_epsilon)), -math.log1p(math.exp(query_epsilon))
    log_choose = gammaln(count + 1) - gammaln(ups + 1) - gammaln(count - ups + 1)
    log_weight = log_choose + ups * log_up + (count - ups) * log_down
    excess = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - (2 * ups - count) * query_epsilon)))
    rounding = 1e-15 * (count + 10) * math.log(count + 2)
    return min(1.0, float(np.sum(np.exp(log_weight) * excess)) * (1 + rounding))


def optimal_epsilon(query_epsilon: float, computations: int, delta: float) -> float:
    """Return the smallest ε' of k-fold composition at δ', from above (Kairouz, Oh, Viswanath 2015)."""
    most = basic_epsilon(query_epsilon, computations)
    if checks.delta(delta) == 0:
        return most
    return smallest_real(
        lambda epsilon: optimal_delta(query_epsilon, computations, epsilon) <= delta, 0.0, most, 1e-10
    )


def optimal_hits(query_epsilon: float, budget: Budget) -> int:
    """Return how many computations a budget covers by optimal composition.

    Raises:
        TooLarge: if more than can be added up.
    """

    def affordable(computations: int) -> bool:
        return optimal_delta(query_epsilon, computations, budget.epsilon) <= budget.delta

    most = largest_integer(affordable, MAX_COMPUTATIONS)
    if most == MAX_COMPUTATIONS:
        expected = f"larger: this budget covers more than the {most:,} computations that can be added up"
        raise TooLarge("query_epsilon", query_epsilon, expected)
    return most


def bounded_range_delta(rate: float, picks: int, epsilon: float) -> float:
    """Return δ' of k picks by exponential mechanisms of one bounded range at ε', the best that is known.

    The worst case is k pairs with the same two log-ratios, t and t - rate; the largest of their δ' is at one of
    t = (ε' + (l+1)·rate)/(k+1), l = 0 … k. It is proven for picks that are not adaptive.

    Source: Dong, Durfee, Rogers, "Optimal differential privacy composition for exponential mechanisms", ICML 2020,
    Theorem 3.
    """
    rate, count = checks.query_epsilon(rate, "rate"), checks.hits(picks, "picks")
    epsilon = checks.epsilon_or_zero(epsilon)
    lower = np.arange(count + 1, dtype=np.float64)  # how many of the log-ratios are the lower one
    log_choose = gammaln(count + 1) - gammaln(lower + 1) - gammaln(count - lower + 1)
    largest = 0.0
    for place in range(count + 1):
        upper = min(rate, (epsilon + (place + 1) * rate) / (count + 1))
        likely = -math.expm1(upper - rate) / -math.expm1(-rate)
        if not 0 < likely < 1:
            continue
        log_weight = log_choose + (count - lower) * math.log(likely) + lower * math.log1p(-likely)
        excess = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - (count * upper - lower * rate))))
        largest = max(largest, float(np.sum(np.exp(log_weight) * excess)))
    return min(1.0, largest * (1 + 1e-12))


@lru_cache(maxsize=64)
def bounded_range_rate(picks: int, budget: Budget) -> float:
    """Return the largest rate of so many picks that a budget covers by `bounded_range_delta`."""
    most = min(checks.MAX_QUERY_EPSILON, 8 * budget.epsilon)
    return largest_real(
        lambda rate: bounded_range_delta(rate, picks, budget.epsilon) <= budget.delta, 1e-9, most, 1e-6
    )


def sparse_vector_epsilon(query_epsilon: float, hits: int, *, monotone: bool = True) -> float:
    """Return ε' of the classic sparse vector technique with δ = 0.

    Laplace noise of scale 1/ε on the threshold, drawn once, and on every query: (c+1)ε for c positives when
    the queries are monotone (counts under adding or removing a unit all move the same way), (2c+1)ε otherwise.
    It answers "above" or "below" only: a noisy value on a hit costs ε more each time.

    Source: Lyu, Su, Li, "Understanding the sparse vector technique for differential privacy", VLDB 2017,
    Algorithm 7 and Theorem 5; Dwork and Roth, "Algorithmic foundations", section 3.6.
    """
    factor = 1 if monotone else 2
    return (1 + factor * checks.hits(hits)) * checks.query_epsilon(query_epsilon)


def between_thresholds_gap(query_epsilon: float, run_delta: float) -> float:
    """Return the gap between thresholds that Bun, Steinke and Ullman's BetweenThresholds needs, on counts.

    With noise of scale 1/ε on the queries a run, which ends at its first "between", is (6ε, δ)-DP provided
    the gap is at least (12/(6ε))·(ln(10/(6ε)) + ln(1/δ) + 1).

    Source: Bun, Steinke, Ullman, "Make up your mind: the price of online queries in differential privacy",
    SODA 2017 (noise Lap(2/ε) on the thresholds, Lap(6/ε) on the queries).
    """
    run_epsilon = 6 * checks.query_epsilon(query_epsilon)
    run_delta = checks.share_of_delta(run_delta, "run_delta")
    return 12 / run_epsilon * (math.log(10 / run_epsilon) - math.log(run_delta) + 1)


def between_thresholds_epsilon(query_epsilon: float, hits: int, delta: float) -> float:
    """Return ε' of `hits` runs of Bun, Steinke and Ullman's BetweenThresholds with query noise 1/ε.

    Half of δ' goes to the runs, half to optimal composition; the gap must be at least
    `between_thresholds_gap(query_epsilon, delta / (2 * hits))`.
    """
    run_epsilon = checks.query_epsilon(6 * checks.query_epsilon(query_epsilon), "6 * query_epsilon")
    return optimal_epsilon(run_epsilon, checks.hits(hits), checks.positive_delta(delta) / 2)


def selection_epsilon(query_epsilon: float, *, known_threshold: bool = False) -> float:
    """Return ε' of selecting the best of many private candidates, each of them ε-DP.

    3ε with a random (geometric) number of trials; 2ε when the first candidate above a known threshold is
    taken and the search gives up at random. One hit here costs `exact_epsilon(query_epsilon, 1, delta)` and
    tries every candidate once.

    Source: Liu and Talwar, "Private selection from private candidates", STOC 2019.
    """
    return (2 if known_threshold else 3) * checks.query_epsilon(query_epsilon)
