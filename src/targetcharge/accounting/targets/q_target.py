"""QTarget: any set of outcomes whose q its author declares.

>>> target = QTarget(0.4, {"high", "low"})
>>> "high" in target, "middle" in target
(True, False)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from targetcharge import checks
from targetcharge.accounting import prices
from targetcharge.accounting.kind import Kind
from targetcharge.accounting.targets.target import Target
from targetcharge.errors import InvalidParameter
from targetcharge.outcomes import PUBLISHABLE, UnpublishableError, publishable

_MEMBERS = "a set, list or tuple of outcomes"


@final
@dataclass(frozen=True)
class QTarget(Target):
    """Outcomes that the data-dependent part of the computation hits with probability at least q.

    Attributes:
        q: in (0, 1]; `tc.accounting.best_q` computes it for a pair of laws.
        members: the outcomes that cost; a copy, in the canonical form in which outcomes are published.
    """

    q: float
    members: Collection[object]

    def __post_init__(self) -> None:
        """Check q; copy the members, so that nobody changes them afterwards."""
        object.__setattr__(self, "q", checks.q(self.q))
        object.__setattr__(self, "members", _canonical(self.members))

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


def _canonical(members: Collection[object]) -> frozenset[object]:
    if isinstance(members, str | bytes | bytearray | Mapping | np.ndarray):
        raise InvalidParameter("members", members, _MEMBERS)
    try:
        return frozenset(publishable(member) for member in members)
    except TypeError:
        raise InvalidParameter("members", members, _MEMBERS) from None
    except UnpublishableError:
        raise InvalidParameter("members", members, f"{_MEMBERS}, each {PUBLISHABLE}") from None
