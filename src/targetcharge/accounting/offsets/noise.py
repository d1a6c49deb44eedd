"""What a session draws: the laws and rates of its secret offset and of the fresh noise of each number.

Both live on the lattice 1/M of a step: a number is f + ν - Δρ for a measure f with sensitivity Δ. The offset's
rate ε1 and the noise's rate ε2 are those for a sensitivity of 1.

>>> noise = OffsetNoise(0.24, 0.09, "gumbel", "at least")
>>> noise.lattice, noise.offset_noise, round(noise.standard_deviation, 2)
(100, 'laplace', 15.42)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal, final

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.randomness.laplace import Rate
from targetcharge.randomness.laws import Noise, law_of

OffsetLaw = Literal["laplace", "geometric"]
Questions = Literal["any", "at least"]

NOISES: Final = ("laplace", "geometric", "gumbel")
QUESTIONS: Final = ("any", "at least")

HALF: Final = 2
"""M where λ is ½: any question."""

SHARES: Final = 100
"""M for at-least questions, and so the number of steps in which λ is chosen."""


@final
@dataclass(frozen=True)
class OffsetNoise:
    """The noise of a session with an offset.

    Attributes:
        offset_epsilon: ε1, the rate of the offset for a sensitivity of 1.
        query_epsilon: ε2, the rate of the fresh noise for a sensitivity of 1.
        noise: the law of the fresh noise.
        questions: what may be asked: anything, or only whether a number is at least something.
        offset_noise: the law of the offset; "" for that of the noise, or Laplace where the noise is Gumbel.
    """

    offset_epsilon: float
    query_epsilon: float
    noise: Noise = "laplace"
    questions: Questions = "any"
    offset_noise: OffsetLaw | Literal[""] = ""

    def __post_init__(self) -> None:
        """Refuse rates out of range and laws that do not go together."""
        object.__setattr__(self, "offset_epsilon", checks.query_epsilon(self.offset_epsilon, "offset_epsilon"))
        object.__setattr__(self, "query_epsilon", checks.query_epsilon(self.query_epsilon))
        checks.choice(self.noise, "noise", NOISES)
        checks.choice(self.questions, "questions", QUESTIONS)
        if self.questions == "any" and self.noise != "laplace":
            raise InvalidParameter("noise", self.noise, "'laplace' where any question may be asked")
        usual = "geometric" if self.noise == "geometric" else "laplace"
        offset_noise = self.offset_noise or usual
        if offset_noise != usual and not (self.noise == "gumbel" and offset_noise == "geometric"):
            raise InvalidParameter("offset_noise", offset_noise, f"{usual!r} where the noise is {self.noise}")
        object.__setattr__(self, "offset_noise", offset_noise)

    def for_computation(self, epsilon: float) -> OffsetNoise:
        """Return the laws with which the count of a computation is drawn, which is priced by this ε.

        At λ = ½ the coupling leaves half of every move: so fresh noise of twice the rate hides it.
        """
        if self.questions == "any":
            return replace(self, query_epsilon=min(2 * epsilon, checks.MAX_QUERY_EPSILON))
        return replace(self, query_epsilon=epsilon)

    @property
    def lattice(self) -> int:
        """Return M: both are drawn on multiples of 1/M."""
        return HALF if self.questions == "any" else SHARES

    @property
    def standard_deviation(self) -> float:
        """Return the standard deviation of a number with sensitivity 1, offset included, as it is drawn."""
        offset = law_of(self.offset_noise or "laplace", Rate.at_most(self.offset_epsilon / self.lattice))
        fresh = law_of(self.noise, Rate.at_most(self.query_epsilon / self.lattice))
        return math.sqrt(offset.variance + fresh.variance) / self.lattice
