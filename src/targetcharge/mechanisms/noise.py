"""The noise of counts: its rate for a sensitivity, its law, and what a noisy outcome says about the true value.

An outcome stands for a range of noisy integers; the true one lies within a margin of it, in at least 95% of draws.
A gauge says what such an integer is worth to the reader: it may count cents, or buckets of a sketch. All of it is
known from public facts only.

>>> rate = rate_for(0.3, sensitivity=3)
>>> rate.numerator / rate.denominator <= 0.1
True
>>> law = NoiseLaw.of(rate)
>>> round(law.mass(0) + 2 * law.at_least(1), 15), law.margin()
(1.0, 30)
>>> accuracy = Accuracy.of(Rate.at_most(0.1), exactly)
>>> accuracy.scale > 10, accuracy.margin, accuracy.interval(1000)
(True, 30, (970, 1030))
>>> cents = grid(Fraction(1, 100))
>>> cents.value(1250), cents.steps(12.5), cents.least(12.501)
(12.5, 1250, 1251)
>>> accuracy.through(cents).interval(12.5)
(12.2, 12.8)
>>> sketch = occupancy(buckets=1000)
>>> sketch.value(632) - 1000 < 1
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.numerics.rounding import quotient_down
from targetcharge.randomness import Rate, laws

if TYPE_CHECKING:
    from targetcharge.mechanisms.algorithm import Algorithm
    from targetcharge.randomness import Entropy

CONFIDENCE: Final = laws.CONFIDENCE

NoiseLaw = laws.LaplaceLaw
"""The law of the noise of counts."""

Number = int | float

Range = tuple[Number | None, Number | None]
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


# Gauges


def _sharp(_: int) -> int:
    return 0


@final
@dataclass(frozen=True)
class Gauge:
    """How steps are shown. Increasing, and public: showing is post-processing.

    Attributes:
        value: what so many steps are worth.
        steps: how many steps a shown value stands for.
        least: the fewest steps that are worth at least a value.
        blur: how many steps the count may be off before any noise, with a probability of at least 95%.
        full: from so many steps on the count may be anything; None if there is no such limit.
    """

    value: Callable[[int], Number]
    steps: Callable[[Number], int]
    least: Callable[[Number], int]
    blur: Callable[[int], int] = _sharp
    full: int | None = None

    def most(self, value: Number) -> int:
        """Return the most steps that are worth at most a value."""
        steps = self.least(value)
        return steps if self.value(steps) <= value else steps - 1


COUNTED = Gauge(int, int, math.ceil)
"""Steps are what is counted."""


def grid(step: Fraction) -> Gauge:
    """Return the gauge of a fixed-point grid: exact where a value is whole, else the nearest double."""

    def value(steps: int) -> Number:
        exact = steps * step
        return int(exact) if exact.denominator == 1 else float(exact)

    def least(wanted: Number) -> int:
        steps = math.ceil(Fraction(wanted) / step)
        return steps - 1 if value(steps - 1) >= wanted else steps  # 12.3 is a double, and a little more than 12.30

    return Gauge(value, lambda shown: round(Fraction(shown) / step), least)


def occupancy(buckets: int) -> Gauge:
    """Return the gauge of a sketch: how many distinct values take so many of its buckets.

    n values take B(1 - e^{-n/B}) buckets, give or take √(B·e^{-t}(1 - (1+t)e^{-t})), t = n/B (linear counting).
    """

    def value(steps: int) -> Number:
        taken = min(steps, buckets - 1)
        return round(-buckets * math.log1p(-taken / buckets)) if taken > 0 else taken

    def taken(shown: Number) -> float:
        return -buckets * math.expm1(-shown / buckets) if shown > 0 else shown

    def blur(steps: int) -> int:
        load = value(steps) / buckets
        if load <= 0:
            return 0
        return math.ceil(2 * math.sqrt(buckets * math.exp(-load) * (1 - (1 + load) * math.exp(-load))))

    def least(wanted: Number) -> int:
        steps = math.ceil(taken(wanted))
        if value(steps - 1) >= wanted:  # values are rounded, up or down
            return steps - 1
        return steps if value(steps) >= wanted else steps + 1

    return Gauge(value, lambda shown: round(taken(shown)), least, blur, buckets - 1)


def gauged(algorithm: Algorithm, gauge: Gauge) -> Algorithm:
    """Return the algorithm with its integers shown through a gauge; everything else is published as it is."""
    if gauge is COUNTED:
        return algorithm
    draw, accuracy = algorithm.run, algorithm.accuracy

    def run(data: object, entropy: Entropy) -> object:
        outcome = draw(data, entropy)
        return gauge.value(outcome) if type(outcome) is int else outcome

    shown = None if accuracy is None else accuracy.through(gauge)
    return replace(algorithm, run=run, oracle=None, accuracy=shown)


# Accuracy


@final
@dataclass(frozen=True)
class Accuracy:
    """How far a noisy value may be from the true one.

    Attributes:
        scale: of the noise, 1/rate, as it is shown.
        margin: the noise is at most so many steps either way, with a probability of at least 95%.
        span: the noisy values that an outcome stands for.
        gauge: how steps are shown.
    """

    scale: float
    margin: int
    span: Span
    gauge: Gauge = COUNTED

    @staticmethod
    def of(rate: Rate, span: Span) -> Accuracy:
        """Return the accuracy of discrete Laplace noise."""
        return Accuracy(rate.denominator / rate.numerator, NoiseLaw.of(rate).margin(), span)

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
        if gauge is COUNTED:
            return None if low is None else low - self.margin, None if high is None else high + self.margin
        least = None if low is None else math.floor(low) - self.margin - gauge.blur(math.floor(low))
        most = None if high is None else math.ceil(high) + self.margin + gauge.blur(math.ceil(high))
        if most is not None and gauge.full is not None and most >= gauge.full:
            most = None
        return None if least is None else gauge.value(least), None if most is None else gauge.value(most)


def exactly(outcome: Any) -> Range | None:  # noqa: ANN401 - whatever was published
    """Return the span of an outcome that is the noisy value itself."""
    return (outcome, outcome) if type(outcome) is int or type(outcome) is float else None


def above(most: Number) -> Span:
    """Return the span of a noisy value that is published above `most`, and of None for all up to it."""

    def span(outcome: object) -> Range | None:
        return (None, most) if outcome is None else exactly(outcome)

    return span
