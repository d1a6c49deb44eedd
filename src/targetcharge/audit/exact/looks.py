"""Looks: what an analyst sees of answers, errors and selections, and which outcomes look the same.

>>> from targetcharge.audit.exact.pairs import Twin
>>> looks(Twin(True), 1), looks(0, 1), looks(ValueError, ComputationFailed)
(True, False, True)
"""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import TYPE_CHECKING, Final

from targetcharge.audit.exact import pairs
from targetcharge.errors import ComputationFailed
from targetcharge.ledger import Answer
from targetcharge.sessions import Release
from targetcharge.sessions.selection import sweep

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from targetcharge.audit.exact.pairs import Pair
    from targetcharge.sessions.selection import Released, Stop

_MOST_JOINT: Final = 1024
"""Selections with more joint outcomes leave the loss as it was."""


def facts_of(answer: Answer) -> tuple[object, ...]:
    """Return what an answer shows; outcomes that look different are different."""
    return (
        repr(answer.outcome), answer.hit, answer.price, answer.units, answer.seq, answer.candidate, answer.release,
        answer.algorithm, answer.target,
    )  # fmt: skip


def error_facts(error: BaseException) -> tuple[object, ...]:
    """Return what an error shows: its type and text, and what it drags along."""
    return type(error).__name__, str(error), repr(error.args), repr(error.__cause__), repr(error.__context__)


def seen_of(found: object) -> tuple[object, ...]:
    """Return what a call's result shows."""
    match found:
        case Answer():
            return facts_of(found)
        case Release():
            return found.released, repr(found.outcome), found.price, found.seq
        case list() | tuple():
            return tuple(seen_of(each) for each in found)
        case _:
            return (repr(found),)


def looks(outcome: object, shown: object) -> bool:
    """Return whether an outcome is published as this, or raises this."""
    if isinstance(outcome, type) or isinstance(shown, type):
        return isinstance(outcome, type) and isinstance(shown, type) and _raised(outcome) is shown
    return bool(pairs.value_of(outcome) == shown)


def says_yes(outcome: object, shown: object) -> bool:
    """Return whether a test answers an outcome with this."""
    if isinstance(outcome, type) or isinstance(shown, type):
        return looks(outcome, shown)
    return bool(pairs.value_of(outcome)) is shown


def _raised(outcome: type) -> type:
    return outcome if outcome in (KeyboardInterrupt, SystemExit) else ComputationFailed


def part(law: Pair, seen: object, when: Collection[object]) -> Pair:
    """Return the outcomes of a release that look like what was seen."""
    if isinstance(seen, Release):
        if seen.released:
            return {outcome: chances for outcome, chances in law.items() if looks(outcome, seen.outcome)}
        return {
            y: chances for y, chances in law.items() if not isinstance(y, type) and pairs.value_of(y) not in when
        }
    return {outcome: chances for outcome, chances in law.items() if looks(outcome, seen)}


def selected(
    laws: Sequence[Pair], k: int, stop: Stop | None, threshold: float | None, found: Sequence[Released]
) -> Pair:
    """Return the joint outcomes of the candidates that would have been published like this."""
    if math.prod(map(len, laws)) > _MOST_JOINT:
        return {}
    shown = [repr((each.candidate, each.outcome)) for each in found if isinstance(each, Answer)]
    same: dict[object, tuple[float, float]] = {}
    for joint in itertools.product(*(law.items() for law in laws)):
        outcomes = [pairs.value_of(outcome) for outcome, _ in joint]
        if any(isinstance(outcome, type) for outcome in outcomes):
            continue
        released, _ = sweep(outcomes, k, threshold, stop, partial(_shown, outcomes))
        if [repr((each.candidate, each.outcome)) for each in released] == shown:
            first, second = (math.prod(chances[side] for _, chances in joint) for side in (0, 1))
            same[len(same)] = first, second
    return same


def _shown(outcomes: list[object], candidate: int) -> Answer:
    return Answer(outcomes[candidate], hit=True, price=0.0, seq=0, candidate=candidate)
