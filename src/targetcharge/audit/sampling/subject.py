"""The audited code: an algorithm, or any function of the data, seen from outside.

>>> from targetcharge.mechanisms import noisy_count
>>> subject = Subject.of(noisy_count(len, epsilon=0.5))
>>> subject.name, subject.claim
('noisy_count(len)', Budget(epsilon=0.5, delta=0.0))
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from targetcharge.accounting.budget import Budget
from targetcharge.accounting.targets import Everything
from targetcharge.audit.sampling.published import (
    COUNTABLE,
    CannotCountError,
    Published,
    Raised,
    entry,
    published_of,
)
from targetcharge.errors import ComputationFailed, InvalidParameter, Refused
from targetcharge.mechanisms import Algorithm
from targetcharge.mechanisms.algorithm import function_name, takes_entropy
from targetcharge.sessions import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.randomness import Entropy

_EXPECTED = "an algorithm, or a function of the data that returns what it publishes or the session that did"
_GIVEN = "given, an ε and a δ: only an algorithm that is not wrapped and a session know theirs"
INTERACTION = (
    "A session's answers before an error are lost to the audit: catch it and return the session, or use"
    " targetcharge.audit.interaction(opening, script), which keeps them"
)
ENDINGS = frozenset({"BudgetSpent", "NotAllowed", "ComputationFailed"})
"""Errors of a session that is asked too much."""


@final
@dataclass(frozen=True)
class Subject:
    """What is audited.

    Attributes:
        name: in words.
        draw: one run: from data and entropy to what comes out.
        claim: what it promises, if it says so itself.
    """

    name: str
    draw: Callable[[object, Entropy], object]
    claim: Budget | None = None

    @classmethod
    def of(cls, run: object) -> Subject:
        """Return the subject that an algorithm or a function is."""
        if isinstance(run, Algorithm):
            whole = Everything in run.targets  # else its ε is that of one of several runs inside
            return cls(run.name, _published_by(run), Budget(run.epsilon, run.delta) if whole else None)
        if not callable(run) or inspect.isclass(run):
            raise InvalidParameter("run", run, _EXPECTED)
        if takes_entropy(run):
            return cls(function_name(run), run)
        function: Callable[[object], object] = run
        return cls(function_name(run), lambda data, _: function(data))

    def claiming(self, claim: Budget | None, data: tuple[object, object], entropy: Entropy) -> Subject:
        """Return it with a claim: the one given, its own, or that of the session that it returns."""
        if claim is not None and not isinstance(claim, Budget):
            raise InvalidParameter("claim", claim, "a tc.Budget(epsilon, delta)")
        found = claim or self.claim
        if found is None:
            guarantees = [_guarantee(self.draw, each, entropy) for each in data]
            if None in guarantees or guarantees[0] != guarantees[1]:
                raise InvalidParameter("claim", claim, _GIVEN)
            found = guarantees[0]
        return replace(self, claim=found)

    def run(self, data: object, entropy: Entropy) -> Published:
        """Return what one run publishes; an error is an outcome too, and so is leaving by sys.exit.

        Raises:
            CannotCountError: if it cannot be counted.
        """
        try:
            thing = self.draw(data, entropy)
        except KeyboardInterrupt:  # the user's
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it raises, who asked can see it
            return published_of(Raised.of(error))
        return published_of(thing)


def _published_by(algorithm: Algorithm) -> Callable[[object, Entropy], object]:
    target = algorithm.default_target

    def draw(data: object, entropy: Entropy) -> object:
        outcome = algorithm.run(data, entropy)
        return algorithm.publish(outcome, hit=target is not None and outcome in target)

    return draw


def _guarantee(draw: Callable[[object, Entropy], object], data: object, entropy: Entropy) -> Budget | None:
    try:
        thing = draw(data, entropy)
    except KeyboardInterrupt:  # the user's
        raise
    except (Refused, ComputationFailed) as error:
        expected = f"{_GIVEN}, and a run of this one ended in {type(error).__name__}. {INTERACTION}"
        raise InvalidParameter("claim", None, expected) from None
    except BaseException as error:  # noqa: BLE001 - whatever it is, the caller is told that no claim could be read
        expected = f"{_GIVEN}, and a run of this one ended: {Raised.of(error)!r}"
        raise InvalidParameter("claim", None, expected) from None
    if not isinstance(thing, Session):
        return None
    with thing:
        return thing.meter.guarantee


def interaction(opening: Callable[[Any], Session], script: Callable[[Session], object]) -> Callable[[Any], object]:
    """Return the function of the data that opens a session, plays a script and publishes the transcript.

    A refusal or a failed computation ends the script, and that is part of what is published.

    Args:
        opening: opens a session on the data; it is called once for every run.
        script: asks questions; it sees the session and nothing of the data.

    Example:
        >>> import targetcharge as tc
        >>> count = tc.mechanisms.above_threshold(len, threshold=0, epsilon=0.1)
        >>> budget = tc.Budget(3.0, 1e-6)
        >>> run = interaction(lambda rows: tc.Session(rows, budget, 0.1), lambda session: session.test(count))
        >>> run([1] * 1000)
        (((True, True, None, 'above_threshold(len)'),), 'ended')
    """

    def play(data: object) -> object:
        with opening(data) as session:
            ended = "ended"
            try:
                script(session)
            except (Refused, ComputationFailed) as error:
                ended = type(error).__name__
            return tuple(map(entry, session.transcript)), ended

    return play


def uncountable(subject: Subject, kind: str) -> InvalidParameter:
    """Return the error for something published that cannot be counted."""
    return InvalidParameter("run", subject.name, f"a function that publishes {COUNTABLE}; {kind} is none of these")


__all__ = ["CannotCountError", "Subject", "interaction", "uncountable"]
