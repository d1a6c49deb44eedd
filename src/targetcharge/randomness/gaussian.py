"""Discrete Gaussian noise, drawn exactly: Pr[k] is proportional to e^{-k²·rate²/2} for every integer k.

By rejection from discrete Laplace noise (Canonne, Kamath, Steinke 2020, Algorithm 3), here of the same rate s:

    e^{-k²s²/2} = √e · e^{-|k|s} · e^{-(|k|s - 1)²/2}.

So a Laplace draw k that is kept with probability e^{-(|k|s - 1)²/2} has this law. The exponent is the fraction
a²/(2d²) with a = |k|n - d for a rate n/d, and its coin is exact: draws use no floating point. A Laplace draw is
kept with probability Σ e^{-k²s²/2}·tanh(s/2)/√e: 0.76 for small rates, 0.61 for large ones, at least 0.55 for any.

The standard deviation is at most 1/rate. A rate that is rounded down is on the safe side: the Rényi divergence of
order α between the noise and the noise moved by an integer m is at most α·m²·rate²/2. For the sum of
e^{-αk²s²/2 - (1-α)(k-m)²s²/2} is e^{α(α-1)m²s²/2}·Σ e^{-(k-(1-α)m)²s²/2}, and a sum of e^{-(k-x)²s²/2} over all
integers k is largest where x is one: by Poisson summation it is a sum of cosines of 2πjx with positive weights.

The sums of e^{-k²·rate²/2} that its law is made of (`laws.py`) are right to 12 digits.

>>> from targetcharge.randomness.entropy import SystemEntropy
>>> from targetcharge.randomness.laplace import Rate
>>> -100 < discrete_gaussian(SystemEntropy(), Rate.at_most(0.1)) < 100
True
>>> discrete_gaussian_array(SystemEntropy(), Rate.at_most(0.1), 3).shape
(3,)
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import erfcx

from targetcharge.randomness.coins import bernoulli_exp, bernoulli_exp_array
from targetcharge.randomness.entropy import below_array
from targetcharge.randomness.laplace import discrete_laplace, first_accepted, signed_sizes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.randomness.entropy import Entropy
    from targetcharge.randomness.laplace import Rate

_FURTHEST: Final = 39.0
"""Where |k|·rate is this or more, e^{-k²·rate²/2} is 0 in double precision."""

_SUMMED: Final = 2.0**-9
"""Sums of terms are added up at this rate and larger ones; at smaller ones formulas have them."""


def discrete_gaussian(entropy: Entropy, rate: Rate) -> int:
    """Return an integer k with probability proportional to e^{-k²·rate²/2}, exactly."""
    while True:
        value = discrete_laplace(entropy, rate)
        distance = abs(value) * rate.numerator - rate.denominator
        if bernoulli_exp(entropy, distance**2, 2 * rate.denominator**2):
            return value


def discrete_gaussian_array(entropy: Entropy, rate: Rate, count: int) -> NDArray[np.int64]:
    """Return an array of independent draws of `discrete_gaussian`."""
    return first_accepted(partial(_values, entropy, rate), count)


def _values(entropy: Entropy, rate: Rate, tries: int) -> NDArray[np.int64]:
    """Return the Gaussian draws of independent tries, those that succeed, in order.

    Let (|k|s - 1)² = (whole + part/d)². Its half is whole²/2 + whole·part/d + (part/d)²/2: a coin for each term.
    """
    values = signed_sizes(entropy, rate, tries)
    # No overflow: |k|n is at most 2^52 for each success of probability 1/e and one more, and 2000 do not happen.
    distance = np.abs(np.abs(values) * rate.numerator - rate.denominator).astype(np.uint64)
    whole, part = np.divmod(distance, np.uint64(rate.denominator))
    kept = _exp_half_square(entropy, part, rate.denominator)
    far = np.flatnonzero(kept & (whole > 0))
    far_whole, far_part = whole[far], part[far]
    kept[far] = bernoulli_exp_array(entropy, far_whole * far_whole, 2)
    kept[far] &= bernoulli_exp_array(entropy, far_whole * far_part, rate.denominator)
    return values[kept]


def _exp_half_square(entropy: Entropy, numerators: NDArray[np.uint64], denominator: int) -> NDArray[np.bool_]:
    """Return True with probability e^{-γ}, γ = (numerator/denominator)²/2, for numerators up to the denominator.

    As in `coins.py`: the first k with a failed Bernoulli(γ/k) is odd with probability e^{-γ}. Here that coin is "a
    uniform integer below 2k is 0, and two below the denominator are less than the numerator".
    """
    odd = np.ones(len(numerators), dtype=np.bool_)
    active = np.arange(len(numerators))
    bound = 2
    while len(active):
        active = active[below_array(entropy, np.full(len(active), bound, dtype=np.uint64)) == 0]
        for _ in range(2):
            digits = below_array(entropy, np.full(len(active), denominator, dtype=np.uint64))
            active = active[digits < numerators[active]]
        odd[active] = ~odd[active]
        bound += 2
    return odd


def sum_of_terms(rate: float) -> float:
    """Return Σ e^{-k²·rate²/2} over all integers k.

    For small rates √(2π)/rate: by Poisson summation it is larger by a relative 2e^{-2π²/rate²}, less than 10^-300.
    """
    if rate < _SUMMED:
        return math.sqrt(2 * math.pi) / rate
    return 1 + 2 * float(_summed(rate)[1])


def sum_of_squares(rate: float) -> float:
    """Return Σ k²·e^{-k²·rate²/2} over all integers k.

    It is 2·Σ_{k≥1} (2k - 1)·T_k, T_k = Σ_{j≥k} e^{-j²·rate²/2}; for small rates √(2π)/rate³, as precisely.
    """
    if rate < _SUMMED:
        return math.sqrt(2 * math.pi) / rate**3
    sums = _summed(rate)[1:]
    return 2 * float(np.sum((2 * np.arange(len(sums)) + 1) * sums))


def sums_from(rate: float, steps: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return T_k = Σ_{j≥k} e^{-j²·rate²/2} for each k ≥ 1 of an array.

    For small rates by the Euler-Maclaurin formula: with y = k·rate, T_k is e^{-y²/2} times

        ∫_y^∞ e^{(y²-u²)/2} du/rate + ½ + rate·y/12 - rate³·(y³ - 3y)/720 + rate⁵·(y⁵ - 10y³ + 15y)/30240.

    The next term and the remainder after it are less than 5·(rate·y/2π)^8 of T_k where y > 4.2, and less than
    10^-20 of it below: at most 3·10^-15.
    """
    sums: NDArray[np.float64]
    if rate >= _SUMMED:
        summed = _summed(rate)
        sums = summed[np.minimum(steps, len(summed) - 1).astype(np.int64)]
        return sums
    y = np.minimum(rate * steps, _FURTHEST)
    square = y**2
    third, fifth = (square - 3) / 720, (square**2 - 10 * square + 15) / 30240
    integral = erfcx(y / math.sqrt(2)) * (math.sqrt(math.pi / 2) / rate)
    corrections = 0.5 + rate * y * (1 / 12 - rate**2 * (third - rate**2 * fifth))
    sums = np.exp(-square / 2) * (integral + corrections)
    return sums


@lru_cache(maxsize=64)
def _summed(rate: float) -> NDArray[np.float64]:
    """Return T_k = Σ_{j≥k} e^{-j²·rate²/2} for k = 0, 1, …, until it is 0.

    The smallest terms come first. So rounding moves T_k by a relative 2^-53·Σ_{j≥k} T_j/T_k, less than 10^-13.
    """
    steps = np.arange(math.ceil(_FURTHEST / rate) + 1, -1, -1)
    return np.cumsum(np.exp(-((rate * steps) ** 2) / 2))[::-1]
