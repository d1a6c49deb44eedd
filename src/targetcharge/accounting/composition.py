"""Plain composition: every question is paid for, hit or miss. The yardsticks, and parts of the paper's bound.

>>> round(optimal_epsilon(0.1, 100, 1e-6), 5)
4.77457
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from targetcharge import checks
from targetcharge.errors import InvalidParameter, TooLarge
from targetcharge.numerics.search import largest_integer, smallest_real

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
    if not 0 < checks.real("computations", computations, "finite and above 0") < math.inf:
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
