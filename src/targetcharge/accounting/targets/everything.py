"""Everything: every outcome costs, as in plain composition.

>>> 42 in Everything()
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from targetcharge.accounting import prices
from targetcharge.accounting.kind import Kind
from targetcharge.accounting.targets.target import Target


@final
@dataclass(frozen=True)
class Everything(Target):
    """All outcomes: what an algorithm pays when nothing is known to be free."""

    def __contains__(self, outcome: object) -> bool:
        """Return True."""
        return True

    def kappa(self, order: float, epsilon: float) -> float:
        """Return the Rényi price of the computation itself, the (ε, 1) price."""
        return prices.q_target(order, epsilon, 1.0)

    def paper_row(self, epsilon: float) -> tuple[float, float]:
        """Return (ε, 1)."""
        return epsilon, 1.0

    def kind(self, epsilon: float) -> Kind:  # noqa: ARG002 - the same for every ε
        """Return the kind with q = 1."""
        return Kind(q=1.0)
