"""Counts that carry an offset: the law of their error, both laws added up as they are defined.

At λ = ½ a count f with sensitivity Δ is published as ⌊(L·f - w·ρ + ν)/L⌋, where L is 2 for an odd Δ and 1 for an
even one, and w is Δ·L/2. ρ is discrete Laplace noise with rate ε1/2, drawn once; ν with rate 2ε/(ΔL), drawn for
every count.

On a sparse meter L is 100/g and w is Δ/g, where g is the largest common divisor of 100 and Δ. ρ is discrete
Laplace or geometric noise with rate ε1/100; ν has rate ε/(ΔL), and is discrete Gumbel noise, or geometric too.
Both are shifted by the integer next to their mean, and what is published is the next whole count.

>>> from targetcharge.accounting import OffsetNoise
>>> noise = CarriedNoise.of(OffsetNoise(0.8, 0.2), epsilon=0.1)
>>> noise.lattice, noise.weight, noise.offset.rate, noise.fresh.rate
(2, 1, 0.4, 0.1)
>>> round(sum(noise.masses.values()), 12), round(noise.at_least(3) - noise.at_least(4) - noise.masses[3], 12)
(1.0, 0.0)
>>> abs(sum(value**2 * mass for value, mass in noise.masses.items()) / 4 - noise.standard_deviation**2) < 1e-9
True
>>> sparse = SparseNoise.of(OffsetNoise(0.7, 0.35, "gumbel", "at least", "geometric"), epsilon=0.35)
>>> sparse.lattice, sparse.weight, round(sparse.standard_deviation, 2)
(100, 1, 3.93)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from tests.discrete_laplace import DiscreteLaplace

if TYPE_CHECKING:
    from targetcharge.accounting import OffsetNoise

_SCALES = 40
"""Beyond so many scales nothing is added up."""


def _masses(law):
    """Return integers from -n to n, and their probabilities."""
    reach = math.ceil(_SCALES / law.rate)
    values = np.arange(-reach, reach + 1)
    return values, law.mass(0) * np.exp(-law.rate * np.abs(values))


@dataclass(frozen=True)
class CarriedNoise:
    """The error of a count, in steps of its lattice: ν - w·ρ."""

    offset: DiscreteLaplace
    fresh: DiscreteLaplace
    lattice: int
    weight: int

    @classmethod
    def of(cls, law: OffsetNoise, epsilon, sensitivity=1):
        """Return the noise of a count in a session with this offset, for a question with this ε."""
        lattice = 1 + sensitivity % 2
        fresh = DiscreteLaplace(2 * epsilon / (sensitivity * lattice))
        return cls(DiscreteLaplace(law.offset_epsilon / 2), fresh, lattice, sensitivity * lattice // 2)

    @cached_property
    def offsets(self):
        """Return what ρ may be, and how likely that is."""
        values, masses = _masses(self.offset)
        return list(zip(values.tolist(), masses.tolist(), strict=True))

    def given(self, rho, value):
        """Return Pr[ν - w·ρ ≥ value], given the offset."""
        return self.fresh.at_least(value + self.weight * rho)

    def at_least(self, value):
        """Return Pr[ν - w·ρ ≥ value]."""
        return math.fsum(mass * self.given(rho, value) for rho, mass in self.offsets)

    def reaches(self, steps):
        """Return the probability that a count is published as so many steps above the truth, or more."""
        return self.at_least(self.lattice * steps)

    @cached_property
    def masses(self):
        """Return {value: probability} of ν - w·ρ."""
        values, fresh = _masses(self.fresh)
        reach = values[-1] + self.weight * self.offsets[-1][0]
        total = np.zeros(2 * reach + 1)
        for rho, mass in self.offsets:
            start = reach + values[0] - self.weight * rho
            total[start : start + len(fresh)] += mass * fresh
        return dict(zip(range(-reach, reach + 1), total.tolist(), strict=True))

    @cached_property
    def published(self):
        """Return {steps: probability} of a published count less the true one: rounded down to whole steps."""
        law = {}
        for value, mass in self.masses.items():
            law[value // self.lattice] = law.get(value // self.lattice, 0.0) + mass
        return law

    @cached_property
    def standard_deviation(self):
        """Return the standard deviation of a count, in steps; noise of rate r has variance 1/(2·sinh²(r/2))."""
        fresh, offset = (1 / (2 * math.sinh(law.rate / 2) ** 2) for law in (self.fresh, self.offset))
        return math.sqrt(fresh + self.weight**2 * offset) / self.lattice

    @cached_property
    def scale(self):
        """Return the scale of Laplace noise with this standard deviation, as answers tell it."""
        return self.standard_deviation / math.sqrt(2)

    @property
    def margins(self):
        """Return the smallest margins below and above, in steps of the lattice: the law is symmetric."""
        return self.margin, self.margin

    @cached_property
    def margin(self):
        """Return the smallest margin, in steps of the lattice, that at most 2.5% of errors exceed."""
        low, high = 0, 1
        while self.at_least(high + 1) > 0.025:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.at_least(middle + 1) <= 0.025 else (middle, high)
        return high


def _tail(noise, rate):
    """Return the mean of a law of integers, and Pr[ν ≥ k] as a function of an array k."""
    if noise == "gumbel":  # Pr[ν ≤ k] is e^{-e^{-rate·k}}, and the mean that of Gumbel's law, rounded up
        return np.euler_gamma / rate + 0.5, lambda k: -np.expm1(-np.exp(-rate * (k - 1.0)))
    if noise == "geometric":
        return 1 / math.expm1(rate), lambda k: np.exp(-rate * np.maximum(k, 0.0))

    def at_least(values):
        tails = np.exp(-rate * np.where(values > 0, values, 1 - values)) / (1 + math.exp(-rate))
        return np.where(values > 0, tails, 1 - tails)

    return 0.0, at_least


@dataclass(frozen=True)
class SparseNoise:
    """The error of a count on a sparse meter, in steps of its lattice: (ν - its mean) - w·(ρ - its mean)."""

    fresh: tuple[str, float]
    offset: tuple[str, float]
    lattice: int
    weight: int

    @classmethod
    def of(cls, law: OffsetNoise, epsilon, sensitivity=1):
        """Return the noise of a count in a session with this offset, for a question with this ε."""
        common = math.gcd(100, sensitivity)
        lattice = 100 // common
        fresh = law.noise, epsilon / (sensitivity * lattice)
        offset = law.offset_noise, law.offset_epsilon / 100
        return cls(fresh, offset, lattice, sensitivity // common)

    @cached_property
    def offsets(self):
        """Return what ρ less its mean may be, and how likely that is, as arrays."""
        name, rate = self.offset
        mean, at_least = _tail(name, rate)
        reach = math.ceil(_SCALES / rate)
        values = np.arange(0 if name == "geometric" else -reach, reach + 1)
        tails = at_least(np.append(values, reach + 1))
        return values - round(mean), tails[:-1] - tails[1:]

    def at_least(self, value):
        """Return the probability of an error of at least a value."""
        mean, at_least = _tail(*self.fresh)
        offsets, masses = self.offsets
        return float(masses @ at_least(value + self.weight * offsets + round(mean)))

    @cached_property
    def margins(self):
        """Return the smallest margins below and above, in steps of the lattice, that 2.5% of errors exceed."""
        reach = math.ceil(_SCALES / self.fresh[1]) + self.weight * math.ceil(_SCALES / self.offset[1])

        def least(rare):
            low, high = 0, reach
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if rare(middle) else (middle, high)
            return high

        below = least(lambda far: 1 - self.at_least(-far) <= 0.025)
        return below, least(lambda far: self.at_least(far + 1) <= 0.025)

    @cached_property
    def standard_deviation(self):
        """Return the standard deviation of a count, in steps."""
        _, at_least = _tail(*self.fresh)
        reach = math.ceil(_SCALES / self.fresh[1])
        values = np.arange(-reach, reach + 1)
        tails = at_least(np.append(values, reach + 1))
        parts = [(values, tails[:-1] - tails[1:]), (self.weight * self.offsets[0], self.offsets[1])]
        means = [values @ masses for values, masses in parts]
        variance = sum((values - mean) ** 2 @ masses for mean, (values, masses) in zip(means, parts, strict=True))
        return math.sqrt(variance) / self.lattice

    @cached_property
    def scale(self):
        """Return the scale of Laplace noise with this standard deviation, as answers tell it."""
        return self.standard_deviation / math.sqrt(2)


def noise_of(law: OffsetNoise, epsilon, sensitivity=1):
    """Return the noise of a count in a session with this offset, at λ = ½ or on a sparse meter."""
    return (CarriedNoise if law.questions == "any" else SparseNoise).of(law, epsilon, sensitivity)
