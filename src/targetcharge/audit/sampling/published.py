"""Published values: what one run of the audited code let out, in a form that can be counted, and what is inside.

Values that Python calls equal and that look different (1 and True, 0.0 and -0.0, [1] and (1,)) are told apart.

>>> published_of([1, 2.5]) == published_of([1, 2.5]), published_of([1, 2.5]) == published_of((1, 2.5))
(True, False)
>>> published_of(1) == published_of(True)
False
>>> published_of(object())
Traceback (most recent call last):
targetcharge.audit.sampling.published.CannotCountError: object
>>> leaves(("a", (2, 3.5)))
{(0,): 'a', (1, 0): 2, (1, 1): 3.5}
>>> lowest_bit(12), lowest_bit(0.75), lowest_bit(0)
(2, -2, None)
>>> label(0.0) == label(-0.0), label(1) == label(True), shapes(("a", (2, 3)))
(False, False, {(): ('tuple', 2), (1,): ('tuple', 2)})
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Self, final

import numpy as np

from targetcharge.ledger import Answer
from targetcharge.sessions import Release, Session

Path = tuple[int, ...]
"""Where a value is inside nested collections."""

Label = tuple[Hashable, Hashable]
"""A value and its type."""

MOST_LEAVES: Final = 512
"""Further values of a long transcript are not looked at, but as a part of everything that is published."""

COUNTABLE: Final = (
    "plain data (None, booleans, numbers, text, bytes, lists, tuples, sets, dicts of these), a session, an answer,"
    " or an object with a hash of its own"
)


class Published(NamedTuple):
    """What one run published.

    Attributes:
        value: plain, hashable data.
        types: of what is inside, so that 1, True and 1.0 are three things.
    """

    value: Hashable
    types: str = ""


@final
@dataclass(frozen=True)
class Raised:
    """The run ended in an error: an outcome like any other, known by its type and its text."""

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
        """Return the error in words."""
        return f"{self.kind} raised ({self.text})" if self.text else f"{self.kind} raised"


class FromList(tuple[Hashable, ...]):
    """The members of a list: equal to a tuple, and known by its type."""

    __slots__ = ()


class FromDict(tuple[Hashable, ...]):
    """The items of a mapping, in an order of their own."""

    __slots__ = ()


class FromArray(tuple[Hashable, ...]):
    """The members of an array of numpy's."""

    __slots__ = ()


class NotANumber(float):
    """NaN, equal to itself."""

    __slots__ = ()

    def __new__(cls) -> Self:
        """Return NaN; there is one value."""
        return super().__new__(cls, math.nan)

    def __eq__(self, other: object) -> bool:
        """Return whether the other is NaN too."""
        return isinstance(other, NotANumber)

    def __hash__(self) -> int:
        """Return the same for all."""
        return hash("NaN")

    def __reduce__(self) -> tuple[type[NotANumber], tuple[()]]:
        """Return how workers send it."""
        return NotANumber, ()


class CannotCountError(Exception):
    """A published value that cannot be compared with another; the text is its type."""


def published_of(value: object) -> Published:
    """Return a value in the form in which it is counted.

    A session is its transcript, and is closed.

    Raises:
        CannotCountError: if it, or something inside it, cannot be hashed or is equal only to itself.
    """
    types: list[str] = []
    return Published(_plain(value, types), "".join(types))


_TYPES: Final = {type(None): "n", bool: "b", int: "i", str: "s", bytes: "y", Raised: "r"}


def _plain(value: object, types: list[str]) -> Hashable:
    letter = _TYPES.get(type(value))
    if letter:
        types.append(letter)
        return value
    if isinstance(value, float | np.floating):
        return _plain_float(value, types)
    if isinstance(value, list | tuple):
        brackets, made = ("[]", FromList) if isinstance(value, list) else ("()", tuple)
        types.append(brackets[0])
        members = [_plain(member, types) for member in value]
        types.append(brackets[1])
        return made(members)
    return _rarer(value, types)


def _plain_float(value: float | np.floating, types: list[str]) -> Hashable:
    if type(value) is not float:
        types.append(f"<{type(value).__qualname__}>")
    if math.isnan(value):
        types.append("x")
        return NotANumber()  # no NaN of Python's is equal to another
    types.append("z" if value == 0 and math.copysign(1, value) < 0 else "f")
    return value if isinstance(value, np.floating) else float(value)


