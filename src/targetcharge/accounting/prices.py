"""Rényi prices: what one hit adds to the exponent of the session's Rényi moment.

At order a > 1 the *price* of a target is the smallest κ such that for all neighbouring laws Z⁰, Z¹

    Σ_{y∉⊤} Z⁰(y)^a Z¹(y)^{1-a}  +  e^{-κ} Σ_{y∈⊤} Z⁰(y)^a Z¹(y)^{1-a}  ≤  1.

All functions return an upper bound and `inf` where no finite price exists. The bound is at most 1e-9 above the
supremum up to 99.9% of the largest finite order (Boundary: 0.2%, where (a-1)ε > 1e-6), looser just below it.
They are cached: a session prices the same few questions over and over.
Proofs: docs/theory/renyi.md#renyi-prices.

>>> round(not_prior(2.0, 0.1), 7)
0.0235605
>>> round(boundary(2.0, 0.1), 5), round(cautious_boundary(2.0, 0.1, 2.0), 5)
(0.02997, 0.01675)
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge.numerics.rounding import up

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Masses = NDArray[np.float64]

MAX_BOUNDARY_EPSILON = 1.0
"""The boundary wrapper's price was tried up to this ε; above it the wrapper is refused."""

BOUNDARY_MARGIN = 1e-3
"""Relative margin on the boundary price, whose worst case is a maximum on a grid
(docs/theory/renyi.md#caution)."""

MOST_CAUTION: Final = 100.0

_LARGEST_EXPONENT = 300.0

_ROUNDING: Final = 1e-13
"""More than what sums of a few numbers near 1 are off by; it makes prices at a tiny ε larger (safe)."""

_ROUNDING_OF_POWERS: Final = 2e-15
"""More than what a power is off by, for each 1 of the order; up to 1.2e-15 was seen."""

_LINE: Final = 129
_SQUARE: Final = 65
"""Points of the grids on which the price of more caution is a maximum."""


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
def one_sided(order: float, epsilon: float) -> float:
    """Price of a test whose misses speak against the loss: ln(x e^{uε}/(1 - (1-x) e^{-uε})), u = a-1.

    With m = x e^{uε} + (1-x) e^{-uε} it is -ln(1 - (m-1)/(x e^{uε})). Attained by randomised response whose "+"
    hits (docs/theory/offsets.md#laplace).
    """
    shift = (order - 1) * epsilon
    if shift < 1:
        return _minus_log_one_minus(_moment_excess(order, epsilon) * (1 + math.exp(-epsilon)) * math.exp(-shift))
    return up(shift - math.log1p(math.exp(-epsilon)) - math.log1p(-math.exp(-shift) / (1 + math.exp(epsilon))))


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


@lru_cache(maxsize=4096)
def cautious_boundary(order: float, epsilon: float, caution: float) -> float:
    """Price of the mark of a boundary wrapper that marks doubt more readily than the paper's.

    With caution c the mark has probability cπ/(1+cπ), at most c/(2+c), where π is the probability of all outcomes
    but the likeliest; c = 1 is the paper's wrapper. A larger c marks more and makes each mark cheaper. Which pairs
    of laws can be worst is proven (docs/theory/renyi.md#caution). Over those few families, of one or two
    parameters, the price is the largest value on a fine grid, with a margin of 0.1%; infinite where none is known.
    Valid for ε ≤ 1 only; the caller refuses more.
    """
    if order * -math.expm1(-epsilon) >= 1:
        return math.inf  # a nearly sure outcome has no price there
    wrapper = _Wrapper(order, epsilon, caution)
    excess = max(wrapper.vanishing(), wrapper.same_side(), wrapper.undecided(), wrapper.switching())
    excess += _ROUNDING + _ROUNDING_OF_POWERS * order
    return (1 + BOUNDARY_MARGIN) * -math.log1p(-excess) if excess < 1 else math.inf


