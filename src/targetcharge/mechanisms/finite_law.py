"""Oracles of algorithms with a few declared outcomes.

>>> oracle = FiniteOracle(("no", "yes"), lambda data: [0.25, 0.75])
>>> oracle.probability([], "yes"), oracle.peak([]), oracle.rest([])
(0.75, 0.75, 0.25)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from targetcharge.outcomes import same

if TYPE_CHECKING:
    from collections.abc import Callable


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
        """Return the sum of all others."""
        law = self.law(data)
        law.remove(max(law))
        return math.fsum(law)
