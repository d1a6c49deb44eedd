"""Gauges: what a number of steps is worth to the reader. It may count cents, or buckets of a sketch.

>>> cents = grid(Fraction(1, 100))
>>> cents.value(1250), cents.steps(12.5), cents.least(12.501)
(12.5, 1250, 1251)
>>> sketch = occupancy(buckets=1000)
>>> sketch.value(632) - 1000 < 1
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.mechanisms.algorithm import Algorithm
    from targetcharge.randomness import Entropy

Number = int | float


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
    draw, accuracy, counted = algorithm.run, algorithm.accuracy, algorithm.counted

    def seen(outcome: object) -> object:
        return gauge.value(outcome) if type(outcome) is int else outcome

    def run(data: object, entropy: Entropy) -> object:
        return seen(draw(data, entropy))

    shown = None if accuracy is None else accuracy.through(gauge)
    if counted is not None:
        redrawn = counted.redrawn
        counted = replace(counted, redrawn=lambda noise_of: gauged(redrawn(noise_of), gauge))
    paid = algorithm.paid
    shown_paid = None if paid is None else lambda noise: gauged(paid(noise), gauge)
    return replace(
        algorithm,
        run=run,
        oracle=None,
        accuracy=shown,
        counted=counted,
        paid=shown_paid,
        examples=lambda: tuple(map(seen, algorithm.examples())),
    )