def _rarer(value: object, types: list[str]) -> Hashable:
    match value:
        case Session():
            with value:
                return _plain([plain_answer(answer) for answer in value.transcript], types)
        case Answer():
            return _plain(plain_answer(value), types)
        case Release():
            return _plain((value.released, value.outcome), types)
        case np.ndarray():
            types.append(f"<{value.dtype} {value.ndim}>")
            members = _plain(value.tolist(), types)
            return FromArray(members) if isinstance(members, tuple) else members
        case np.generic():
            types.append(f"<{type(value).__qualname__}>")
            return value if isinstance(value, np.integer | np.bool) else _plain(value.item(), types)
        case AbstractSet():
            types.append("{")
            return frozenset(published_of(member) for member in value)
        case Mapping():
            types.append("{")
            items = _plain(tuple(sorted(value.items(), key=lambda item: repr(item[0]))), types)
            return FromDict(items) if isinstance(items, tuple) else items
    if not isinstance(value, Enum) and type(value).__hash__ in {None, object.__hash__}:
        raise CannotCountError(type(value).__name__)
    try:
        hash(value)
    except TypeError:
        raise CannotCountError(type(value).__name__) from None
    types.append(f"<{type(value).__qualname__}>")
    return value


def plain_answer(answer: Answer) -> tuple[object, ...]:
    """Return what an answer tells, without the time and the ledger's numbers."""
    return answer.hit, answer.outcome, answer.candidate, answer.algorithm


# What is inside.


def leaves(value: Hashable) -> dict[Path, Hashable]:
    """Return the values inside nested tuples, the first few hundred; what is no tuple is its own leaf."""
    inside = (place for place in _walk(value) if not isinstance(place[1], tuple))
    return dict(itertools.islice(inside, MOST_LEAVES))


def shapes(value: Hashable) -> dict[Path, tuple[str, int]]:
    """Return the kind and the length of the collections inside, the first few hundred."""
    inside = ((path, kind) for path, member in _walk(value) if (kind := shape(member)))
    return dict(itertools.islice(inside, MOST_LEAVES))


def _walk(value: Hashable, path: Path = ()) -> Iterator[tuple[Path, Hashable]]:
    yield path, value
    if isinstance(value, tuple):
        for index, member in enumerate(value):
            yield from _walk(member, (*path, index))


def at(value: Hashable, path: Path) -> Hashable:
    """Return what is at a place; None if there is nothing."""
    for index in path:
        if not isinstance(value, tuple) or index >= len(value):
            return None
        value = value[index]
    return value


_KINDS: Final = {FromList: "list", FromDict: "dict", FromArray: "array"}


def shape(value: Hashable) -> tuple[str, int] | None:
    """Return the kind and the length of a collection; None if it is none."""
    return (_KINDS.get(type(value), type(value).__name__), len(value)) if isinstance(value, tuple) else None


def label(value: Hashable) -> Label:
    """Return a value with its type: what Python calls equal and looks different has different labels."""
    kind = type(value)
    if (kind is float or issubclass(kind, np.floating)) and value == 0 and math.copysign(1, value) < 0:
        return value, f"-0.0 {kind.__name__}"
    return value, kind


def float_of(value: object) -> float | None:
    """Return a number as a float, None if it is none (True and NaN are none) or too large."""
    if type(value) is float:
        return None if math.isnan(value) else value
    if isinstance(value, np.floating | np.integer):
        return float_of(float(value))
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return None
    return None


def lowest_bit(value: object) -> int | None:
    """Return the exponent of the lowest bit that is set: of x = odd·2^k, k. None for 0 and no number.

    Noise in floating point leaves the true value in the low bits of the sum (Mironov 2012): what was added to 0
    has finer bits than what was added to 1.
    """
    if isinstance(value, np.floating | np.integer):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float) or not value:
        return None
    try:
        top, bottom = value.as_integer_ratio()
    except (OverflowError, ValueError, AttributeError):  # an infinity, NaN, a float longer than Python's
        return None
    return (top & -top).bit_length() - bottom.bit_length()
