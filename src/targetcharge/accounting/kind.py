"""What a session asks: the kinds of target its exact accounting must cover.

>>> Kind(not_prior=True) | Kind(q=0.3)
Kind(not_prior=True, disagreement=False, q=0.3)
"""

from __future__ import annotations

from dataclasses import dataclass

from targetcharge import checks
from targetcharge.accounting import prices
from targetcharge.errors import InvalidParameter


@dataclass(frozen=True)
class Kind:
    """A union of target kinds that exact accounting knows.

    Attributes:
        not_prior: outcomes outside the target are published only as "nothing": tests, priors, releases with
            revisions, top-k selection.
        disagreement: the two runs of a computation differ. Implies `not_prior`: when one of the runs ignores
            the data the other is a plain test.
        q: any (ε, q)-target with at least this q; None if there is none.
    """

    not_prior: bool = False
    disagreement: bool = False
    q: float | None = None

    def __post_init__(self) -> None:
        """Close the union, drop what it implies (q = 1 is a test that always hits) and refuse an empty one."""
        if self.disagreement:
            object.__setattr__(self, "not_prior", True)
        if self.q is not None:
            object.__setattr__(self, "q", None if self.not_prior and self.q == 1 else checks.q(self.q))
        if not self.not_prior and self.q is None:
            raise InvalidParameter("kind", self, "at least one of not_prior, disagreement and q")

    def __or__(self, other: Kind) -> Kind:
        """Return the kind of a session that asks both."""
        qs = [q for q in (self.q, other.q) if q is not None]
        return Kind(
            not_prior=self.not_prior or other.not_prior,
            disagreement=self.disagreement or other.disagreement,
            q=min(qs) if qs else None,
        )

    def covers(self, other: Kind) -> bool:
        """Return whether a session of this kind may ask questions of the other."""
        return other == self or self | other == self

    def kappa(self, order: float, epsilon: float) -> float:
        """Return a Rényi price that covers every member (infinite where there is none)."""
        price = 0.0
        if self.not_prior:
            price = prices.not_prior(order, epsilon)
        if self.disagreement:
            price = max(price, prices.disagreement(order, epsilon))
        if self.q is not None:
            price = max(price, prices.q_target(order, epsilon, self.q))
        return price

    @property
    def max_epsilon(self) -> float:
        """Return the largest ε of a computation: two runs are one computation of twice the ε."""
        return checks.MAX_QUERY_EPSILON / (2 if self.disagreement else 1)

    def check_epsilon(self, epsilon: float, name: str = "epsilon") -> float:
        """Return the ε of a computation that sessions of this kind can account for."""
        return checks.query_epsilon(epsilon, name, self.max_epsilon)

    @property
    def all_hits(self) -> bool:
        """Return whether every outcome is a hit: plain composition, where δ = 0 makes sense."""
        return self.q == 1 and not self.not_prior


NOT_PRIOR = Kind(not_prior=True)
