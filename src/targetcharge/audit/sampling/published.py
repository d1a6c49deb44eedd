"""Published things: what one run of the audited code let out, in a form that can be counted.

Values that Python calls equal and that look different (1 and True, 0.0 and -0.0) are told apart.

>>> published_of([1, 2.5]) == published_of((1, 2.5))
True
>>> published_of(1) == published_of(True)
False
>>> published_of(object())
Traceback (most recent call last):
targetcharge.audit.sampling.published.CannotCountError: object
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, final

import numpy as np

from targetcharge.ledger import Answer
from targetcharge.sessions import Release, Session

COUNTABLE: Final = (
    "plain data (None, booleans, numbers, text, bytes, lists, tuples, sets, dicts of these), a session, an answer,"
    " or an object with a hash of its own"
)


class Published(NamedTuple):
    """One published thing.

    Attributes:
        value: plain, hashable data.
        looks: the kinds of what is inside, so that 1, True and 1.0 are three things.
    """

    value: Hashable
    looks: str = ""


@final
@dataclass(frozen=True)
class Raised:
    """The run ended in an error: an outcome like any other, known by its kind."""

    kind: str

    def __repr__(self) -> str:
        """Return it in words."""
        return f"{self.kind} raised"


class CannotCountError(Exception):
    """A published thing that cannot be compared with another; the text is its type."""


def published_of(thing: object) -> Published:
    """Return a thing in the form in which it is counted.

    A session is its transcript, and is closed.

    Raises:
        CannotCountError: if it, or something inside it, cannot be hashed or is equal only to itself.
    """
    looks: list[str] = []
    return Published(_plain(thing, looks), "".join(looks))


_KINDS: Final = {type(None): "n", bool: "b", int: "i", str: "s", bytes: "y", Raised: "r"}


def _plain(thing: object, looks: list[str]) -> Hashable:
    kind = _KINDS.get(type(thing))
    if kind:
        looks.append(kind)
        return thing
    if isinstance(thing, float | np.floating):
        return _number(float(thing), looks)
    if isinstance(thing, list | tuple):
        looks.append("(")
        found = tuple([_plain(member, looks) for member in thing])
        looks.append(")")
        return found
    return _rarer(thing, looks)


def _number(number: float, looks: list[str]) -> Hashable:
    if math.isnan(number):
        looks.append("x")
        return "nan"  # no NaN is equal to another
    looks.append("z" if number == 0 and math.copysign(1, number) < 0 else "f")
    return number


def _rarer(thing: object, looks: list[str]) -> Hashable:
    match thing:
        case Session():
            with thing:
                return _plain([entry(answer) for answer in thing.transcript], looks)
        case Answer():
            return _plain(entry(thing), looks)
        case Release():
            return _plain((thing.released, thing.outcome), looks)
        case np.generic() | np.ndarray():
            return _plain(thing.tolist(), looks)
        case AbstractSet():
            looks.append("{")
            return frozenset(published_of(member) for member in thing)
        case Mapping():
            looks.append("{")
            return _plain(sorted(thing.items(), key=lambda item: repr(item[0])), looks)
    if not isinstance(thing, Enum) and type(thing).__hash__ in {None, object.__hash__}:
        raise CannotCountError(type(thing).__name__)
    try:
        hash(thing)
    except TypeError:
        raise CannotCountError(type(thing).__name__) from None
    looks.append(f"<{type(thing).__qualname__}>")
    return thing


def entry(answer: Answer) -> tuple[object, ...]:
    """Return what an answer tells, without the time and the ledger's numbers."""
    return answer.hit, answer.outcome, answer.candidate, answer.algorithm
