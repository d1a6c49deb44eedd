"""Candidates of a selection: declared by the caller, so that their number tells nothing about the data.

>>> declared(3), declared(["red", "green"])
((0, 1, 2), ('red', 'green'))
>>> scores_of([1, 2], 3)
Traceback (most recent call last):
ValueError: 2 scores for 3 outcomes
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.outcomes import PUBLISHABLE, Mark, UnpublishableError, publishable

_EXPECTED = "a list of different outcomes, or their number"

Outcomes = int | Sequence[object]


def declared(outcomes: Outcomes, name: str = "outcomes") -> tuple[object, ...]:
    """Return the outcomes in canonical form: 0 … n-1 for a number n.

    Outcomes that Python calls equal (1 and True) are refused: a prior could not tell them apart.
    """
    if isinstance(outcomes, np.ndarray):
        outcomes = outcomes.tolist()
    if not isinstance(outcomes, Sequence):
        return tuple(range(_number(outcomes, name)))
    if isinstance(outcomes, str | bytes | bytearray) or not len(outcomes):
        raise InvalidParameter(name, outcomes, _EXPECTED)
    try:
        found = tuple(publishable(outcome) for outcome in outcomes)
    except UnpublishableError:
        raise InvalidParameter(name, outcomes, f"a list whose members are each {PUBLISHABLE}") from None
    if len(set(found)) < len(found) or not set(Mark).isdisjoint(found):
        marks = " or ".join(map(repr, Mark))
        raise InvalidParameter(name, outcomes, f"{_EXPECTED}, none of them {marks}")
    return found


def _number(outcomes: int, name: str) -> int:
    try:
        return checks.positive_integer(name, outcomes)
    except InvalidParameter:
        raise InvalidParameter(name, outcomes, _EXPECTED) from None


def scores_of(scores: Iterable[Any], count: int) -> list[Any]:
    """Return the scores as a list, one for each outcome."""
    found: list[Any] = scores.tolist() if isinstance(scores, np.ndarray) else list(scores)
    if len(found) != count:
        msg = f"{len(found)} scores for {count} outcomes"
        raise ValueError(msg)
    return found
