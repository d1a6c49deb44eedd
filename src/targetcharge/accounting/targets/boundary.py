"""Boundary: the boundary wrapper answered with its mark instead of an outcome.

>>> BOUNDARY in Boundary(), "label 3" in Boundary()
(True, False)
>>> Boundary().price(2.0, 0.1) > Boundary(caution=2).price(2.0, 0.1)
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from targetcharge import checks
from targetcharge.accounting import prices, qvalues
from targetcharge.accounting.targets.target import Target
from targetcharge.errors import InvalidParameter, NotAllowed, Setting
from targetcharge.outcomes import BOUNDARY

if TYPE_CHECKING:
    from targetcharge.accounting.targets.target import Kind

LEAST_DOUBT: Final = math.exp(-700)
"""A smaller π counts as this: 0, which it would be rounded to, is another thing than very little."""


@final
@dataclass(frozen=True)
class Boundary(Target):
    """The mark of the boundary wrapper: no outcome of the wrapped algorithm was likely enough.

    Attributes:
        caution: how readily it marks, from 1 (the paper's wrapper) to 100. More of it makes each mark cheaper, and
            what is not marked surer.
    """

    caution: float = 1.0

    max_epsilon = prices.MAX_BOUNDARY_EPSILON

    def __post_init__(self) -> None:
        """Refuse a caution that has no price."""
        expected = f"a number from 1 to {prices.MOST_CAUTION:g}; 1 is the paper's wrapper"
        number = checks.real(self.caution, "caution", expected)
        if not 1 <= number <= prices.MOST_CAUTION:
            raise InvalidParameter("caution", self.caution, expected)
        object.__setattr__(self, "caution", number)

    def __repr__(self) -> str:
        """Return how it is written."""
        return "Boundary()" if self.as_in_the_paper else f"Boundary(caution={self.caution!r})".replace(".0)", ")")

    @property
    def as_in_the_paper(self) -> bool:
        """Return whether the paper knows this wrapper."""
        return self.caution == 1

    def mark_probability(self, rest: float) -> float:
        """Return cπ/(1+cπ), at most c/(2+c), where π is the probability of all outcomes but the likeliest."""
        doubt = self.caution * min(max(rest, LEAST_DOUBT), 0.5)
        return doubt / (1 + doubt)

    def __contains__(self, outcome: object) -> bool:
        """Return whether the outcome is the mark."""
        return outcome is BOUNDARY

    def kappa(self, order: float, epsilon: float) -> float:
        """Return `prices.boundary`, or `prices.cautious_boundary`, for the ε of what is wrapped."""
        if self.as_in_the_paper:
            return prices.boundary(order, epsilon)
        return prices.cautious_boundary(order, epsilon, self.caution)

    def paper_row(self, epsilon: float) -> tuple[float, float]:
        """Return (t(ε), (e^t - 1)/(2(e^{ε+t} - 1))); the paper has no row for more caution."""
        if not self.as_in_the_paper:
            msg = f"the paper's theorem covers the boundary wrapper with caution 1, and this has {self.caution:g}"
            raise NotAllowed(msg)
        return qvalues.boundary_epsilon(epsilon), qvalues.boundary(epsilon)

    def published_epsilon(self, epsilon: float) -> float:
        """Return the tight t(ε) = ε + ln((2+c)/(2+c·e^{-ε}))."""
        return qvalues.boundary_epsilon(epsilon, self.caution)

    def kind(self, epsilon: float) -> Kind:  # noqa: ARG002 - never priced on the lattice
        """Refuse: the wrapper's published law is not an ε-DP pair on the session's lattice."""
        msg = "exact accounting does not cover the boundary wrapper: open the session with "
        raise NotAllowed(msg, Setting("meter", "renyi"))
