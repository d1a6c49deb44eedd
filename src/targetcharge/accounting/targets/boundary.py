"""Boundary: the boundary wrapper answered with its mark instead of an outcome.

>>> BOUNDARY in Boundary(), "label 3" in Boundary()
(True, False)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from targetcharge.accounting import prices, qvalues
from targetcharge.accounting.targets.target import Target
from targetcharge.errors import NotAllowed
from targetcharge.outcomes import BOUNDARY

if TYPE_CHECKING:
    from targetcharge.accounting.kind import Kind


@final
@dataclass(frozen=True)
class Boundary(Target):
    """The mark of the boundary wrapper: no outcome of the wrapped algorithm was likely enough."""

    max_epsilon = prices.MAX_BOUNDARY_EPSILON

    def __contains__(self, outcome: object) -> bool:
        """Return whether the outcome is the mark."""
        return outcome is BOUNDARY

    def kappa(self, order: float, epsilon: float) -> float:
        """Return `prices.boundary`, for the ε of the wrapped algorithm."""
        return prices.boundary(order, epsilon)

    def paper_row(self, epsilon: float) -> tuple[float, float]:
        """Return (t(ε), (e^t - 1)/(2(e^{ε+t} - 1)))."""
        return qvalues.boundary_epsilon(epsilon), qvalues.boundary(epsilon)

    def kind(self, epsilon: float) -> Kind:  # noqa: ARG002 - never priced on the lattice
        """Refuse: the wrapper's published law is not an ε-DP pair on the session's lattice."""
        msg = "exact accounting does not cover the boundary wrapper: open the session with meter='renyi'"
        raise NotAllowed(msg)
