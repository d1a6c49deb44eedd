"""The laws of the integer noises that are drawn: their masses, tails, moments and quantiles.

Probabilities, also small ones, and moments are right to 12 digits.

>>> from targetcharge.randomness.laplace import Rate
>>> rate = Rate.at_most(0.1)
>>> laws = [law_of(noise, rate) for noise in ("laplace", "geometric", "gumbel", "gaussian")]
>>> [round(law.mean, 2) for law in laws], [round(law.variance, 2) for law in laws]
([0.0, 9.51, 6.27, 0.0], [199.83, 99.92, 164.58, 100.0])
>>> [law.quantile(0.025) for law in laws], [law.quantile(0.975) for law in laws]
([-30, 0, -13, -20], [30, 36, 37, 20])
>>> round(sum(laws[2].mass(value) for value in range(-13, 38)), 3)
0.958
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, Literal, Protocol, final

import numpy as np

from targetcharge.errors import InvalidParameter
from targetcharge.randomness import gaussian

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.randomness.laplace import Rate

Noise = Literal["laplace", "geometric", "gumbel", "gaussian"]

CONFIDENCE: Final = 0.95
"""Of intervals: the true value lies in at least so many of them."""

_FAR: Final = 1 << 900
"""Beyond this distance every mass is 0 in double precision, whatever the rate; a larger one would overflow."""

_LARGEST_EXPONENT: Final = 709.0
_EULER: Final = 0.5772156649015329
_SMOOTH: Final = 0.25


class IntegerLaw(Protocol):
    """The law of an integer X."""

    @property
    def mean(self) -> float:
        """The mean of X."""
        ...

    @property
    def variance(self) -> float:
        """The variance of X."""
        ...

    def mass(self, value: int) -> float:
        """Return Pr[X = value]."""
        ...

    def at_most(self, value: int) -> float:
        """Return Pr[X ≤ value]."""
        ...

    def at_least(self, value: int) -> float:
        """Return Pr[X ≥ value]."""
        ...

    def at_most_array(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `at_most` for each value of an array."""
        ...

    def at_least_array(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `at_least` for each value of an array."""
        ...

    def quantile(self, probability: float) -> int:
        """Return the smallest k with Pr[X ≤ k] ≥ probability, for one above 0 and below 1."""
        ...


@final
@dataclass(frozen=True)
class LaplaceLaw:
    """The law of discrete Laplace noise X: Pr[X = k] = tanh(rate/2)·e^{-rate·|k|}.

    Attributes:
        rate: the rate of decay that is used, as a float (exact: a rate has few bits).
    """

    rate: float

    @staticmethod
    def of(rate: Rate) -> LaplaceLaw:
        """Return the law of a rate."""
        return LaplaceLaw(rate.numerator / rate.denominator)

    @property
    def mean(self) -> float:
        """The mean."""
        return 0.0

    @property
    def variance(self) -> float:
        """The variance, 2p/(1-p)², p = e^-rate."""
        return 2 * self.decay(1) / self.shortfall(1) ** 2

    def mass(self, value: int) -> float:
        """Return Pr[X = value]."""
        return math.tanh(self.rate / 2) * self.decay(abs(value))

    def at_most(self, value: int) -> float:
        """Return Pr[X ≤ value]."""
        return self.at_least(-value)

    def at_least(self, value: int) -> float:
        """Return Pr[X ≥ value], which is also Pr[X ≤ -value]."""
        if value > 0:
            return self.decay(value) / (1 + self.decay(1))
        return (1 + self.decay(1) * self.shortfall(-value)) / (1 + self.decay(1))

    def at_most_array(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `at_most` for each value of an array."""
        return self.at_least_array(-values)

    def at_least_array(self, values: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `at_least` for each value of an array."""
        p, tail = self.decay(1), np.exp(-self.rate * np.abs(values))
        return np.where(values > 0, tail, 1 + p * (1 - tail)) / (1 + p)

    def within(self, count: int, first: int | None, last: int | None) -> float:
        """Return Pr[first ≤ count + X ≤ last], as precise where it is small; None stands for an open end."""
        if first is None:
            return 1.0 if last is None else self.at_least(count - last)
        if last is None:
            return self.at_least(first - count)
        if first <= count <= last:
            p = self.decay(1)
            return (self.shortfall(count - first + 1) + p * self.shortfall(last - count)) / (1 + p)
        return self.at_least(max(first - count, count - last)) * self.shortfall(last - first + 1)

    def sides(self, count: int, least: int, most: int) -> list[float]:
        """Return the probabilities of count + X below `least`, from `least` to `most`, and above `most`."""
        ranges = (None, least - 1), (least, most), (most + 1, None)
        return [self.within(count, first, last) for first, last in ranges]

    def decay(self, steps: int) -> float:
        """Return e^{-rate·steps}."""
        return math.exp(-self.rate * min(steps, _FAR))

    def shortfall(self, steps: int) -> float:
        """Return 1 - e^{-rate·steps}."""
        return -math.expm1(-self.rate * min(steps, _FAR))

    def margin(self, confidence: float = CONFIDENCE) -> int:
        """Return the smallest w with Pr[|X| > w] = 2p^{w+1}/(1+p) ≤ 1 - confidence, p = e^-rate."""
        return max(0, math.ceil(math.log(2 / ((1 - confidence) * (1 + self.decay(1)))) / self.rate - 1))

    def margins(self, confidence: float = CONFIDENCE) -> tuple[int, int]:
        """Return the margin on either side."""
        margin = self.margin(confidence)
        return margin, margin

    def quantile(self, probability: float) -> int:
        """Return the smallest k with Pr[X ≤ k] ≥ probability."""
        rest = 1 - _checked(probability)
        logarithm = math.log(min(probability, rest) * (1 + self.decay(1)))
        steps = logarithm if probability <= rest else -logarithm - self.rate
        return _settled(self, math.ceil(steps / self.rate), probability)


@final
@dataclass(frozen=True)
class GeometricLaw:
    """The law of geometric noise X: Pr[X = k] = (1 - e^{-rate})·e^{-rate·k} for k ≥ 0.

    Attributes:
        rate: the rate of decay that is used, as a float (exact: a rate has few bits).
    """

    rate: float

    @staticmethod
    def of(rate: Rate) -> GeometricLaw:
        """Return the law of a rate."""
        return GeometricLaw(rate.numerator / rate.denominator)

    @property
    def mean(self) -> float:
        """The mean, p/(1-p), p = e^-rate."""
        return math.exp(-self.rate) / -math.expm1(-self.rate)

    @property
    def variance(self) -> float:
        """The variance, p/(1-p)², p = e^-rate."""
        return math.exp(-self.rate) / math.expm1(-self.rate) ** 2

    def mass(self, value: int) -> float:
        """Return Pr[X = value]."""
        return 0.0 if value < 0 else -math.expm1(-self.rate) * self.at_least(value)

    def at_most(self, value: int) -> float:
        """Return Pr[X ≤ value]."""
        return 0.0 if value < 0 else -math.expm1(-self.rate * min(value + 1, _FAR))

    def at_least(self, value: int) -> float:
        """Return Pr[X ≥ value]."""
        return 1.0 if value < 0 else math.exp(-self.rate * min(value, _FAR))

    def at_most_array(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `at_most` for each value of an array."""
        return -np.expm1(-self.rate * np.maximum(values + 1, 0.0))

    def at_least_array(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `at_least` for each value of an array."""
        return np.exp(-self.rate * np.maximum(values, 0.0))

    def quantile(self, probability: float) -> int:
        """Return the smallest k with Pr[X ≤ k] = 1 - e^{-rate·(k+1)} ≥ probability."""
        return _settled(self, math.ceil(-math.log1p(-_checked(probability)) / self.rate) - 1, probability)


@final
@dataclass(frozen=True)
class GumbelLaw:
    """The law of discrete Gumbel noise X: Pr[X ≤ k] = exp(-e^{-rate·k}).

    Attributes:
        rate: the rate of decay that is used, as a float (exact: a rate has few bits).
    """

    rate: float

    @staticmethod
    def of(rate: Rate) -> GumbelLaw:
        """Return the law of a rate."""
        return GumbelLaw(rate.numerator / rate.denominator)

    @property
    def mean(self) -> float:
        """The mean: that of G/rate, G continuous, and ½; or the sum over the law.

        X - G/rate lies in [0, 1). The characteristic function of G/rate is Γ(1 - it/rate). At t = 2πm it and its
        derivative say how far that difference is from being uniform and uncorrelated with G: both are below 1e-15
        for rates below ¼, since |Γ(1 - iy)|² = πy/sinh(πy).
        """
        if self.rate < _SMOOTH:
            return _EULER / self.rate + 0.5
        return math.fsum(value * self.mass(value) for value in self._likely())

    @property
    def variance(self) -> float:
        """The variance: those of G/rate and of a uniform number (see `mean`); or the sum over the law."""
        if self.rate < _SMOOTH:
            return math.pi**2 / (6 * self.rate**2) + 1 / 12
        mean = self.mean
        return math.fsum((value - mean) ** 2 * self.mass(value) for value in self._likely())

    def mass(self, value: int) -> float:
        """Return Pr[X = value] = e^{-a}(1 - e^{-(b-a)}), a = e^{-rate·value}, b = e^{rate}·a."""
        difference = self._intensity(value - 1) * -math.expm1(-self.rate)
        return self.at_most(value) * -math.expm1(-difference)

    def at_most(self, value: int) -> float:
        """Return Pr[X ≤ value]."""
        return math.exp(-self._intensity(value))

    def at_least(self, value: int) -> float:
        """Return Pr[X ≥ value]."""
        return -math.expm1(-self._intensity(value - 1))

    def at_most_array(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `at_most` for each value of an array."""
        return np.exp(-np.exp(np.minimum(-self.rate * values, _LARGEST_EXPONENT)))

    def at_least_array(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `at_least` for each value of an array."""
        return -np.expm1(-np.exp(np.minimum(-self.rate * (values - 1), _LARGEST_EXPONENT)))

    def quantile(self, probability: float) -> int:
        """Return the smallest k with Pr[X ≤ k] ≥ probability."""
        steps = -math.log(-math.log(_checked(probability)))
        return _settled(self, math.ceil(steps / self.rate), probability)

    def _intensity(self, value: int) -> float:
        """Return e^{-rate·value}."""
        exponent = -self.rate * max(-_FAR, min(value, _FAR))
        return math.exp(exponent) if exponent < _LARGEST_EXPONENT else math.inf

    def _likely(self) -> range:
        """Return all values but those that add less than 1e-15 to the moments."""
        return range(-math.ceil(4 / self.rate) - 1, math.ceil(50 / self.rate) + 2)


@final
@dataclass(frozen=True)
class GaussianLaw:
    """The law of discrete Gaussian noise X: Pr[X = k] = e^{-k²·rate²/2}/Z, Z the sum of these terms.

    Attributes:
        rate: one over the standard deviation of the continuous law, as a float (exact: a rate has few bits).
    """

    rate: float

    @staticmethod
    def of(rate: Rate) -> GaussianLaw:
        """Return the law of a rate."""
        return GaussianLaw(rate.numerator / rate.denominator)

    @property
    def mean(self) -> float:
        """The mean."""
        return 0.0

    @property
    def variance(self) -> float:
        """The variance: at most 1/rate²."""
        return gaussian.sum_of_squares(self.rate) / gaussian.sum_of_terms(self.rate)

    def mass(self, value: int) -> float:
        """Return Pr[X = value]."""
        scaled = self.rate * min(abs(value), _FAR)
        return math.exp(-scaled * scaled / 2) / gaussian.sum_of_terms(self.rate)

    def at_most(self, value: int) -> float:
        """Return Pr[X ≤ value]."""
        return self.at_least(-value)

    def at_least(self, value: int) -> float:
        """Return Pr[X ≥ value], which is also Pr[X ≤ -value]."""
        return float(self.at_least_array(np.array([max(-_FAR, min(value, _FAR))], dtype=np.float64))[0])

    def at_most_array(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `at_most` for each value of an array."""
        return self.at_least_array(-values)

    def at_least_array(self, values: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `at_least` for each value of an array."""
        steps = np.where(values > 0, values, 1 - values)
        tails = gaussian.sums_from(self.rate, steps) / gaussian.sum_of_terms(self.rate)
        return np.where(values > 0, tails, 1 - tails)

    def margin(self, confidence: float = CONFIDENCE) -> int:
        """Return the smallest w with Pr[|X| > w] ≤ 1 - confidence."""
        return -self.quantile((1 - confidence) / 2)

    def margins(self, confidence: float = CONFIDENCE) -> tuple[int, int]:
        """Return the margin on either side."""
        margin = self.margin(confidence)
        return margin, margin

    def quantile(self, probability: float) -> int:
        """Return the smallest k with Pr[X ≤ k] ≥ probability: about that of the continuous law, less ½."""
        rest = 1 - _checked(probability)
        normal = NormalDist().inv_cdf(min(probability, rest))
        steps = normal if probability <= rest else -normal
        return _settled(self, math.ceil(steps / self.rate - 0.5), probability)


def law_of(noise: Noise, rate: Rate) -> IntegerLaw:
    """Return the law of a kind of noise at a rate."""
    match noise:
        case "laplace":
            return LaplaceLaw.of(rate)
        case "geometric":
            return GeometricLaw.of(rate)
        case "gumbel":
            return GumbelLaw.of(rate)
        case "gaussian":
            return GaussianLaw.of(rate)


def _checked(probability: float) -> float:
    if not 0 < probability < 1:
        raise InvalidParameter("probability", probability, "above 0 and below 1")
    return probability


def _settled(law: IntegerLaw, near: int, probability: float) -> int:
    """Return the quantile, given an integer that misses it by rounding only."""

    def reached(value: int) -> bool:
        if probability <= 1 / 2:
            return law.at_most(value) >= probability
        return law.at_least(value + 1) <= 1 - probability

    while not reached(near):
        near += 1
    while reached(near - 1):
        near -= 1
    return near
