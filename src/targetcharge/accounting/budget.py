"""A budget: the (ε, δ) of a whole interaction.

>>> Budget(epsilon=1.0, delta=1e-6)
Budget(epsilon=1.0, delta=1e-06)
"""

from __future__ import annotations

from dataclasses import dataclass

from targetcharge import checks
from targetcharge.errors import InvalidParameter


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


def check_budget(budget: Budget) -> Budget:
    """Return a budget; refuse anything else."""
    if not isinstance(budget, Budget):
        raise InvalidParameter("budget", budget, "a tc.Budget(epsilon, delta)")
    return budget