class _Wrapper:
    """The families of pairs that can be worst. Each method returns the largest 1 - e^{-κ} that one of them needs.

    π₀ and π₁ are the masses of what is not the likeliest outcome, on the two sides.
    """

    def __init__(self, order: float, epsilon: float, caution: float) -> None:
        self._a, self._e, self._c = order, math.exp(epsilon), caution
        # ρ^a on [e^{-ε}, e^ε] is at most the chord: this much for each π₁ and each π₀.
        self._at_one = -math.sinh((order - 1) * epsilon) / math.sinh(epsilon)
        self._at_zero = math.sinh(order * epsilon) / math.sinh(epsilon)
        self._epsilon = epsilon

    def vanishing(self) -> float:
        """One outcome is nearly sure, on both sides: (1+c)/c·(1 - (1 + a(ρ-1))ρ^{-a}), ρ = e^{±ε}."""
        shares = (
            -math.expm1(-self._a * loss) - self._a * math.exp(-self._a * loss) * math.expm1(loss)
            for loss in (self._epsilon, -self._epsilon)
        )
        return (1 + self._c) / self._c * max(shares)

    def same_side(self) -> float:
        """The same outcome is the likeliest on both sides, with ½ on one of them."""
        other = 0.5 * np.exp(-self._epsilon * np.linspace(0, 1, _LINE))
        half = np.full(_LINE, 0.5)
        return max(self._needed(other, half), self._needed(half, other))

    def undecided(self) -> float:
        """No outcome has more than ½ on one side, or on both; the other side is as far away as it can be."""
        response = 1 / (1 + self._e)  # randomised response, where the far side turns
        near = np.append(np.linspace(0.5 / self._e, 0.5, _LINE), response)
        far = np.maximum(0.5, np.minimum(self._e * near, 1 - (1 - near) / self._e))
        moment = self._chord(np.ones(1), np.ones(1))  # of randomised response
        both = self._excess(np.ones(1), np.ones(1), moment)
        return max(self._needed(near, far), self._needed(far, near), both)

    def switching(self) -> float:
        """Two different outcomes are the likeliest on the two sides: all splits at which S can be largest."""
        masses = np.append(np.linspace(0.5 / self._e, 0.5, _SQUARE), 1 / (1 + self._e))
        zero, one = (grid.ravel() for grid in np.meshgrid(masses, masses))
        most_zero, most_one = zero - (1 - one) / self._e, one - (1 - zero) / self._e
        possible = (most_zero >= 0) & (most_one >= 0)
        zero, one, most_zero, most_one = (part[possible] for part in (zero, one, most_zero, most_one))
        rising = np.minimum(most_one, most_zero / self._e)
        falling = np.minimum(most_one, most_zero * self._e)
        corner = (most_zero <= self._e * most_one) & (most_one <= self._e * most_zero)
        splits = (
            (np.zeros_like(zero), np.zeros_like(zero)),
            (self._e * rising, rising),
            (falling / self._e, falling),
            (np.where(corner, most_zero, 0.0), np.where(corner, most_one, 0.0)),
        )
        return max(self._excess(zero, one, self._split(zero, one, *split)) for split in splits)

    def _split(self, zero: Masses, one: Masses, rest_zero: Masses, rest_one: Masses) -> Masses:
        """Return S of 1-π₀ → π₁ - rest, π₀ - rest → 1-π₁ and the rest, cut into small outcomes."""
        first = _moment(1 - zero, one - rest_one, self._a)
        second = _moment(zero - rest_zero, 1 - one, self._a)
        return first + second + self._chord(rest_zero, rest_one)

    def _needed(self, zero: Masses, one: Masses) -> float:
        """One outcome 1-π₀ → 1-π₁, and the rest cut into small outcomes."""
        return self._excess(zero, one, _moment(1 - zero, 1 - one, self._a) + self._chord(zero, one))

    def _chord(self, zero: Masses, one: Masses) -> Masses:
        return self._at_zero * zero + self._at_one * one

    def _excess(self, zero: Masses, one: Masses, moments: Masses) -> float:
        """Return the largest 1 - e^{-κ} that the price inequality needs.

        With n = min(π, ½) it reads S + e^{-κ}·c·n₀^a·n₁^{1-a} ≤ (1+c·n₀)^a·(1+c·n₁)^{1-a}.
        """
        zero, one = np.minimum(zero, 0.5), np.minimum(one, 0.5)
        marked = self._c * _moment(zero, one, self._a)
        all_in_all = _moment(1 + self._c * zero, 1 + self._c * one, self._a)
        return float(((marked + moments - all_in_all) / marked).max())


def _moment(zero: Masses, one: Masses, order: float) -> Masses:
    """Return z₀^a·z₁^{1-a}, by the ratio: neither power on its own would fit."""
    return one * (zero / one) ** order
