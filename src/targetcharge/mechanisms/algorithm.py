"""Algorithms: differentially private functions of the data, with their own ε and δ.

An algorithm declares the targets it supports; a session refuses it with any other. It gets its randomness as an
argument, so the same code runs on the operating system's entropy and, in tests, on a seeded source.

>>> from targetcharge.accounting.targets import Boundary
>>> from targetcharge.mechanisms import noisy_count
>>> algorithm = noisy_count(len, epsilon=0.1)
>>> algorithm.name, algorithm.epsilon, algorithm.delta
('noisy_count(len)', 0.1, 0.0)
>>> algorithm.supports(NotPrior(0)), algorithm.supports(Boundary())
(True, False)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, final

from targetcharge.accounting.targets import Everything, NotPrior, QTarget
from targetcharge.errors import InvalidParameter, NotAllowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.accounting.targets import Target
    from targetcharge.mechanisms.accuracy import Accuracy
    from targetcharge.randomness import Entropy

    Support = type[Target] | Target
    """All targets of a type, or one target."""

ANY_PRIOR: Final[tuple[Support, ...]] = (NotPrior, Everything)
"""What every (ε, δ)-DP algorithm supports: one free outcome, or none (docs/theory/exact.md#exact-accounting)."""


class Oracle(Protocol):
    """Tells the probabilities of an algorithm's outcomes on given data. As secret as the data."""

    def probability(self, data: object, outcome: object) -> float:
        """Return the probability of an outcome."""
        ...

    def peak(self, data: object) -> float:
        """Return the probability of the most likely outcome."""
        ...

    def rest(self, data: object) -> float:
        """Return the probability of all other outcomes together: 1 - peak, without the cancellation."""
        ...


def all_of_it(outcome: object, *, hit: bool) -> object:  # noqa: ARG001 - the same for both
    """Publish the outcome itself."""
    return outcome


@final
@dataclass(frozen=True)
class Algorithm:
    """A private function of the data. To vary one, wrap it.

    Attributes:
        name: what the transcript calls it; public.
        epsilon: its ε. For a wrapped algorithm that of one run, which is what the wrapper's target prices.
        delta: the δ of everything that one call runs.
        run: draws one outcome. Only a session calls it, once what it may cost is reserved.
        targets: the targets whose price is true of it: a type stands for all targets of that type.
        default_target: the one to ask with when the caller names none, if there is a natural one.
        oracle: the probabilities of its outcomes, if it can tell them.
        publish: what leaves of an outcome.
        accuracy: what an outcome says about the true value, if that can be told.
        prior: the earlier value that UNCHANGED stands for, if it publishes that.
        question: what it answers, as canonical JSON, if it is about a table.
    """

    name: str
    epsilon: float
    delta: float
    run: Callable[[object, Entropy], object]
    targets: tuple[Support, ...] = ANY_PRIOR
    default_target: Target | None = None
    oracle: Oracle | None = None
    publish: Callable[..., object] = all_of_it
    accuracy: Accuracy | None = None
    prior: float | None = None
    question: str = ""

    def supports(self, target: Target) -> bool:
        """Return whether this target's price is true of this algorithm."""
        return any(_implies(support, target) for support in self.targets)

    def __repr__(self) -> str:
        """Return the name and what it costs; public."""
        return f"<{self.name}, epsilon={self.epsilon:g}, delta={self.delta:g}>"


def _implies(declared: Support, asked: Target) -> bool:
    """Return whether a declared target makes the asked one true: itself, or the same members with a smaller q."""
    if isinstance(declared, type):
        return type(asked) is declared
    if isinstance(declared, QTarget) and isinstance(asked, QTarget):
        return asked.q <= declared.q and asked.members == declared.members
    return type(declared) is type(asked) and declared == asked


def together(name: str, epsilon: float, target: Target, accuracy: Accuracy | None = None) -> Algorithm:
    """Return an algorithm to price and name computations by that are drawn together; never run on its own."""
    return Algorithm(
        name=name,
        epsilon=float(epsilon),
        delta=0.0,
        run=_never_alone,
        targets=(type(target),),
        default_target=target,
        accuracy=accuracy,
    )


def _never_alone(*_: object) -> object:
    msg = "computations that are drawn together are not run one by one"
    raise AssertionError(msg)


def unwrapped(algorithm: object, wrapper: str) -> Algorithm:
    """Return an algorithm that a wrapper may wrap: one for which any outcome may be the free one."""
    if not isinstance(algorithm, Algorithm):
        expected = "an algorithm of tc.mechanisms, or a function declared with @tc.private"
        raise InvalidParameter("algorithm", algorithm, expected)
    if NotPrior not in algorithm.targets:
        msg = f"{wrapper} takes an algorithm that is not wrapped, and {algorithm.name} is: wrap what is inside it"
        raise NotAllowed(msg)
    return algorithm
