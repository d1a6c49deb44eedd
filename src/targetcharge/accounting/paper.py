"""The paper's theorem "Privacy of Target-Charging", with its slips corrected.

A session of (ε, q)-targets that stops at τ hits uses the data in at most r = (1+α)τ/q computations, but for a
chance of δ*(τ, α); composing r computations gives the guarantee (docs/theory/paper.md#the-papers-theorem):

    basic      ( rε ,                                    δ* + C_δ )
    advanced   ( ½rε² + ε·sqrt(2r ln(1/δ)) ,         δ + δ* + C_δ )

The paper prints the advanced line without the 2 under the root; that is false (docs/theory/errata.md#errata).

>>> round(paper_epsilon(0.1, 20, 1e-6), 3)
6.835
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import betaincc

from targetcharge import checks
from targetcharge.accounting import qvalues
from targetcharge.accounting.baselines import advanced_epsilon
from targetcharge.errors import InvalidParameter
from targetcharge.numerics.rounding import up
from targetcharge.numerics.search import largest_integer, smallest_real

if TYPE_CHECKING:
    from collections.abc import Callable

Tail = Literal["simple", "raw", "exact"]
Composition = Literal["basic", "advanced", "best"]


def overrun_probability(hits: int, alpha: float, tail: Tail = "raw") -> float:
    """Return δ*(τ, α), a Chernoff bound on the chance that more than (1+α)τ/q computations used the data.

    simple: exp(-α²τ/(2(1+α))); raw: exp(-(α - ln(1+α))τ).
    """
    hits = checks.hits(hits)
    if not 0 < checks.real(alpha, "alpha", "above 0") < math.inf:
        raise InvalidParameter("alpha", alpha, "finite and above 0")
    if checks.choice(tail, "tail", ("simple", "raw")) == "simple":
        return math.exp(-alpha * alpha * hits / (2 * (1 + alpha)))
    return math.exp(-(alpha - math.log1p(alpha)) * hits)


def _computations(hits: int, q: float, overrun: float, tail: Tail) -> float:
    """Return r: the number of data-dependent computations that is exceeded with chance at most `overrun`."""
    if tail == "exact":
        # More than r are needed exactly if r of them hit fewer than τ times. (Counting one more, as the paper
        # does and the Chernoff forms may, would claim one computation too few: docs/theory/errata.md#errata.)
        # Pr[Bin(r, q) < τ] is the complement of the regularised incomplete beta function I_q(τ, r-τ+1).
        spare = largest_integer(lambda more: float(betaincc(hits, more, q)) * (1 + 1e-10) > overrun)
        return float(hits + spare)
    if tail == "simple":
        ratio = -math.log(overrun) / hits
        alpha = up(ratio + math.sqrt(ratio * ratio + 2 * ratio))
    else:
        wanted = -math.log(overrun) / hits
        alpha = smallest_real(
            lambda a: a - math.log1p(a) >= up(wanted), 0.0, 2 * wanted + 4 * math.sqrt(wanted) + 1
        )
    return (1 + alpha) * hits / q


def paper_epsilon(
    query_epsilon: float,
    hits: int,
    delta: float,
    q: float | None = None,
    tail: Tail = "simple",
    composition: Composition = "best",
    *,
    computation_delta: float = 0.0,
) -> float:
    """Return ε' by the paper's theorem, with the best α and the best split of δ'.

    Args:
        query_epsilon: every computation is private with this ε.
        hits: the number of hits after which the session stops.
        delta: δ' of the whole session.
        q: of the targets; None for NotPrior, 1/(e^ε + 1).
        tail: which bound on the number of data-dependent computations: the paper's simple or raw Chernoff
            form, or the exact binomial tail.
        composition: which composition theorem; "best" takes the smaller.
        computation_delta: C_δ, the sum of the computations' own δ, part of `delta`.
    """
    query_epsilon = checks.query_epsilon(query_epsilon)
    hits = checks.hits(hits)
    q = qvalues.not_prior(query_epsilon) if q is None else checks.q(q)
    checks.choice(tail, "tail", ("simple", "raw", "exact"))
    checks.choice(composition, "composition", ("basic", "advanced", "best"))
    rest = checks.positive_delta(delta) - checks.delta(computation_delta, "computation_delta")
    if rest < checks.MIN_DELTA:
        raise InvalidParameter("computation_delta", computation_delta, f"below delta, which is {delta!r}")

    def basic(overrun: float) -> float:
        return _computations(hits, q, overrun, tail) * query_epsilon

    def advanced(share: float) -> float:
        overrun = share * rest
        return advanced_epsilon(query_epsilon, _computations(hits, q, overrun, tail), rest - overrun)

    bounds = []
    if composition != "advanced":
        bounds.append(basic(rest))
    if composition != "basic":
        bounds.append(_smallest(advanced))
    return up(min(bounds))


def _smallest(function: Callable[[float], float]) -> float:
    """Return the smallest value found over shares in (0, 1): a grid in log-odds, then a bounded search."""

    def at(odds: float) -> float:
        return function(1 / (1 + math.exp(-odds)))

    grid = np.linspace(-18.0, 12.0, 61)
    values = [at(odds) for odds in grid]
    best = int(np.argmin(values))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    refined = minimize_scalar(at, bounds=(low, high), method="bounded", options={"xatol": 1e-6})
    return min(values[best], float(refined.fun))
