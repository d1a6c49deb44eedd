"""Differences: two published numbers of one table compared. An offset that both carry cancels out.

>>> from targetcharge.mechanisms.gauge import COUNTED
>>> from targetcharge.mechanisms.noise import CountNoise
>>> noise = CountNoise.natural(0.1, 1)
>>> first, second = (PublishedNumber(value, noise, COUNTED) for value in (520, 480))
>>> compared = difference(first, second)
>>> compared.value, compared.interval, round(compared.standard_deviation, 2)
(40, (-1, 81), 19.99)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, final

from targetcharge.accounting.curves import Gaussian, Pure, of_plain
from targetcharge.errors import InvalidParameter, NotAllowed
from targetcharge.mechanisms.noise import CountNoise, law_of_difference, rate_for
from targetcharge.randomness import Rate

if TYPE_CHECKING:
    from targetcharge.ledger import Answer
    from targetcharge.mechanisms.gauge import Gauge, Number
    from targetcharge.mechanisms.noise import NoiseOf

_POINTS: Final = 20_000
"""Into how many cases the noise of the second number is divided."""


@final
@dataclass(frozen=True)
class Difference:
    """How much larger one number is than another.

    Attributes:
        value: the first published number less the second.
        interval: holds the true difference in at least 95% of draws.
        standard_deviation: of the noise in the value.
    """

    value: Number
    interval: tuple[Number, Number]
    standard_deviation: float


@final
@dataclass(frozen=True)
class PublishedNumber:
    """A number that was published, and how it was made noisy.

    Attributes:
        value: as it is shown.
        noise: that it was drawn with.
        gauge: how its steps are shown.
    """

    value: Number
    noise: CountNoise
    gauge: Gauge

    @classmethod
    def of(cls, name: str, answer: Answer, noise: CountNoise, gauge: Gauge) -> PublishedNumber:
        """Return the number of an answer; refuse one that has none, by the name of the parameter."""
        value = answer.outcome
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidParameter(name, answer, "an answer with a published number")
        if gauge.full is not None:
            raise InvalidParameter(name, answer, "about a count or a sum: distinct values are told by a sketch")
        return cls(value, noise, gauge)


def noise_of(answer: Answer, moved: int, own: NoiseOf | None) -> CountNoise:
    """Return the noise that a published number was drawn with.

    Args:
        answer: with the number.
        moved: how far a unit moves all numbers of its computation together at most, in steps.
        own: the session's own noise for such numbers, if it has one.
    """
    target = answer.targets[-1] if answer.targets else ()
    match of_plain(target[1:]) if target[:1] == ("Everything",) else None:
        case Pure(epsilon):
            return CountNoise("laplace", rate_for(epsilon, moved))
        case Gaussian(variance=variance):
            return CountNoise("gaussian", Rate(math.isqrt(variance.denominator), math.isqrt(variance.numerator)))
        case _:
            return (own or partial(CountNoise.natural, answer.epsilon))(moved)


def difference(first: PublishedNumber, second: PublishedNumber) -> Difference:
    """Return how much larger the first number is than the second.

    Raises:
        NotAllowed: if they do not carry the same multiple of an offset, or are not counted in the same steps.
    """
    step = first.gauge.value(1)
    carried = {(number.noise.weight, number.noise.lattice) for number in (first, second)}
    if step != second.gauge.value(1) or len(carried) > 1:
        msg = (
            "numbers are compared if a unit adds at most as much to both, in the same steps: only then they have"
            " the same part of their errors in common"
        )
        raise NotAllowed(msg)
    lattice, law = first.noise.lattice, law_of_difference(first.noise, second.noise, _POINTS)
    below, above = law.margins()
    steps = lattice * (first.gauge.steps(first.value) - second.gauge.steps(second.value))
    rounded = lattice - 1  # both were rounded to whole steps, by less than one in all
    least, most = -((above + rounded - steps) // lattice), (steps + below + rounded) // lattice
    value = first.gauge.value(steps // lattice)
    deviation = math.sqrt(law.variance) / lattice * float(step)
    return Difference(value, (first.gauge.value(least), first.gauge.value(most)), deviation)
