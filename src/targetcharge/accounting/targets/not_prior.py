"""NotPrior: everything but one expected outcome costs.

>>> target = NotPrior("no")
>>> "no" in target, "yes" in target
(False, True)
>>> round(target.price(2.0, 0.1), 7)
0.0235605
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from targetcharge.accounting import prices, qvalues
from targetcharge.accounting.kind import NOT_PRIOR, Kind
from targetcharge.accounting.targets.target import Target
from targetcharge.errors import InvalidParameter


@final
@dataclass(frozen=True)
class NotPrior(Target):
    """All outcomes except the prior: pay only for a surprise.

    Attributes:
        prior: the outcome that is free. It must equal itself (NaN would make every outcome a hit).
    """

    prior: object

    def __post_init__(self) -> None:
        """Refuse a prior that has no plain yes-or-no equality."""
        try:
            equal = bool(self.prior == self.prior)
        except (TypeError, ValueError):
            equal = False
        if not equal:
            raise InvalidParameter(
                "prior", self.prior, "a value that equals itself with a plain yes (no NaN, no array)"
            )

    def __contains__(self, outcome: object) -> bool:
        """Return whether the outcome differs from the prior."""
        return bool(outcome != self.prior)

    def kappa(self, order: float, epsilon: float) -> float:
        """Return `prices.not_prior`."""
        return prices.not_prior(order, epsilon)

    def paper_row(self, epsilon: float) -> tuple[float, float]:
        """Return (ε, 1/(e^ε + 1))."""
        return epsilon, qvalues.not_prior(epsilon)

    def kind(self, epsilon: float) -> Kind:  # noqa: ARG002 - the same for every ε
        """Return the kind of tests, priors, releases and selections."""
        return NOT_PRIOR
