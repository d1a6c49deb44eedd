"""Coins with probability e^{-rate·n} for whole numbers n, by comparing uniform digits with those of e^{-rate·n}.

One word decides a coin, but for one in 2^64; then the next digits do. The digits are exact: each comes from an
interval of decimal arithmetic that is narrowed until both ends agree, which it always does, since e to a fraction
other than 0 is irrational.

>>> from targetcharge.randomness.entropy import SystemEntropy
>>> coins = ExponentialCoins(1, 10)
>>> coins.draw(np.array([0, 0, 10_000]), SystemEntropy()).tolist()
[True, True, False]
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.errors import InvalidParameter
from targetcharge.randomness.coins import bernoulli_exp_array
from targetcharge.randomness.entropy import WORD_BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.randomness.entropy import Entropy

_LONGEST: Final = 8_192
"""Digits are kept for powers up to here; what is beyond, few or none, is drawn without them."""

_LARGEST_DENOMINATOR: Final = 2**53
_WORD: Final = 1 << WORD_BITS


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
