"""Rényi prices in closed form: what one hit adds to the exponent of the session's Rényi moment.

At order a > 1 the *price* of a target is the smallest κ such that for all neighbouring laws Z⁰, Z¹

    Σ_{y∉⊤} Z⁰(y)^a Z¹(y)^{1-a}  +  e^{-κ} Σ_{y∈⊤} Z⁰(y)^a Z¹(y)^{1-a}  ≤  1.

All functions return an upper bound and `inf` where no finite price exists. The bound is at most 1e-9 above the
supremum up to 99.9% of the largest finite order (Boundary: 0.2%, where (a-1)ε > 1e-6), looser just below it.
They are cached: a session prices the same few questions over and over.
Proofs: docs/theory/renyi.md#renyi-prices.

>>> round(not_prior(2.0, 0.1), 7)
0.0235605
"""

from __future__ import annotations

import math
from functools import lru_cache

from targetcharge.numerics.rounding import up

MAX_BOUNDARY_EPSILON = 1.0
"""The boundary wrapper's price was tried up to this ε; above it the wrapper is refused."""

BOUNDARY_MARGIN = 1e-3
"""Relative margin on the boundary price, whose worst case is a maximum on a grid
(docs/theory/renyi.md#caution)."""

_LARGEST_EXPONENT = 300.0


def _minus_log_one_minus(excess: float) -> float:
    """Return -ln(1 - excess) from above; infinite from excess = 1 on."""
    excess = up(excess)
    return up(-math.log1p(-excess)) if excess < 1 else math.inf


def _moment_excess(order: float, epsilon: float) -> float:
    """Return m - 1, m = x e^{uε} + (1-x) e^{-uε}: the moment of randomised response, without cancellation.

    The identity is m - 1 = (1-x) e^{-uε} (e^{uε} - 1)(e^{aε} - 1), u = a - 1.
    """
    shift = (order - 1) * epsilon
    return math.exp(-shift) * math.expm1(shift) * math.expm1(order * epsilon) / (1 + math.exp(epsilon))


@lru_cache(maxsize=4096)
def not_prior(order: float, epsilon: float) -> float:
    """Price of NotPrior: -(a-1)ε - ln(1 + e^ε - e^{aε}), written as -ln(1 - (e^{(a-1)ε} - 1)(e^{aε} - 1)).

    Finite for a < ln(1 + e^ε)/ε. Attained by randomised response (docs/theory/renyi.md#renyi-prices).
    """
    if order * epsilon > _LARGEST_EXPONENT:
        return math.inf
    return _minus_log_one_minus(math.expm1((order - 1) * epsilon) * math.expm1(order * epsilon))


@lru_cache(maxsize=4096)
def q_target(order: float, epsilon: float, q: float) -> float:
    """Price of any (ε, q)-target: -ln(1 - (m-1)/H), with H the least moment mass a hit can carry.

    H = q e^{-uε} if q ≤ 1-x, else (1-x) e^{-uε} + (q - (1-x)) e^{uε} (docs/theory/renyi.md#renyi-prices).
    For q > 1-x this equals ln H - ln(1 - (1-q) e^{uε}), the stable form for large prices.
    """
    shift = (order - 1) * epsilon
    if order * epsilon > _LARGEST_EXPONENT:
        # Any free outcome is beyond price at such an order; plain composition costs ln m, whose e^{-uε} is nil.
        return up(shift - math.log1p(math.exp(-epsilon))) if q == 1 else math.inf
    miss = 1 / (1 + math.exp(epsilon))
    excess = _moment_excess(order, epsilon)
    if q <= miss:
        return _minus_log_one_minus(excess / (q * math.exp(-shift)))
    hit_mass = miss * math.exp(-shift) + (q - miss) * math.exp(shift)
    if excess < hit_mass / 2:
        return _minus_log_one_minus(excess / hit_mass)
    lost = up((1 - q) * math.exp(shift))
    return up(math.log(hit_mass) - math.log1p(-lost)) if lost < 1 else math.inf


@lru_cache(maxsize=4096)
def disagreement(order: float, epsilon: float) -> float:
    """Price of "the two runs differ": ln(2 m₊ m₋ / (1 - m₊² - m₋²)), m₊ = x e^{uε}, m₋ = (1-x) e^{-uε}.

    Since 2 m₊ m₋ = 2x(1-x) and m₊ + m₋ = m this is -ln(1 - (m² - 1)/(2x(1-x))) (docs/theory/exact.md#run-twice).
    """
    if order * epsilon > _LARGEST_EXPONENT:
        return math.inf
    excess = _moment_excess(order, epsilon)
    both_signs = 2 / ((1 + math.exp(epsilon)) * (1 + math.exp(-epsilon)))
    return _minus_log_one_minus(excess * (2 + excess) / both_signs)


@lru_cache(maxsize=4096)
def boundary(order: float, epsilon: float) -> float:
    """Price of the boundary wrapper's mark: max(κ₂, κ₃) with a margin of 0.1% (docs/theory/renyi.md#boundary).

    With w = 1 - e^{-ε} and E = e^ε - 1:
    κ₂ = -ln( e^{aε} (3(1 - w/3)^a - (1+w)^a) - 1 ), one dominant outcome against none;
    κ₃ = -ln( 3(1 + E/3)^a - (1 + E/2)^{a-1} (e^{aε} + e^{(1-a)ε}) ), randomised response.
    Valid for ε ≤ 1 only; the caller refuses more.
    """
    exponent = order * epsilon
    if exponent > _LARGEST_EXPONENT:
        return math.inf
    shift = exponent - epsilon
    fall, rise = -math.expm1(-epsilon), math.expm1(epsilon)
    dominant = -(
        2 * math.expm1(exponent)
        + math.exp(exponent)
        * (3 * math.expm1(order * math.log1p(-fall / 3)) - math.expm1(order * math.log1p(fall)))
    )
    growth = math.expm1((order - 1) * math.log1p(rise / 2))
    spread = math.expm1(exponent) + math.expm1(-shift)
    response = -(3 * math.expm1(order * math.log1p(rise / 3)) - spread - 2 * growth - growth * spread)
    rounding = 1e-14 * math.expm1(exponent)
    return (1 + BOUNDARY_MARGIN) * _minus_log_one_minus(max(dominant, response) + rounding)
