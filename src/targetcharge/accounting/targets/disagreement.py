"""Disagreement: an algorithm was run twice and the two outcomes differ.

>>> ("a", "b") in Disagreement(), ("a", "a") in Disagreement()
(True, False)
>>> (1, True) in Disagreement()  # equal to Python, yet they look different: publishing them would tell them apart
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from targetcharge import checks
from targetcharge.accounting import prices, qvalues
from targetcharge.accounting.kind import Kind
from targetcharge.accounting.targets.target import Target
from targetcharge.outcomes import same


@final
@dataclass(frozen=True)
class Disagreement(Target):
    """The pair of outcomes of two independent runs is not a pair of equals."""

    max_epsilon = checks.MAX_QUERY_EPSILON / 2

    def __contains__(self, outcome: object) -> bool:
        """Return whether the outcome is a pair of different values."""
        if not isinstance(outcome, tuple) or len(outcome) != 2:
            return True
        first, second = outcome
        return not same(first, second)

    def kappa(self, order: float, epsilon: float) -> float:
        """Return `prices.disagreement`, for the ε of one run."""
        return prices.disagreement(order, epsilon)

    def paper_row(self, epsilon: float) -> tuple[float, float]:
        """Return (2ε, 1 - sqrt(e^{2ε}/(1 + e^{2ε})))."""
        return 2 * epsilon, qvalues.disagreement(epsilon)

    def kind(self, epsilon: float) -> Kind:  # noqa: ARG002 - the same for every ε
        """Return the kind of tests and run-twice computations."""
        return Kind(disagreement=True)
