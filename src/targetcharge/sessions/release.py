"""Releases: an outcome is drawn once and published as soon as a condition allows it.

>>> import targetcharge as tc
>>> people = list(range(100))
>>> with tc.Session(people, tc.Budget(15.0, 1e-6), query_epsilon=0.5) as session:
...     release = session.release(tc.mechanisms.noisy_count(len, 0.5), when=lambda count: count > 1000)
...     release.released, release.outcome
...     later = release.revise(lambda count: count > 50)
...     later.released, abs(later.outcome - 100) < 60, session.meter.hits
(False, None)
(True, True, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, final

from targetcharge.errors import InvalidParameter, NotAllowed, shown
from targetcharge.ledger import words
from targetcharge.sessions.select import plain_number

if TYPE_CHECKING:
    from targetcharge.ledger.answer import Interval
    from targetcharge.sessions.select import Score
    from targetcharge.sessions.session import Session

When = Callable[[Any], object] | Container[object] | float
"""A condition on the value it may release: a function, a set of values, or the least number."""


@final
@dataclass(frozen=True)
class Release:
    """Where a conditional release stands. Revising gives a new one.

    Attributes:
        released: whether the outcome was published.
        outcome: what was published; None while it is pending.
        price: what it cost: 0 while it is pending.
        seq: of the release, by which it is known.
        algorithm: the name of what was drawn; empty if that is not known.
        scale: of the noise; 0 if there is no such figure.
        interval: where the true value lies, once it is published: for at least 95% of all draws.
    """

    released: bool
    outcome: object
    price: float
    seq: int
    _session: Session = field(repr=False, compare=False)
    scale: float = field(default=0.0, repr=False)
    interval: Interval | None = field(default=None, repr=False)
    algorithm: str = field(default="", repr=False, compare=False)

    def __str__(self) -> str:
        """Return what waits or was published, with its 95% interval, and the cost, in a line."""
        about = f"release {self.seq}" + (f", {self.algorithm}" if self.algorithm else "")
        if not self.released:
            return f"{about}: not published yet, free"
        published = words.with_interval(words.line(self.outcome), self.interval)
        return f"{about}: {published}, {words.cost(self.price, hit=True)}"

    def revise(self, when: When) -> Release:
        """Add values to those that may be published. The outcome is not drawn again and δ not spent again.

        Raises:
            NotAllowed: if it was published.
            BudgetSpent: if a hit is not covered.
        """
        if self.released:
            msg = f"release {self.seq} was published: there is nothing left to revise"
            raise NotAllowed(msg)
        return self._session.revise(self.seq, when)


def is_least(when: When) -> bool:
    """Return whether a condition is a number: the least outcome that is released."""
    return isinstance(when, Real) and plain_number(when) is not None


@final
@dataclass(frozen=True, repr=False, eq=False)
class Condition:
    """A condition as a function of the outcome that never raises: one that does counts as false.

    Attributes:
        when: as the caller gave it.
        test: the function that it stands for; it may raise.
    """

    when: When
    test: Callable[[Any], object]

    @classmethod
    def of(cls, when: When) -> Condition:
        """Return the condition that a caller gave."""
        if is_least(when):
            return cls(when, _at_least(plain_number(when)))
        if callable(when):
            return cls(when, when)
        if isinstance(when, Container) and not isinstance(when, str | bytes | bytearray):
            return cls(when, when.__contains__)
        raise InvalidParameter("when", when, "a function of the outcome, a set of outcomes, or the least number")

    def __call__(self, outcome: object) -> bool:
        """Return whether the outcome may be published."""
        try:
            return bool(self.test(outcome))
        except Exception:  # noqa: BLE001 - a condition that cannot be evaluated does not hold
            return False

    def rehearse(self, examples: Sequence[object], *, known: bool = True) -> None:
        """Refuse what would only look like a condition that does not hold: one that raises on a number, or on all.

        Args:
            examples: outcomes made up from public facts; none where nothing is known of them.
            known: whether the algorithm gives such outcomes; else no single one of them says much.
        """
        raised = [(example, problem) for example in examples if (problem := self._problem(example))]
        telling = raised if len(raised) == len(examples) else []
        if known:
            telling = [pair for pair in raised if type(pair[0]) in (int, float)] or telling
        for example, problem in telling[:1]:
            expected = f"one that takes every outcome: of {shown(example)}, which is made up, it raised {problem}"
            raise InvalidParameter("when", self.when, f"{expected}. Nothing was drawn")

    def _problem(self, example: object) -> str:
        """Return what the test raises on a made-up outcome; empty if nothing."""
        try:
            bool(self.test(example))
        except Exception as error:  # noqa: BLE001 - whatever a caller's condition raises is told as its mistake
            return f"{type(error).__name__}: {error}"
        return ""


def _at_least(least: Score | None) -> Callable[[Any], object]:
    """Return whether an outcome is at least a number of Python's own: one of a caller's class could look at it."""

    def reached(outcome: Any) -> object:  # noqa: ANN401 - whatever was drawn
        return outcome >= least

    return reached
