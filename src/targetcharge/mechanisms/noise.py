"""The noise of counts: its rate for a sensitivity, its law, and what a noisy outcome says about the true value.

An outcome stands for a range of noisy integers; the true one lies within a margin of it, in at least 95% of draws.
All of it is known from public facts only.

>>> from fractions import Fraction
>>> from targetcharge.mechanisms.gauge import grid
>>> rate = rate_for(0.3, sensitivity=3)
>>> rate.numerator / rate.denominator <= 0.1
True
>>> law = NoiseLaw.of(rate)
>>> round(law.mass(0) + 2 * law.at_least(1), 15), law.margin()
(1.0, 30)
>>> accuracy = Accuracy.of(CountNoise.natural(0.1, sensitivity=1), exactly)
>>> accuracy.scale > 10, accuracy.margin, accuracy.interval(1000)
(True, 30, (970, 1030))
>>> accuracy.through(grid(Fraction(1, 100))).interval(12.5)
(12.2, 12.8)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.gauge import COUNTED
from targetcharge.numerics.rounding import quotient_down
from targetcharge.numerics.search import smallest_integer
from targetcharge.randomness import (
    Entropy,
    Rate,
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
    from targetcharge.mechanisms.gauge import Gauge, Number
    from targetcharge.randomness.laws import Noise

CONFIDENCE: Final = laws.CONFIDENCE

NoiseLaw = laws.LaplaceLaw
"""The law of the noise of counts."""

_MOST_OFFSETS: Final = 200_000

Range = tuple[int | float | None, int | float | None]
"""From the lowest to the highest value; None where it has no end."""

Span = Callable[[Any], Range | None]
"""From an outcome to the noisy values that it stands for, in steps; None if it says nothing of them."""


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
        rate: of its decay, for one step of the lattice.
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
        none, certain = np.zeros(1), np.ones(1)
        return TotalLaw(laws.law_of(self.noise, self.rate), centre(self.noise, self.rate), none, certain)

    @property
    def law(self) -> laws.LaplaceLaw | TotalLaw:
        """Return the law of a noisy count less the true one, offset included, in steps of the lattice."""
        return self.fresh_law if self.offset is None else _total_law(self)

    @property
    def margins(self) -> tuple[int, int]:
        """Return how far below and above the true count a noisy one is, in at least 95% of draws."""
        return _margins(self)

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
def _margins(noise: CountNoise) -> tuple[int, int]:
    return noise.law.margins()


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


# Accuracy


@final
@dataclass(frozen=True)
class Accuracy:
    """How far a noisy value may be from the true one.

    Attributes:
        scale: of Laplace noise with this standard deviation, as it is shown.
        margins: the noise is at most so far below and above the truth, with a probability of at least 95%, in
            steps of its lattice.
        span: the noisy values that an outcome stands for, in steps.
        gauge: how steps are shown.
        lattice: how many steps of the noise are one step.
    """

    scale: float
    margins: tuple[int, int]
    span: Span
    gauge: Gauge = COUNTED
    lattice: int = 1

    @staticmethod
    def of(noise: CountNoise, span: Span) -> Accuracy:
        """Return the accuracy of a count with this noise."""
        if noise.offset is None and noise.noise == "laplace":
            return Accuracy(noise.rate.denominator / noise.rate.numerator, noise.margins, span)
        return Accuracy(noise.standard_deviation / math.sqrt(2), noise.margins, span, lattice=noise.lattice)

    @property
    def margin(self) -> int:
        """Return how far off a noisy value is either way, in steps."""
        return -(-max(self.margins) // self.lattice)

    def through(self, gauge: Gauge) -> Accuracy:
        """Return the accuracy of the same noise, shown through a gauge."""
        step = gauge.value(1) - gauge.value(0)
        return replace(self, scale=self.scale * step, gauge=gauge)

    def interval(self, outcome: object) -> Range | None:
        """Return where the true value lies; None for an end that is open."""
        gauge = self.gauge
        if gauge is not COUNTED and isinstance(outcome, int | float) and not isinstance(outcome, bool):
            outcome = gauge.steps(outcome)
        span = self.span(outcome)
        if span is None:
            return None
        low, high = span
        least = None if low is None else self._least(low)
        most = None if high is None else self._most(high)
        if gauge is COUNTED:
            return least, most
        if least is not None and low is not None:
            least = math.floor(least) - gauge.blur(math.floor(low))
        if most is not None and high is not None:
            most = math.ceil(most) + gauge.blur(math.ceil(high))
            if gauge.full is not None and most >= gauge.full:
                most = None
        return None if least is None else gauge.value(int(least)), None if most is None else gauge.value(int(most))

    def _least(self, low: Number) -> Number:
        """Return the fewest steps that a noisy value of `low`, rounded to it, may stand for."""
        if self.lattice == 1:
            return low - self.margins[1]
        rounded = (self.lattice - 1) // 2
        return -(-(math.floor(low) * self.lattice - rounded - self.margins[1]) // self.lattice)

    def _most(self, high: Number) -> Number:
        """Return the most steps that a noisy value up to `high`, rounded to it, may stand for."""
        if self.lattice == 1:
            return high + self.margins[0]
        return ((math.ceil(high) + 1) * self.lattice - 1 + self.margins[0]) // self.lattice


def exactly(outcome: Any) -> Range | None:  # noqa: ANN401 - whatever was published
    """Return the span of an outcome that is the noisy value itself."""
    return (outcome, outcome) if type(outcome) is int or type(outcome) is float else None


def above(most: Number) -> Span:
    """Return the span of a noisy value that is published above `most`, and of None for all up to it."""

    def span(outcome: object) -> Range | None:
        return (None, most) if outcome is None else exactly(outcome)

    return span
