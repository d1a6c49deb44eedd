"""Rényi accounting: one order, one running total, any mix of questions.

A session that charges the price κ for each hit and never lets the charges exceed K has a Rényi moment of at
most e^K at its order a, hence is (ε', δ')-DP with ε' = K/u + ln(1-1/a) - (ln δ' + ln a)/u, u = a-1
(docs/theory/renyi.md#renyi-charging). Every order gives a true statement; the best order gives the smallest ε'.

>>> from targetcharge.accounting.targets import NotPrior
>>> round(renyi_epsilon(NotPrior(False), 0.1, 20, 1e-6), 3)
4.747
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from scipy.optimize import minimize_scalar

from targetcharge import checks
from targetcharge.accounting.budget import check_budget
from targetcharge.errors import InvalidParameter
from targetcharge.numerics.rounding import down, up

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.accounting.budget import Budget

_EXPONENTS = np.geomspace(1e-12, 60.0, 400)
"""Candidate values of uε: from the smallest that matter at ε = 10 to the largest of plain composition."""


@runtime_checkable
class Priced(Protocol):
    """Anything with a Rényi price: a target, or a kind of session."""

    def kappa(self, order: float, epsilon: float) -> float:
        """Return the price of one hit, `inf` where there is none."""
        ...

    def check_epsilon(self, epsilon: float, name: str = "epsilon") -> float:
        """Return the ε of a computation that it can price."""
        ...


def _priced(target: Priced) -> Priced:
    """Return a target; refuse what has no price."""
    if not isinstance(target, Priced):
        raise InvalidParameter("target", target, "a target, such as tc.NotPrior(False)")
    return target


def epsilon_of_total(total: float, order: float, delta: float) -> float:
    """Return the ε' of a session whose charges never exceed `total`, from above (may be negative)."""
    exponent = order - 1
    log_order = math.log1p(exponent)
    parts = (total / exponent, -math.log(delta) / exponent, math.log(exponent), -log_order, -log_order / exponent)
    return sum(parts) + 1e-15 * sum(abs(part) for part in parts)


def total_of_budget(budget: Budget, order: float) -> float:
    """Return the K that a budget grants at this order, from below (not positive: this order buys nothing)."""
    exponent = order - 1
    log_order = math.log1p(exponent)
    surplus = exponent * (log_order - math.log(exponent))
    parts = (exponent * budget.epsilon, surplus, math.log(budget.delta), log_order)
    return sum(parts) - 1e-15 * sum(abs(part) for part in parts)


def _best_order(objective: Callable[[float], float], query_epsilon: float) -> float:
    """Return the order with the smallest objective: a grid in uε, then a bounded search around its best."""
    values = [objective(1 + exponent / query_epsilon) for exponent in _EXPONENTS]
    best = int(np.argmin(values))
    low, high = _EXPONENTS[max(best - 1, 0)], _EXPONENTS[min(best + 1, len(_EXPONENTS) - 1)]
    refined = minimize_scalar(
        lambda exponent: min(objective(1 + exponent / query_epsilon), 1e300),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-9 * high},
    )
    exponent = float(refined.x) if refined.fun <= values[best] else float(_EXPONENTS[best])
    return 1 + exponent / query_epsilon


def best_order_for_hits(priced: Priced, query_epsilon: float, hits: int, delta: float) -> float:
    """Return the order at which `hits` hits have the smallest ε' at δ."""

    def epsilon_at(order: float) -> float:
        return epsilon_of_total(hits * priced.kappa(order, query_epsilon), order, delta)

    return _best_order(epsilon_at, query_epsilon)


def log_delta_of_total(total: float, order: float, epsilon: float) -> float:
    """Return ln δ' of a session whose charges never exceed `total`, from above (may be positive)."""
    exponent = order - 1
    parts = (total, exponent * math.log(exponent), -order * math.log1p(exponent), -exponent * epsilon)
    return sum(parts) + 1e-15 * sum(abs(part) for part in parts)


def best_order_for_epsilon(priced: Priced, query_epsilon: float, hits: int, epsilon: float) -> float:
    """Return the order at which `hits` hits have the smallest δ' at ε'."""

    def log_delta_at(order: float) -> float:
        return log_delta_of_total(hits * priced.kappa(order, query_epsilon), order, epsilon)

    return _best_order(log_delta_at, query_epsilon)


def best_order_for_budget(priced: Priced, query_epsilon: float, budget: Budget) -> float:
    """Return the order at which the budget buys the most hits."""

    def minus_hits(order: float) -> float:
        price = priced.kappa(order, query_epsilon)
        return -total_of_budget(budget, order) / price if price < math.inf else math.inf

    return _best_order(minus_hits, query_epsilon)


def renyi_epsilon(target: Priced, query_epsilon: float, hits: int, delta: float) -> float:
    """Return ε' of a session with this target, query ε and number of hits, at δ, with the best order.

    Args:
        target: what a hit is; `NotPrior`, `Between`, `Boundary`, `Disagreement`, `QTarget`, `Everything`.
        query_epsilon: the ε of each computation.
        hits: the number of hits after which the session stops.
        delta: in (0, 1).
    """
    query_epsilon = _priced(target).check_epsilon(query_epsilon, "query_epsilon")
    hits = checks.hits(hits)
    delta = checks.positive_delta(delta)
    order = best_order_for_hits(target, query_epsilon, hits, delta)
    return max(0.0, epsilon_of_total(up(hits * target.kappa(order, query_epsilon)), order, delta))


def renyi_delta(target: Priced, query_epsilon: float, hits: int, epsilon: float) -> float:
    """Return δ' of a session with this target, query ε and number of hits, at ε', with the best order."""
    query_epsilon = _priced(target).check_epsilon(query_epsilon, "query_epsilon")
    hits = checks.hits(hits)
    epsilon = checks.epsilon_or_zero(epsilon)
    order = best_order_for_epsilon(target, query_epsilon, hits, epsilon)
    return math.exp(min(0.0, log_delta_of_total(up(hits * target.kappa(order, query_epsilon)), order, epsilon)))


def renyi_hits(target: Priced, query_epsilon: float, budget: Budget) -> int:
    """Return how many hits the budget buys at its best order."""
    query_epsilon = _priced(target).check_epsilon(query_epsilon, "query_epsilon")
    checks.positive_delta(check_budget(budget).delta)
    order = best_order_for_budget(target, query_epsilon, budget)
    total = total_of_budget(budget, order)
    return max(0, math.floor(down(total / target.kappa(order, query_epsilon)))) if total > 0 else 0
