"""Accuracy: what a noisy outcome says about the true value. All of it is known from public facts only.

An outcome stands for a range of noisy integers; the true one lies within a margin of it, in at least 95% of draws.

>>> from fractions import Fraction
>>> from targetcharge.mechanisms.gauge import grid
>>> from targetcharge.mechanisms.noise import CountNoise
>>> accuracy = Accuracy.of(CountNoise.natural(0.1, sensitivity=1), exactly)
>>> accuracy.scale > 10, accuracy.margin, accuracy.interval(1000)
(True, 30, (970, 1030))
>>> accuracy.through(grid(Fraction(1, 100))).interval(12.5)
(12.2, 12.8)
>>> accuracy.of_rank(1, 1000).interval(1000)  # the largest of a thousand noisy counts is too high
(901, 1030)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from targetcharge.mechanisms.gauge import COUNTED

if TYPE_CHECKING:
    from targetcharge.mechanisms.gauge import Gauge, Number
    from targetcharge.mechanisms.noise import CountNoise

Range = tuple[int | float | None, int | float | None]
"""From the lowest to the highest value; None where it has no end."""

Span = Callable[[Any], Range | None]
"""From an outcome to the noisy values that it stands for, in steps; None if it says nothing of them."""


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
        noise: that it was drawn with, if any was added.
    """

    scale: float
    margins: tuple[int, int]
    span: Span
    gauge: Gauge = COUNTED
    noise: CountNoise | None = None

    @staticmethod
    def of(noise: CountNoise, span: Span) -> Accuracy:
        """Return the accuracy of a count with this noise."""
        plain = noise.offset is None and noise.noise == "laplace"
        scale = noise.rate.denominator / noise.rate.numerator if plain else noise.standard_deviation / math.sqrt(2)
        return Accuracy(scale, noise.margins, span, noise=noise)

    def of_rank(self, rank: int, candidates: int) -> Accuracy:
        """Return the accuracy of what was selected as the largest, second largest, … of so many."""
        return self if self.noise is None else replace(self, margins=self.noise.margins_of_rank(rank, candidates))

    def of_any(self, candidates: int) -> Accuracy:
        """Return the accuracy of what was selected among so many, where the others may have other noise."""
        return self if self.noise is None else replace(self, margins=self.noise.margins_of_any(candidates))

    @property
    def lattice(self) -> int:
        """Return how many steps of the noise are one step."""
        return 1 if self.noise is None else self.noise.lattice

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
