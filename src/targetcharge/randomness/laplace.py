"""Discrete Laplace and geometric noise, drawn exactly (Canonne, Kamath, Steinke 2020, Algorithm 2).

The noise k has probability proportional to e^{-|k|·rate}, where the rate is a fraction: the ε asked for, rounded
down, so that the noise is never less than promised.

>>> rate = Rate.at_most(0.1)
>>> 0 <= 0.1 - rate.numerator / rate.denominator < 1e-9
True
>>> from targetcharge.randomness.entropy import SystemEntropy
>>> discrete_laplace_array(SystemEntropy(), rate, 3).shape
(3,)
>>> geometric(SystemEntropy(), rate) >= 0
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.randomness.coins import bernoulli_exp, bernoulli_exp_array, bernoulli_exp_one
from targetcharge.randomness.entropy import below, below_array

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from targetcharge.randomness.entropy import Entropy

_PRECISION_BITS = 32
_MOST_BITS = 52
_TOP_BIT = 63


@dataclass(frozen=True)
class Rate:
    """A rate numerator/denominator of exponential decay; the denominator is a power of two up to 2^52."""

    numerator: int
    denominator: int

    def __post_init__(self) -> None:
        """Refuse what the samplers cannot draw with."""
        expected = f"a power of two up to 2^{_MOST_BITS}, over a numerator of at least 1"
        if self.numerator < 1 or not 1 <= self.denominator <= 2**_MOST_BITS or self.denominator.bit_count() != 1:
            raise InvalidParameter("denominator", (self.numerator, self.denominator), expected)

    @staticmethod
    @lru_cache(maxsize=1024)
    def at_most(epsilon: float) -> Rate:
        """Return the largest rate up to ε with about 32 bits of precision (22 at ε = 1e-9)."""
        epsilon = checks.query_epsilon(epsilon, "epsilon")
        bits = min(_MOST_BITS, max(0, _PRECISION_BITS - math.floor(math.log2(epsilon))))
        return Rate(math.floor(Fraction(epsilon) * 2**bits), 2**bits)


def geometric(entropy: Entropy, rate: Rate) -> int:
    """Return k ≥ 0 with probability (1 - e^{-rate})·e^{-k·rate}, exactly."""
    while True:
        low = below(entropy, rate.denominator)
        if bernoulli_exp(entropy, low, rate.denominator):
            break
    high = 0
    while bernoulli_exp_one(entropy):
        high += 1
    return (low + rate.denominator * high) // rate.numerator


def discrete_laplace(entropy: Entropy, rate: Rate) -> int:
    """Return an integer k with probability proportional to e^{-|k|·rate}, exactly."""
    while True:
        size = geometric(entropy, rate)
        if entropy.word() >> _TOP_BIT:
            return size
        if size:
            return -size


def geometric_array(entropy: Entropy, rate: Rate, count: int) -> NDArray[np.int64]:
    """Return an array of independent draws of `geometric`."""
    return first_accepted(partial(_sizes, entropy, rate), count)


def discrete_laplace_array(entropy: Entropy, rate: Rate, count: int) -> NDArray[np.int64]:
    """Return an array of independent draws of `discrete_laplace`."""
    return first_accepted(partial(signed_sizes, entropy, rate), count)


def first_accepted(draw: Callable[[int], NDArray[np.int64]], count: int) -> NDArray[np.int64]:
    """Return the first draws that are accepted; `draw` returns those of so many tries."""
    parts: list[NDArray[np.int64]] = []
    missing = count
    while missing > 0:
        part = draw(2 * missing + 32)[:missing]
        parts.append(part)
        missing -= len(part)
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _sizes(entropy: Entropy, rate: Rate, tries: int) -> NDArray[np.int64]:
    """Return the geometric draws of independent tries, those that succeed, in order."""
    low = below_array(entropy, np.full(tries, rate.denominator, dtype=np.uint64))
    low = low[bernoulli_exp_array(entropy, low, rate.denominator)]
    high = np.zeros(len(low), dtype=np.uint64)
    active = np.arange(len(low))
    while len(active):
        active = active[bernoulli_exp_array(entropy, np.ones(len(active), dtype=np.uint64), 1)]
        high[active] += np.uint64(1)
    # No overflow: the denominator is at most 2^52, and 4096 successes of probability 1/e do not happen.
    return ((low + np.uint64(rate.denominator) * high) // np.uint64(rate.numerator)).astype(np.int64)


def signed_sizes(entropy: Entropy, rate: Rate, tries: int) -> NDArray[np.int64]:
    """Return the Laplace draws of independent tries: a size and a sign each, but 0 with one sign only."""
    size = _sizes(entropy, rate, tries)
    positive = (entropy.words(len(size)) >> np.uint64(_TOP_BIT)).astype(np.bool_)
    return np.where(positive, size, -size)[positive | (size > 0)]
