"""QTarget: any set of outcomes whose q its author declares.

>>> target = QTarget(0.4, {"high", "low"})
>>> "high" in target, "middle" in target
(True, False)
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from targetcharge import checks
from targetcharge.accounting import prices
from targetcharge.accounting.kind import Kind
from targetcharge.accounting.targets.target import Target
from targetcharge.errors import InvalidParameter


@dataclass(frozen=True)
class QTarget(Target):
    """Outcomes that the data-dependent part of the computation hits with probability at least q.

    Attributes:
        q: in (0, 1]; `tc.accounting.best_q` computes it for a pair of laws.
        members: anything that answers `outcome in members`.
    """

    q: float
    members: Container[object]

    def __post_init__(self) -> None:
        """Check q and that membership can be asked."""
        object.__setattr__(self, "q", checks.q(self.q))
        if not isinstance(self.members, Container):
            raise InvalidParameter("members", self.members, "a container of outcomes, such as a set")

    def __contains__(self, outcome: object) -> bool:
        """Return whether the outcome is a member."""
        return outcome in self.members

    def kappa(self, order: float, epsilon: float) -> float:
        """Return `prices.q_target`."""
        return prices.q_target(order, epsilon, self.q)

    def paper_row(self, epsilon: float) -> tuple[float, float]:
        """Return (ε, q)."""
        return epsilon, self.q

    def kind(self, epsilon: float) -> Kind:  # noqa: ARG002 - the same for every ε
        """Return the kind with this q."""
        return Kind(q=self.q)
