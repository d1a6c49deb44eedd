"""Targets, the sets of outcomes that cost: what all of them have, and those that need no more than a price.

>>> target = NotPrior("no")
>>> "no" in target, "yes" in target, round(target.price(2.0, 0.1), 7)
(False, True, 0.0235605)
>>> 42 in Everything(), "high" in QTarget(0.4, {"high", "low"})
(True, True)
>>> ("a", "b") in Disagreement(), ("a", "a") in Disagreement()
(True, False)
>>> (1, True) in Disagreement()  # equal to Python, yet they look different: publishing them would tell them apart
True
>>> Kind(not_prior=True) | Kind(q=0.3)
Kind(not_prior=True, disagreement=False, q=0.3)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from targetcharge import checks
from targetcharge.accounting import prices, qvalues
from targetcharge.errors import InvalidParameter
from targetcharge.numerics.search import largest_real
from targetcharge.outcomes import PUBLISHABLE, UnpublishableError, publishable, same

if TYPE_CHECKING:
    from targetcharge.accounting.curves import Curve

_MEMBERS = "a set, list or tuple of outcomes"


@dataclass(frozen=True)
class Kind:
    """What a session asks: the kinds of target that its exact accounting must cover.

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

    def with_offset(self) -> Target:
        """Return the target as it is priced where counts carry an offset at λ = ½."""
        return self

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


@final
@dataclass(frozen=True)
class Everything(Target):
    """All outcomes: what an algorithm pays when nothing is known to be free.

    Attributes:
        curve: what one run may tell; None for what its ε says.
    """

    curve: Curve | None = None

    def __contains__(self, outcome: object) -> bool:
        """Return True."""
        return True

    def kappa(self, order: float, epsilon: float) -> float:
        """Return the Rényi price of the computation itself: that of its curve, or the (ε, 1) price."""
        return prices.q_target(order, epsilon, 1.0) if self.curve is None else self.curve.moment(order)

    def paper_row(self, epsilon: float) -> tuple[float, float]:
        """Return (ε, 1); an infinite ε for a curve that has none."""
        return (epsilon if self.curve is None else self.curve.pure_epsilon), 1.0

    def kind(self, epsilon: float) -> Kind:  # noqa: ARG002 - the same for every ε
        """Return the kind with q = 1."""
        return Kind(q=1.0)


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
