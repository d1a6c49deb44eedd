"""Coins: exact for the probability given, one at a time or many.

`ExponentialCoins` draws many coins with probability e^{-rate·n} for whole numbers n, by comparing uniform digits
with those of e^{-rate·n}. One word decides a coin, but for one in 2^64; then the next digits do. The digits are
exact: each comes from an interval of decimal arithmetic that is narrowed until both ends agree, which it always
does, since e to a fraction other than 0 is irrational.

>>> from targetcharge.randomness.entropy import SystemEntropy
>>> bernoulli(SystemEntropy(), 1.0), bernoulli(SystemEntropy(), 0.0)
(True, False)
>>> ExponentialCoins(1, 10).draw(np.array([0, 0, 10_000]), SystemEntropy()).tolist()
[True, True, False]
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.errors import InvalidParameter
from targetcharge.randomness.entropy import WORD_BITS, below, below_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.randomness.entropy import Entropy

_TWO_64: Final = 2.0**WORD_BITS
_TWENTY_FACTORIAL: Final = math.factorial(20)

_LONGEST: Final = 8_192
"""Digits are kept for powers up to here; what is beyond, few or none, is drawn without them."""

_LARGEST_DENOMINATOR: Final = 2**53
_WORD: Final = 1 << WORD_BITS


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


@final
class ExponentialCoins:
    """Coins for one rate: a table of first digits, as long as the largest power that was asked for."""

    def __init__(self, numerator: int, denominator: int) -> None:
        """Fix the rate: a numerator and a denominator of at least 1, the latter up to 2^53."""
        if numerator < 1 or not 1 <= denominator <= _LARGEST_DENOMINATOR:
            expected = "a denominator up to 2^53, under a numerator of at least 1"
            raise InvalidParameter("denominator", (numerator, denominator), expected)
        self._rate = Fraction(numerator, denominator)
        self._first = np.zeros(1, dtype=np.uint64)

    def draw(self, powers: NDArray[np.int64], entropy: Entropy) -> NDArray[np.bool_]:
        """Return True with probability e^{-rate·power} for each power from 0 to a million, in any shape."""
        largest = int(powers.max(initial=0))
        if largest > _LONGEST:
            return self._without_digits(powers, entropy)
        words = entropy.words(powers.size).reshape(powers.shape)
        first = self._up_to(largest)[powers]
        drawn: NDArray[np.bool_] = (words < first) | (powers == 0)
        for place in zip(*np.nonzero((words == first) & (powers != 0)), strict=True):
            drawn[place] = self._undecided(int(powers[place]), entropy)
        return drawn

    def _without_digits(self, powers: NDArray[np.int64], entropy: Entropy) -> NDArray[np.bool_]:
        numerators = powers.ravel().astype(np.uint64) * np.uint64(self._rate.numerator)
        return bernoulli_exp_array(entropy, numerators, self._rate.denominator).reshape(powers.shape)

    def _up_to(self, largest: int) -> NDArray[np.uint64]:
        known = self._first  # other threads may extend it meanwhile, by the same digits
        if largest >= len(known):
            more = [digits(self._rate * power, 1) for power in range(len(known), largest + 1)]
            self._first = known = np.concatenate([known, np.array(more, dtype=np.uint64)])
        return known

    def _undecided(self, power: int, entropy: Entropy) -> bool:
        """Return the coin whose first digit is that of its probability: the next that differs decides."""
        place = 2
        while (word := entropy.word()) == (digit := digits(self._rate * power, place) % _WORD):
            place += 1
        return word < digit


def digits(exponent: Fraction, count: int) -> int:
    """Return the first digits of e^{-exponent} to the base 2^64 as one number: ⌊2^{64·count}·e^{-exponent}⌋.

    The quotient and the exponential are each within 10^{1-precision} of the truth, relatively; the exponential
    makes exponent times as much of the quotient's error.
    """
    precision = 20 * count + 10
    while True:
        context = Context(prec=precision)
        quotient = context.divide(Decimal(-exponent.numerator), Decimal(exponent.denominator))
        scaled = Fraction(context.exp(quotient)) * _WORD**count
        blur = scaled * (exponent + 2) / 10 ** (precision - 1)
        low: int = math.floor(scaled - blur)
        if low == math.floor(scaled + blur):
            return low
        precision *= 2
