"""One of many with probability proportional to e^{-rate·gap}, exactly, in a few passes over an array.

A candidate is proposed with an integer weight that is at least 2^40·e^{-rate·gap}, and taken with the quotient of
the two: nearly always. Floating point makes the integer weights, which may be any upper bounds, and decides a coin
only where it cannot be wrong (`_ERROR`); exact digits of the exponential decide the others.

>>> from fractions import Fraction
>>> from targetcharge.randomness.entropy import SystemEntropy
>>> exponential_choice(SystemEntropy(), np.array([900, 0, 700]), Fraction(1, 2))
1
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge.errors import InvalidParameter
from targetcharge.randomness.coins import digits
from targetcharge.randomness.entropy import WORD_BITS, below

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from targetcharge.randomness.entropy import Entropy

_WEIGHT_BITS: Final = 40
_MOST: Final = 1 << 22
"""Candidates: sums of their weights fit into 63 bits."""

_ERROR: Final = 2.0**-36
"""A bound of the relative error of e^{-x} in floating point, for x up to 700.

x is rounded by at most 3·2^-53 of itself (gap, rate and their product), which moves e^{-x} by 700·3·2^-53 < 2^-41
of itself; the exponential is taken to be right to a relative 2^-46. The rest is reserve. Beyond 700 the integer
weight is 1, and the coin is decided by digits unless its uniform number is far above e^{-700}.
"""

_FAR: Final = 700.0


def exponential_choice(entropy: Entropy, gaps: NDArray[np.int64], rate: Fraction) -> int:
    """Return an index with probability proportional to e^{-rate·gap}, exactly.

    Args:
        entropy: the source of bits.
        gaps: of at least one and at most 2^22 candidates, each at least 0; one of them 0, so that tries are few.
        rate: above 0.
    """
    if not 0 < len(gaps) <= _MOST:
        raise InvalidParameter("gaps", len(gaps), f"those of 1 to {_MOST:,} candidates")
    shares = np.exp(-np.minimum(gaps * float(rate), _FAR))
    bounds = np.ceil(shares * ((1 + _ERROR) * 2.0**_WEIGHT_BITS)).astype(np.int64)
    ends = np.cumsum(bounds)
    while True:
        place = below(entropy, int(ends[-1]))
        index = int(np.searchsorted(ends, place, side="right"))
        if _taken(entropy, int(gaps[index]) * rate, float(shares[index]), int(bounds[index])):
            return index


def _taken(entropy: Entropy, exponent: Fraction, share: float, bound: int) -> bool:
    """Return True with probability 2^40·e^{-exponent}/bound: a uniform number below the bound is below the weight.

    Both are compared in units of 2^-24, that is e^{-exponent} as a number of 64 binary digits.
    """
    uniform = below(entropy, bound << (WORD_BITS - _WEIGHT_BITS))
    about = math.ldexp(share, WORD_BITS)
    if uniform < about * (1 - _ERROR) - 1 and exponent < _FAR:
        return True
    if uniform > about * (1 + _ERROR) + 1:
        return False
    if not exponent:  # 1 has no digits that could be told from those of a number just below
        return uniform < 1 << WORD_BITS
    place, first = 1, digits(exponent, 1)
    while uniform == first:
        place, uniform = place + 1, entropy.word()
        first = digits(exponent, place) % (1 << WORD_BITS)
    return uniform < first
