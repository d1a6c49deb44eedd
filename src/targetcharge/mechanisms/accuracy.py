"""Accuracy: what a published outcome says about the true value. From public facts only.

An outcome stands for a range of noisy values; the true value lies within a margin of it, in at least 95% of draws.

>>> from targetcharge.randomness import Rate
>>> accuracy = Accuracy.of(Rate.at_most(0.1), exactly)
>>> accuracy.scale > 10, accuracy.margin, accuracy.interval(1000)
(True, 30, (970, 1030))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge.mechanisms.gauge import COUNTED, Gauge, Number
from targetcharge.mechanisms.noise import NoiseLaw
from targetcharge.outcomes import Side

if TYPE_CHECKING:
    from targetcharge.randomness import Rate

CONFIDENCE: Final = 0.95

Range = tuple[Number | None, Number | None]
"""From the lowest to the highest value; None where it has no end."""

Span = Callable[[Any], Range | None]
"""From an outcome to the noisy values that it stands for, in steps; None if it says nothing of them."""


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
        return Accuracy(rate.denominator / rate.numerator, margin(NoiseLaw.of(rate)), span)

    def through(self, gauge: Gauge) -> Accuracy:
        """Return the accuracy of the same noise, shown through a gauge."""
        step = gauge.value(1) - gauge.value(0)
        return replace(self, scale=self.scale * step, gauge=gauge)

    def interval(self, outcome: object) -> Range | None:
        """Return where the true value lies; None for an end that is open."""
        gauge = self.gauge
        if gauge is not COUNTED and isinstance(outcome, int | float) and not isinstance(outcome, bool):
            outcome = gauge.steps(outcome)
        found = self.span(outcome)
        if found is None:
            return None
        low, high = found
        wide = self.margin
        if gauge is COUNTED:
            return None if low is None else low - wide, None if high is None else high + wide
        least = None if low is None else math.floor(low) - wide - gauge.blur(math.floor(low))
        most = None if high is None else math.ceil(high) + wide + gauge.blur(math.ceil(high))
        if most is not None and gauge.full is not None and most >= gauge.full:
            most = None
        return None if least is None else gauge.value(least), None if most is None else gauge.value(most)


def margin(noise: NoiseLaw, confidence: float = CONFIDENCE) -> int:
    """Return the smallest w with Pr[|noise| > w] = 2p^{w+1}/(1+p) ≤ 1 - confidence, p = e^-rate."""
    return max(0, math.ceil(math.log(2 / ((1 - confidence) * (1 + noise.decay(1)))) / noise.rate - 1))


def exactly(outcome: Any) -> Range | None:  # noqa: ANN401 - whatever was published
    """Return the span of an outcome that is the noisy value itself."""
    return (outcome, outcome) if type(outcome) is int or type(outcome) is float else None


def above(most: Number) -> Span:
    """Return the span of a noisy value that is published above `most`, and of None for all up to it."""

    def span(outcome: object) -> Range | None:
        return (None, most) if outcome is None else exactly(outcome)

    return span


def sided(least: int, most: int) -> Span:
    """Return the span of the side of a band from `least` to `most`."""
    sides: dict[object, Range] = {
        Side.BELOW: (None, least - 1),
        Side.BETWEEN: (least, most),
        Side.ABOVE: (most + 1, None),
    }
    return sides.get
