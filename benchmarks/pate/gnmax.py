"""The accounting of Confident-GNMax (Papernot et al. 2018, "Scalable Private Learning with PATE").

*The aggregator.* Each query first tests whether the largest count plus N(0, σ₁²) reaches a threshold T. If so
the query is answered: the class whose count plus N(0, σ₂²) is largest.

*What it costs.* One changed record changes one teacher, whose vote moves from one class to another: two counts
move by one. The largest count moves by at most 1, so the test is no more than a look at a Gaussian whose mean
moves by 1: its Rényi divergence of order a is at most a/(2σ₁²). Every query pays that. The answer is a function
of the noisy counts, whose means move by √2 in Euclidean distance: at most a·2/(2σ₂²) = a/σ₂². Answered queries
pay that too. Both are linear in the order, so Q queries of which A are answered have, at every order a, at most
a·ρ with

    ρ = Q/(2σ₁²) + A/σ₂².

*What the authors' figure assumes.* Their data-independent ε takes for A its expectation on these votes. A is
random, and its law depends on the votes. A guarantee needs a rule that stops the session before ρ exceeds what
was promised (a privacy filter): since each step's cost is known before it is made and linear in the order, such
a rule loses nothing but the last step, in Rényi DP and in Gaussian DP alike (Feldman, Zrnic 2021; Smith,
Thakurta 2022; Koskela, Tobaben, Honkela 2023). The tables give the peers this rule, and the fraction of the last
step too.

*From ρ to (ε, δ).* Three conversions, each better than the one before:

    authors      ε = a·ρ + ln(1/δ)/(a-1), best of the authors' list of orders
    Rényi        ε = a·ρ + ln(1-1/a) - (ln δ + ln a)/(a-1), best of all orders (the one targetcharge uses)
    Gaussian     δ = Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ), μ = √(2ρ): exact for the noisy counts

>>> parameters = Confident(threshold=200, test_sigma=150, answer_sigma=40)
>>> round(authors_epsilon(parameters.cost(640, 282.72), 1e-5), 3)
3.157
>>> [round(convert(0.19092, 1e-5), 2) for convert in (renyi_epsilon, gaussian_epsilon)]
[2.74, 2.53]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

AUTHORS_ORDERS = np.concatenate([np.arange(2, 101, 0.5), np.geomspace(100, 500, 100)])
"""The orders among which the authors choose the best one after the fact."""

_ORDERS = 1 + np.geomspace(1e-3, 1e5, 20_001)


@dataclass(frozen=True)
class Confident:
    """Parameters of Confident-GNMax.

    Attributes:
        threshold: T; minus infinity for plain GNMax, which tests nothing.
        test_sigma: σ₁, of the test.
        answer_sigma: σ₂, of the answer.
    """

    threshold: float
    test_sigma: float
    answer_sigma: float

    def cost(self, queries: float, answered: float) -> float:
        """Return ρ: the Rényi divergence of order a is at most a·ρ."""
        test = 0.0 if self.threshold == -math.inf else queries / (2 * self.test_sigma**2)
        return test + answered / self.answer_sigma**2


AUTHORS = Confident(threshold=200, test_sigma=150, answer_sigma=40)
AUTHORS_QUERIES = 640


def authors_epsilon(cost: float, delta: float) -> float:
    """Return ε by the conversion and the orders of the authors."""
    return float(np.min(AUTHORS_ORDERS * cost - math.log(delta) / (AUTHORS_ORDERS - 1)))


def renyi_epsilon(cost: float, delta: float) -> float:
    """Return ε by the conversion of docs/theory/renyi.md#renyi-charging at the best order."""
    exponent = _ORDERS - 1
    return float(np.min(_ORDERS * cost + np.log1p(-1 / _ORDERS) - (math.log(delta) + np.log(_ORDERS)) / exponent))


def gaussian_delta(cost: float, epsilon: float) -> float:
    """Return the exact δ of a Gaussian mechanism with μ²/2 = ρ (Balle, Wang 2018)."""
    mu = math.sqrt(2 * cost)
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def gaussian_epsilon(cost: float, delta: float) -> float:
    """Return the exact ε of a Gaussian mechanism with μ²/2 = ρ."""
    return float(brentq(lambda epsilon: gaussian_delta(cost, epsilon) - delta, 0.0, 200.0))


def authors_cost(epsilon: float, delta: float) -> float:
    """Return the ρ that a budget covers by the authors' conversion."""
    return float(np.max((epsilon + math.log(delta) / (AUTHORS_ORDERS - 1)) / AUTHORS_ORDERS))


def gaussian_cost(epsilon: float, delta: float) -> float:
    """Return the ρ that a budget covers exactly: the best that any accounting of this peer can do."""
    return float(brentq(lambda cost: gaussian_delta(cost, epsilon) - delta, 1e-6, 100.0))
