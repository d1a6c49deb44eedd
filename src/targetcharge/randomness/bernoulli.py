"""Coins: exact for the probability given.

>>> from targetcharge.randomness.entropy import SystemEntropy
>>> bernoulli(SystemEntropy(), 1.0), bernoulli(SystemEntropy(), 0.0)
(True, False)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from targetcharge.errors import InvalidParameter
from targetcharge.randomness.entropy import WORD_BITS, below, below_array

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from targetcharge.randomness.entropy import Entropy

_TWO_64 = 2.0**WORD_BITS
_TWENTY_FACTORIAL = math.factorial(20)


def bernoulli(entropy: Entropy, probability: float | Fraction) -> bool:
    """Return True with exactly this probability: a float is the fraction it stores, to the last bit."""
    if not 0 <= probability <= 1:
        raise InvalidParameter("probability", probability, "in [0, 1]")
    numerator, denominator = probability.as_integer_ratio()
    return below(entropy, denominator) < numerator


def bernoulli_exp(entropy: Entropy, numerator: int, denominator: int) -> bool:
    """Return True with probability e^{-numerator/denominator}, exactly, without computing the exponential.

    Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020, Algorithm 1.
    """
    while numerator > denominator:
        if not bernoulli_exp_one(entropy):
            return False
        numerator -= denominator
    return _bernoulli_exp_at_most_one(entropy, numerator, denominator)


def bernoulli_exp_one(entropy: Entropy) -> bool:
    """Return True with probability e^{-1}, exactly.

    The same algorithm at γ = 1, where Bernoulli(1/k) is "a uniform digit below k is 0": one uniform integer below
    20! holds the digits for k = 2 … 20 in mixed radix.
    """
    digits = below(entropy, _TWENTY_FACTORIAL)
    for base in range(2, 21):
        digits, digit = divmod(digits, base)
        if digit:
            return base % 2 == 1
    base = 21
    while below(entropy, base) == 0:
        base += 1
    return base % 2 == 1


def _bernoulli_exp_at_most_one(entropy: Entropy, numerator: int, denominator: int) -> bool:
    """For γ ≤ 1: the first k with a failed Bernoulli(γ/k) is odd with probability e^{-γ}."""
    bound, odd = denominator, True
    while below(entropy, bound) < numerator:
        bound += denominator
        odd = not odd
    return odd


def bernoulli_array(entropy: Entropy, probabilities: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return True with exactly these probabilities, each the fraction that its float stores.

    A uniform number below the probability, compared 64 binary digits at a time; scaling by 2^64 is exact.
    """
    left = np.ldexp(probabilities, WORD_BITS)
    whole = np.floor(left)
    drawn = np.zeros(len(left), dtype=np.bool_)
    drawn[left >= _TWO_64] = True
    undecided = np.flatnonzero(left < _TWO_64)
    while len(undecided):
        first, here = entropy.words(len(undecided)), whole[undecided].astype(np.uint64)
        drawn[undecided] = first < here
        undecided = undecided[first == here]
        left[undecided] = np.ldexp(left[undecided] - whole[undecided], WORD_BITS)
        whole[undecided] = np.floor(left[undecided])
        undecided = undecided[left[undecided] > 0]
    return drawn


def bernoulli_exp_array(entropy: Entropy, numerators: NDArray[np.uint64], denominator: int) -> NDArray[np.bool_]:
    """Return True with probability e^{-numerator/denominator} for each numerator; denominator up to 2^53."""
    step = np.uint64(denominator)
    large = np.flatnonzero(numerators > step)
    if not len(large):
        return _exp_at_most_one(entropy, numerators, step)
    rest = numerators.copy()
    ones = (numerators[large] - np.uint64(1)) // step
    rest[large] -= ones * step
    drawn = _exp_at_most_one(entropy, rest, step)
    while len(large):
        goes_on = drawn[large] & (ones > 0)
        large, ones = large[goes_on], ones[goes_on] - np.uint64(1)
        drawn[large] = _exp_at_most_one(entropy, np.ones(len(large), dtype=np.uint64), np.uint64(1))
    return drawn


def _exp_at_most_one(entropy: Entropy, numerators: NDArray[np.uint64], step: np.uint64) -> NDArray[np.bool_]:
    """Return the same for numerators up to the denominator: the array form of `_bernoulli_exp_at_most_one`."""
    odd = np.ones(len(numerators), dtype=np.bool_)
    active = np.arange(len(numerators))
    bound = step
    while len(active):
        goes_on = below_array(entropy, np.full(len(active), bound)) < numerators[active]
        active = active[goes_on]
        odd[active] = ~odd[active]
        bound += step
    return odd
