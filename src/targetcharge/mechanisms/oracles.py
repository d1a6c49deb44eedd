"""Oracles: the probabilities of an algorithm's outcomes on given data. As secret as the data.

>>> coin = FiniteOracle(("heads", "tails"), lambda bias: [bias, 1 - bias])
>>> coin.probability(0.75, "heads"), coin.peak(0.75), coin.rest(0.75)
(0.75, 0.75, 0.25)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, final

from targetcharge.outcomes import same

if TYPE_CHECKING:
    from collections.abc import Callable


class Oracle(Protocol):
    """Tells the probabilities of an algorithm's outcomes on given data. As secret as the data."""

    def probability(self, data: object, outcome: object) -> float:
        """Return the probability of an outcome."""
        ...

    def peak(self, data: object) -> float:
        """Return the probability of the most likely outcome."""
        ...

    def rest(self, data: object) -> float:
        """Return the probability of all other outcomes together: 1 - peak, without the cancellation."""
        ...


@final
@dataclass(frozen=True)
class FiniteOracle:
    """Probabilities of a finite list of outcomes.

    Attributes:
        outcomes: the outcomes, each once, in canonical form.
        law: their probabilities on given data, in the same order.
    """

    outcomes: tuple[object, ...]
    law: Callable[[Any], list[float]]

    def probability(self, data: object, outcome: object) -> float:
        """Return the probability of an outcome; 0 if it is none of them."""
        law = self.law(data)
        return math.fsum(mass for mass, other in zip(law, self.outcomes, strict=True) if same(other, outcome))

    def peak(self, data: object) -> float:
        """Return the largest probability."""
        return max(self.law(data))

    def rest(self, data: object) -> float:
        """Return the sum of all other probabilities."""
        law = self.law(data)
        law.remove(max(law))
        return math.fsum(law)
