"""What shows: what an analyst sees of answers and errors, and which outcomes look so.

>>> from targetcharge.audit.exact.pairs import Twin
>>> looks(Twin(True), 1), looks(0, 1), looks(ValueError, ComputationFailed)
(True, False, True)
"""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import TYPE_CHECKING, Final

from targetcharge.audit.exact.pairs import value_of
from targetcharge.errors import ComputationFailed
from targetcharge.ledger import Answer
from targetcharge.sessions import Release
from targetcharge.sessions.release import Condition
from targetcharge.sessions.select import sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.accounting.targets import Target
    from targetcharge.audit.exact.pairs import Chance, Law
    from targetcharge.sessions.release import When
    from targetcharge.sessions.select import Stop

_MOST_JOINT: Final = 1024
"""Selections with more joint outcomes leave the loss as it was."""


def facts_of(answer: Answer) -> tuple[object, ...]:
    """Return what an answer shows; outcomes that look different are different."""
    return (
        repr(answer.outcome), answer.hit, answer.price, answer.grains, answer.seq, answer.candidate,
        answer.release, answer.algorithm, answer.targets, answer.call,
    )  # fmt: skip


def error_facts(error: BaseException) -> tuple[object, ...]:
    """Return what an error shows: its type and text, and what it drags along."""
    return type(error).__name__, str(error), repr(error.args), repr(error.__cause__), repr(error.__context__)


def result_facts(result: object) -> tuple[object, ...]:
    """Return what a call's result shows."""
    match result:
        case Answer():
            return facts_of(result)
        case Release():
            return result.released, repr(result.outcome), result.price, result.seq
        case list() | tuple():
            return tuple(result_facts(answer) for answer in result)
        case _:
            return (repr(result),)


# Which outcomes look so.


def looks(outcome: object, shown: object) -> bool:
    """Return whether an outcome is published as this, or raises this type of error."""
    if isinstance(outcome, type) and isinstance(shown, type):
        return shown is (outcome if outcome in (KeyboardInterrupt, SystemExit) else ComputationFailed)
    if isinstance(outcome, type) or isinstance(shown, type):
        return False
    return bool(value_of(outcome) == shown)


def answers_yes(target: Target, outcome: object, shown: object) -> bool:
    """Return whether a test with a target answers an outcome with this."""
    if isinstance(outcome, type) or isinstance(shown, type):
        return looks(outcome, shown)
    return (value_of(outcome) in target) is shown


def still_possible(law: Law, result: object, when: When) -> Law:
    """Return the outcomes of a release that are possible after a result: a release, or a type of error."""
    if isinstance(result, Release) and not result.released:
        holds = Condition.of(when)
        return {
            outcome: chances
            for outcome, chances in law.items()
            if not isinstance(outcome, type) and not holds(value_of(outcome))
        }
    shown = result.outcome if isinstance(result, Release) else result
    return {outcome: chances for outcome, chances in law.items() if looks(outcome, shown)}


def selected_like(
    answers: Sequence[object], laws: Sequence[Law], k: int, stop: Stop | None, threshold: float | None
) -> Law:
    """Return the joint outcomes of the candidates that would have been published like these answers."""
    if math.prod(map(len, laws)) > _MOST_JOINT:
        return {}
    shown = [repr((answer.candidate, answer.outcome)) for answer in answers if isinstance(answer, Answer)]
    same: dict[object, tuple[Chance, Chance]] = {}
    for joint in itertools.product(*(law.items() for law in laws)):
        outcomes = [value_of(outcome) for outcome, _ in joint]
        if any(isinstance(outcome, type) for outcome in outcomes):
            continue
        released, _ = sweep(outcomes, k, threshold, stop, partial(_answer, outcomes))
        if [repr((answer.candidate, answer.outcome)) for answer in released] == shown:
            first, second = (math.prod(chances[side] for _, chances in joint) for side in (0, 1))
            same[len(same)] = first, second
    return same


def _answer(outcomes: list[object], candidate: int) -> Answer:
    return Answer(outcomes[candidate], hit=True, price=0.0, seq=0, candidate=candidate)
