"""Published things: what one run of the audited code let out, in a form that can be counted.

Values that Python calls equal and that look different (1 and True, 0.0 and -0.0, [1] and (1,)) are told apart.

>>> published_of([1, 2.5]) == published_of([1, 2.5]), published_of([1, 2.5]) == published_of((1, 2.5))
(True, False)
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
from typing import Final, NamedTuple, Self, final

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
    """The run ended in an error: an outcome like any other, known by its kind and its text."""

    kind: str
    text: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        """Return the outcome that an error is."""
        try:
            return cls(type(error).__name__, str(error))
        except Exception:  # noqa: BLE001 - an error that cannot be shown has no text
            return cls(type(error).__name__)

    def __repr__(self) -> str:
        """Return it in words."""
        return f"{self.kind} raised ({self.text})" if self.text else f"{self.kind} raised"


class Listed(tuple[Hashable, ...]):
    """What was a list: equal to a tuple, and known by its type."""

    __slots__ = ()


class Mapped(tuple[Hashable, ...]):
    """What was a mapping: its items, in an order of their own."""

    __slots__ = ()


class Arrayed(tuple[Hashable, ...]):
    """What was an array of numpy's."""

    __slots__ = ()


class NotANumber(float):
    """NaN, equal to itself."""

    __slots__ = ()

    def __new__(cls) -> Self:
        """Return it; there is one value."""
        return super().__new__(cls, math.nan)

    def __eq__(self, other: object) -> bool:
        """Return whether the other is one too."""
        return isinstance(other, NotANumber)

    def __hash__(self) -> int:
        """Return the same for all."""
        return hash("NaN")

    def __reduce__(self) -> tuple[type[NotANumber], tuple[()]]:
        """Return how to make it again."""
        return NotANumber, ()


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
        return _number(thing, looks)
    if isinstance(thing, list | tuple):
        listed = isinstance(thing, list)
        looks.append("[" if listed else "(")
        found = [_plain(member, looks) for member in thing]
        looks.append("]" if listed else ")")
        return Listed(found) if listed else tuple(found)
    return _rarer(thing, looks)


def _number(number: float | np.floating, looks: list[str]) -> Hashable:
    if type(number) is not float:
        looks.append(f"<{type(number).__qualname__}>")
    if math.isnan(number):
        looks.append("x")
        return NotANumber()  # no NaN of Python's is equal to another
    looks.append("z" if number == 0 and math.copysign(1, number) < 0 else "f")
    return number if isinstance(number, np.floating) else float(number)


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
            return _numpys(thing, looks)
        case AbstractSet():
            looks.append("{")
            return frozenset(published_of(member) for member in thing)
        case Mapping():
            looks.append("{")
            items = _plain(tuple(sorted(thing.items(), key=lambda item: repr(item[0]))), looks)
            return Mapped(items) if isinstance(items, tuple) else items
    if not isinstance(thing, Enum) and type(thing).__hash__ in {None, object.__hash__}:
        raise CannotCountError(type(thing).__name__)
    try:
        hash(thing)
    except TypeError:
        raise CannotCountError(type(thing).__name__) from None
    looks.append(f"<{type(thing).__qualname__}>")
    return thing


def _numpys(thing: np.generic | np.ndarray, looks: list[str]) -> Hashable:
    if isinstance(thing, np.ndarray):
        looks.append(f"<{thing.dtype} {thing.ndim}>")
        found = _plain(thing.tolist(), looks)
        return Arrayed(found) if isinstance(found, tuple) else found
    looks.append(f"<{type(thing).__qualname__}>")
    return thing if isinstance(thing, np.integer | np.bool) else _plain(thing.item(), looks)


def entry(answer: Answer) -> tuple[object, ...]:
    """Return what an answer tells, without the time and the ledger's numbers."""
    return answer.hit, answer.outcome, answer.candidate, answer.algorithm
