"""A budget: the (ε, δ) of a whole interaction, and the largest query ε that it affords.

>>> Budget(epsilon=1.0, delta=1e-6)
Budget(epsilon=1.0, delta=1e-06)
>>> round(largest_query_epsilon(lambda query: 10 * query <= 1.0, 1.0), 6)
0.1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from targetcharge import checks
from targetcharge.errors import InvalidParameter, warn_owner
from targetcharge.numerics.search import largest_real

if TYPE_CHECKING:
    from collections.abc import Callable

_PRECISION: Final = 1e-6

_LARGE: Final = (10.0, 1e-3)
"""An ε and a δ above which a budget hardly protects anybody."""


@dataclass(frozen=True)
class Budget:
    """What everything published by a session may cost together.

    Attributes:
        epsilon: above 0.
        delta: in [0, 1). Sessions need it above 0: any number of misses is free, so no pure guarantee exists.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        """Refuse what is no privacy guarantee."""
        object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        object.__setattr__(self, "delta", checks.delta(self.delta))

    def __str__(self) -> str:
        """Return ε and δ as a reader likes them."""
        return f"({self.epsilon:g}, {self.delta:g})"


def warn_of_large(budget: Budget) -> None:
    """Warn of a budget that hardly protects anybody, and say why: where a new ledger is made."""
    epsilon, delta = budget.epsilon, budget.delta
    if delta > _LARGE[1]:
        warn_owner(
            f"a budget with δ = {delta:g} hardly protects anybody: to publish one person in {1 / delta:,.0f} just"
            " as they are would keep it. Take a δ far below 1 divided by the number of people, such as 1e-6"
        )
    if epsilon > _LARGE[0]:
        warn_owner(
            f"a budget with ε = {epsilon:g} hardly protects anybody: what is published may be e^{epsilon:g} times"
            " as likely with somebody's data as without. Most take an ε of 1 to 3, few one above 10"
        )


def check_budget(budget: Budget) -> Budget:
    """Return a budget; refuse anything else."""
    if not isinstance(budget, Budget):
        raise InvalidParameter("budget", budget, "a tc.Budget(epsilon, delta)")
    return budget


def largest_query_epsilon(affordable: Callable[[float], bool], most: float) -> float | None:
    """Return an affordable query ε, within 1e-6 of the largest up to `most`; None if there is none."""
    if most < checks.MIN_QUERY_EPSILON or not affordable(checks.MIN_QUERY_EPSILON):
        return None
    return largest_real(affordable, checks.MIN_QUERY_EPSILON, most, _PRECISION)
