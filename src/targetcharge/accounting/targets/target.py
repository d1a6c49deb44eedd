"""What every target has: membership, a price, and its row in the paper's table.

>>> from targetcharge.accounting.targets import NotPrior
>>> issubclass(NotPrior, Target), "yes" in NotPrior("no")
(True, True)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, final

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.numerics.search import largest_real

if TYPE_CHECKING:
    from targetcharge.accounting.kind import Kind


class Target(ABC):
    """The set of outcomes that cost. An outcome in it is a hit."""

    max_epsilon: ClassVar[float] = checks.MAX_QUERY_EPSILON
    """The largest ε of a computation for which this target has a price."""

    def __init_subclass__(cls) -> None:
        """Refuse a target from elsewhere: it could count a hit as a miss, or name a price below the truth."""
        if cls.__module__.partition(".")[0] != __name__.partition(".")[0]:
            msg = f"{cls.__name__} is no target of targetcharge, whose prices are proven: use QTarget(q, members)"
            raise TypeError(msg)

    @abstractmethod
    def __contains__(self, outcome: object) -> bool:
        """Return whether the outcome is a hit."""

    @abstractmethod
    def kappa(self, order: float, epsilon: float) -> float:
        """Return the Rényi price of one hit for an ε-DP computation; `inf` where there is none."""

    @abstractmethod
    def paper_row(self, epsilon: float) -> tuple[float, float]:
        """Return the (ε, q) under which the paper accounts for an ε-DP computation with this target."""

    @abstractmethod
    def kind(self, epsilon: float) -> Kind:
        """Return what exact accounting must cover; NotAllowed if it cannot account for this target."""

    def published_epsilon(self, epsilon: float) -> float:
        """Return the ε of what is published of an ε-DP computation, on its own."""
        return self.paper_row(epsilon)[0]

    @final
    def check_epsilon(self, epsilon: float, name: str = "epsilon") -> float:
        """Return the ε of a computation that this target can price."""
        if type(epsilon) is float and checks.MIN_QUERY_EPSILON <= epsilon <= self.max_epsilon:
            return epsilon
        what = f"one computation asked with {type(self).__name__}"
        return checks.query_epsilon(epsilon, name, self.max_epsilon, what)

    @final
    def price(self, order: float, epsilon: float) -> float:
        """Return the Rényi price of one hit at this order for an ε-DP computation.

        Raises:
            InvalidParameter: if a parameter is out of range or the price is infinite at this order.
        """
        order = checks.order(order)
        epsilon = self.check_epsilon(epsilon)
        kappa = self.kappa(order, epsilon)
        if kappa < math.inf:
            return kappa
        limit = largest_real(lambda a: self.kappa(a, epsilon) < math.inf, 1.0, order, 1e-9)
        largest = math.floor(limit * 1e9) / 1e9
        expected = (
            f"at most {largest!r} for epsilon {epsilon:g} with {type(self).__name__}: above it the price is"
            " infinite; take a smaller order or a smaller epsilon"
        )
        raise InvalidParameter("order", order, expected)
