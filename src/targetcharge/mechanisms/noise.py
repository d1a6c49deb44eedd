"""The noise of counts: its rate for a sensitivity, and its law. All of it is known from public facts only.

>>> rate = rate_for(0.3, sensitivity=3)
>>> rate.numerator / rate.denominator <= 0.1
True
>>> law = NoiseLaw.of(rate)
>>> round(law.mass(0) + 2 * law.at_least(1), 15), law.margin()
(1.0, 30)
>>> noise = CountNoise.natural(0.1, sensitivity=1)
>>> noise.margins, noise.margins_of_rank(1, 1000)  # the largest of a thousand is off by more
((30, 30), (30, 99))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.numerics.rounding import quotient_down
from targetcharge.numerics.search import smallest_integer
from targetcharge.randomness import (
    Entropy,
    Rate,
    discrete_gaussian,
    discrete_gaussian_array,
    discrete_gumbel,
    discrete_gumbel_array,
    discrete_laplace,
    discrete_laplace_array,
    geometric,
    geometric_array,
    laws,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.accounting import OffsetNoise
    from targetcharge.randomness.laws import Noise

CONFIDENCE: Final = laws.CONFIDENCE

NoiseLaw = laws.LaplaceLaw
"""The law of the noise of counts."""

_MOST_OFFSETS: Final = 200_000


def rate_for(epsilon: float, sensitivity: int, *, shifts: int = 1) -> Rate:
    """Return a rate of at most ε/(shifts·sensitivity), as exact fractions, and only just below it.

    Args:
        epsilon: what the noise must hide.
        sensitivity: the most a unit changes a count.
        shifts: how many such changes the noise must hide at once.
    """
    epsilon = checks.query_epsilon(epsilon, "epsilon")
    quotient = quotient_down(epsilon, shifts * checks.positive_integer(sensitivity, "sensitivity"))
    if quotient < checks.MIN_QUERY_EPSILON:
        least = checks.MIN_QUERY_EPSILON * shifts * sensitivity
        expected = f"at least {least:g} at sensitivity {sensitivity}: with less it says nothing"
        raise InvalidParameter("epsilon", epsilon, expected)
    return Rate.at_most(quotient)


@final
@dataclass(frozen=True)
class CountNoise:
    """How a count is made noisy: fresh noise on a lattice, and its share of a session's secret offset, if any.

    A count of f steps is published as f + (noise - weight·offset)/lattice steps. Both laws are shifted by a public
    constant that brings their means close to 0.

    Attributes:
        noise: the law of the fresh noise.
        rate: of its decay, for one step of the lattice; of Gaussian noise 1/σ.
        lattice: how many of its steps are one of the count.
        weight: how many of its steps one step of the offset moves it.
        offset: the session's laws; None if the count carries no offset.
    """

    noise: Noise
    rate: Rate
    lattice: int = 1
    weight: int = 0
    offset: OffsetNoise | None = None

    @staticmethod
    def natural(epsilon: float, sensitivity: int) -> CountNoise:
        """Return discrete Laplace noise of rate ε/sensitivity, without an offset."""
        return CountNoise("laplace", rate_for(epsilon, sensitivity))

    @staticmethod
    def gumbel(epsilon: float, sensitivity: int) -> CountNoise:
        """Return discrete Gumbel noise of rate ε/sensitivity, without an offset: for at-least questions."""
        return CountNoise("gumbel", rate_for(epsilon, sensitivity))

    @staticmethod
    @lru_cache(maxsize=1024)
    def carried(offset: OffsetNoise, sensitivity: int) -> CountNoise:
        """Return the noise of a count with this sensitivity in a session with an offset.

        The offset is a multiple of 1/M; times the sensitivity Δ it is one of gcd(M, Δ)/M.
        """
        common = math.gcd(offset.lattice, checks.positive_integer(sensitivity, "sensitivity"))
        lattice = offset.lattice // common
        rate = rate_for(offset.query_epsilon, sensitivity, shifts=lattice)
        return CountNoise(offset.noise, rate, lattice, sensitivity // common, offset)

    def draw(self, entropy: Entropy) -> int:
        """Return fresh noise, in steps of the lattice."""
        if self.noise == "laplace":
            return discrete_laplace(entropy, self.rate)
        return _SAMPLERS[self.noise][0](entropy, self.rate) - centre(self.noise, self.rate)

    def draws(self, entropy: Entropy, count: int) -> list[int]:
        """Return fresh noise for many counts."""
        if self.noise == "laplace":
            return list(discrete_laplace_array(entropy, self.rate, count).tolist())
        middle = centre(self.noise, self.rate)
        return [noise - middle for noise in _SAMPLERS[self.noise][1](entropy, self.rate, count).tolist()]

    def shown(self, value: int) -> int:
        """Return the whole step of the count next to a value of the lattice; of two as near, the lower."""
        return value if self.lattice == 1 else (value + (self.lattice - 1) // 2) // self.lattice

    @property
    def fresh_law(self) -> laws.LaplaceLaw | TotalLaw:
        """Return the law of the fresh noise alone, in steps of the lattice."""
        if self.noise == "laplace":
            return NoiseLaw.of(self.rate)
        return _alone(self)

    @property
    def law(self) -> laws.LaplaceLaw | TotalLaw:
        """Return the law of a noisy count less the true one, offset included, in steps of the lattice."""
        return self.fresh_law if self.offset is None else _total_law(self)

    @property
    def margins(self) -> tuple[int, int]:
        """Return how far below and above the true count a noisy one is, in at least 95% of draws."""
        return _margins(self)

    def margins_of_rank(self, rank: int, candidates: int) -> tuple[int, int]:
        """Return the same of the count whose noisy one is the largest, second largest, … of so many.

        If it is too high by some amount, so is the noise of one of all candidates; if it is too low, that of one
        of those with the `rank` largest true counts (docs/theory/tables.md#intervals-of-what-was-selected).
        """
        lowest = 1 << (rank - 1).bit_length()  # a power of two: few margins are computed
        return _margin_of_extreme(self, lowest, -1), _margin_of_extreme(self, candidates, +1)

    def margins_of_any(self, candidates: int) -> tuple[int, int]:
        """Return the same of a count that is selected among so many, where the others may have other noise.

        Each is off by more with a probability of 5% divided by their number, so one of them with 5% at most.
        """
        return _margins(self, 1 - (1 - CONFIDENCE) / candidates)

    @property
    def standard_deviation(self) -> float:
        """Return the standard deviation of a noisy count, offset included, in steps of the count."""
        return _deviation(self)


NoiseOf = Callable[[int], CountNoise]
"""From the sensitivity of a count to its noise in a session."""


@final
@dataclass(frozen=True, repr=False, eq=False)
class Carried:
    """Data, and the offset that counts of it carry. As secret as the data."""

    data: object
    offset: int


def draw_offset(entropy: Entropy, offset: OffsetNoise) -> int:
    """Return a fresh offset, in steps of its lattice. As secret as the data."""
    noise, rate = _law_of_offset(offset)
    return _SAMPLERS[noise][0](entropy, rate) - centre(noise, rate)


def _law_of_offset(offset: OffsetNoise) -> tuple[Noise, Rate]:
    return offset.offset_noise or "laplace", rate_for(offset.offset_epsilon, offset.lattice)


_SAMPLERS: Final[dict[Noise, tuple[Callable[[Entropy, Rate], int], Callable[[Entropy, Rate, int], Any]]]] = {
    "laplace": (discrete_laplace, discrete_laplace_array),
    "geometric": (geometric, geometric_array),
    "gumbel": (discrete_gumbel, discrete_gumbel_array),
    "gaussian": (discrete_gaussian, discrete_gaussian_array),
}


@lru_cache(maxsize=1024)
def centre(noise: Noise, rate: Rate) -> int:
    """Return the integer next to the mean of a law."""
    return round(laws.law_of(noise, rate).mean)


@final
@dataclass(frozen=True, eq=False)
class TotalLaw:
    """The law of fresh noise less a multiple of an offset, both centred, to about ten digits.

    Attributes:
        fresh: the law of the noise.
        middle: its centre.
        moved: by how much each offset that matters moves a count.
        masses: how likely that is.
    """

    fresh: laws.IntegerLaw
    middle: int
    moved: NDArray[np.float64]
    masses: NDArray[np.float64]

    @property
    def variance(self) -> float:
        """The variance."""
        mean = float(self.masses @ self.moved)
        return self.fresh.variance + float(self.masses @ (self.moved - mean) ** 2)

    def at_most(self, value: int) -> float:
        """Return the probability of at most a value."""
        return float(self.masses @ self.fresh.at_most_array(value + self.middle + self.moved))

    def at_least(self, value: int) -> float:
        """Return the probability of at least a value."""
        return float(self.masses @ self.fresh.at_least_array(value + self.middle + self.moved))

    def within(self, count: int, first: int | None, last: int | None) -> float:
        """Return the probability that a count with this noise is from one value to another; None for no end."""
        if first is None:
            return 1.0 if last is None else self.at_most(last - count)
        if last is None:
            return self.at_least(first - count)
        return max(0.0, self.at_most(last - count) - self.at_most(first - 1 - count))

    def mass(self, value: int) -> float:
        """Return the probability of a value."""
        return self.within(0, value, value)

    def margins(self, confidence: float = CONFIDENCE) -> tuple[int, int]:
        """Return w and v with at most (1 - confidence)/2 below -w, and as much above v."""
        tail = (1 - confidence) / 2
        reach = 64 + 64 * math.ceil(math.sqrt(self.variance))
        return (
            smallest_integer(lambda far: self.at_most(-far - 1) <= tail, -reach, reach),
            smallest_integer(lambda far: self.at_least(far + 1) <= tail, -reach, reach),
        )


@lru_cache(maxsize=1024)
def _deviation(noise: CountNoise) -> float:
    return math.sqrt(noise.law.variance) / noise.lattice


@lru_cache(maxsize=1024)
def _margins(noise: CountNoise, confidence: float = CONFIDENCE) -> tuple[int, int]:
    return noise.law.margins(confidence)


@lru_cache(maxsize=1024)
def _margin_of_extreme(noise: CountNoise, count: int, side: Literal[-1, 1]) -> int:
    """Return how far above (below) the truth the largest (smallest) of so many noises is, in 97.5% of draws.

    All of them share the offset, if there is one.
    """
    if count == 1:
        return noise.margins[(1 + side) // 2]
    law, tail = noise.law, (1 - CONFIDENCE) / 2
    total = law if isinstance(law, TotalLaw) else _alone(noise)
    one_beyond = total.fresh.at_least_array if side > 0 else total.fresh.at_most_array

    def rarely_beyond(far: int) -> bool:
        beyond = np.minimum(one_beyond(side * (far + 1) + total.middle + total.moved), 1 - 1e-16)
        return float(total.masses @ -np.expm1(count * np.log1p(-beyond))) <= tail

    most = 64 + 64 * math.ceil(math.sqrt(total.variance)) * (1 + count.bit_length())
    return smallest_integer(rarely_beyond, -most, most)


def _alone(noise: CountNoise) -> TotalLaw:
    """Return the law of the fresh noise alone."""
    none, certain = np.zeros(1), np.ones(1)
    return TotalLaw(laws.law_of(noise.noise, noise.rate), centre(noise.noise, noise.rate), none, certain)


@lru_cache(maxsize=256)
def _total_law(noise: CountNoise) -> TotalLaw:
    assert noise.offset is not None  # noqa: S101 - asked for by CountNoise.law
    offsets, masses = offsets_of(noise.offset, _MOST_OFFSETS)
    fresh, middle = laws.law_of(noise.noise, noise.rate), centre(noise.noise, noise.rate)
    return TotalLaw(fresh, middle, noise.weight * offsets, masses)


def law_of_difference(noise: CountNoise, other: CountNoise, most: int) -> TotalLaw:
    """Return the law of the fresh noise of one count less that of another on the same lattice."""
    values, masses = _points(other.noise, other.rate, most)
    return TotalLaw(laws.law_of(noise.noise, noise.rate), centre(noise.noise, noise.rate), values, masses)


def offsets_of(offset: OffsetNoise, most: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return offsets, centred, and their probabilities; neighbours are taken together where there are many."""
    return _points(*_law_of_offset(offset), most)


@lru_cache(maxsize=256)
def _points(name: Noise, rate: Rate, most: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    law, tail = laws.law_of(name, rate), 1e-13
    first, last = law.quantile(tail), law.quantile(1 - tail)
    stride = max(1, (last - first) // most)
    starts = np.arange(first, last + 1, stride)
    masses = np.diff(law.at_most_array(np.append(starts - 1.0, last + 0.0)))
    return np.asarray(starts + (stride - 1) / 2 - centre(name, rate), np.float64), masses
