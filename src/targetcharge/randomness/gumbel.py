"""Discrete Gumbel noise, drawn exactly: Pr[K ≤ k] = exp(-e^{-rate·k}) for every integer k.

K = ⌈-ln(-ln(1 - V))/rate⌉ for a uniform V in (0, 1), of which 64 binary digits are drawn first. Floating point
decides only where it cannot be wrong (`_MARGIN`). What it leaves open, one draw in 16,000 and more at rates below
1e-6, is decided by decimal arithmetic of known error, and by more digits of V, until both ends of the interval
that they leave have the same K. So no tail is cut off.

A rate that is rounded down is on the safe side. K is the top occupied cell of a Poisson process, and between
neighbours its intensity differs by a factor of e^{rate} at most. At a smaller rate s the pair of intensities is a
superposition, (e^s, 1) = a·(e^{rate}, 1) + (1 - a)·(1, 1) with a = (e^s - 1)/(e^{rate} - 1): of the pair that was
accounted for, thinned, and of a process that does not depend on the data.

>>> from targetcharge.randomness.entropy import SystemEntropy
>>> from targetcharge.randomness.laplace import Rate
>>> -10 < discrete_gumbel(SystemEntropy(), Rate.at_most(1.0)) < 100
True
>>> discrete_gumbel_array(SystemEntropy(), Rate.at_most(0.1), 3).shape
(3,)
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from targetcharge.randomness.entropy import WORD_BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.randomness.entropy import Entropy
    from targetcharge.randomness.laplace import Rate

_UNIT: Final = 2.0**-WORD_BITS
_LEAST: Final = 2.0**-20
_MOST: Final = 1 - 2.0**-14

_MARGIN: Final = 2.0**-38
"""A bound of the error of -ln(-ln(1 - V)) in floating point, for `_LEAST` ≤ v ≤ `_MOST`, v the double of V's word.

Let t = -ln(1 - V), from 2^-20 to 9.71, and L = -ln(t), so that |L| < 14 and |dL/dV| = e^t/t. The errors of L:

- V lies up to 2^-64 above its word, and e^t/t is less than 2^21: 2^-43.
- The word is rounded to a double, by at most V·2^-53, and V·e^t/t = (e^t - 1)/t is less than 2^11: 2^-42.
- Both logarithms are taken to be right to a relative 2^-46, 64 units in the last place (libraries keep to a few).
  The inner one moves L by 2^-46, the outer one by 14·2^-46: 2^-42.
- The rate as a double and the division by it are right to a relative 2^-53 each: 2^-48.

The sum is less than 2^-40; the rest is reserve. So if the computed quotient L/rate is farther than 2^-38/rate from
every integer, none lies between it and the exact one.
"""


def discrete_gumbel(entropy: Entropy, rate: Rate) -> int:
    """Return an integer K with Pr[K ≤ k] = exp(-e^{-rate·k}) for every integer k, exactly."""
    word = entropy.word()
    uniform, step = word * _UNIT, rate.numerator / rate.denominator
    if _LEAST <= uniform <= _MOST:
        quotient = -math.log(-math.log1p(-uniform)) / step
        if abs(quotient - round(quotient)) > _MARGIN / step:
            return math.ceil(quotient)
    return _decided_by_digits(entropy, rate, word)


def discrete_gumbel_array(entropy: Entropy, rate: Rate, count: int) -> NDArray[np.int64]:
    """Return an array of independent draws of `discrete_gumbel`."""
    words = entropy.words(count)
    uniform, step = words * _UNIT, rate.numerator / rate.denominator
    inside = np.clip(uniform, _LEAST, _MOST)
    quotient = -np.log(-np.log1p(-inside)) / step
    drawn: NDArray[np.int64] = np.ceil(quotient).astype(np.int64)
    doubtful = (inside != uniform) | (np.abs(quotient - np.rint(quotient)) <= _MARGIN / step)
    for place in np.flatnonzero(doubtful):
        drawn[place] = _decided_by_digits(entropy, rate, int(words[place]))
    return drawn


def _decided_by_digits(entropy: Entropy, rate: Rate, word: int) -> int:
    """Return K for a V whose first digits are given; more are drawn until both ends of what is left have one K.

    All zeros or all ones leave K without a bound on one side. The loop ends with probability 1: V is neither
    0 nor 1 nor at the border of two K.
    """
    digits, bits = word, WORD_BITS
    while True:
        if 0 < digits < 2**bits - 1:
            least, most = _bound(rate, digits + 1, bits, -1), _bound(rate, digits, bits, +1)
            if least == most:
                return least
        digits, bits = digits << WORD_BITS | entropy.word(), bits + WORD_BITS


def _bound(rate: Rate, digits: int, bits: int, side: Literal[-1, 1]) -> int:
    """Return a bound of K for V = digits/2^bits, from below for side -1 and from above for side 1.

    1 - V has at most `bits` decimal digits and is exact. Each logarithm is right to a relative 10^{1-precision};
    the inner one's error is an absolute one of the outer, which 2 covers. The precision is finer than 2^-bits.
    """
    survival = Context(prec=bits).divide(Decimal(2**bits - digits), Decimal(2**bits))
    context = Context(prec=bits // 3 + 10)
    exponential = context.ln(survival).copy_negate()  # a minus sign would round to the precision of the thread
    gumbel = -Fraction(context.ln(exponential))
    blur = (abs(gumbel) + 2) / 10 ** (context.prec - 1)
    bound: int = math.ceil((gumbel + side * blur) * rate.denominator / rate.numerator)
    return bound
