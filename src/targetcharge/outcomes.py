"""Outcomes: what may be published, in one canonical form, and as JSON.

A published value must look the same whenever it is the same: 1 and True, 0.0 and -0.0 are equal to Python, and a
value that is free because it "equals" another one would leak through its looks. So an outcome is turned into plain
data before anything is decided about it.

>>> import numpy as np
>>> publishable([np.int64(3), -0.0])
(3, 0.0)
>>> same(1, True), same((1, "a"), (1, "a"))
(False, True)
>>> to_plain((0.5, b"a")), from_plain(to_plain((0.5, b"a")))
([{'float': '0x1.0000000000000p-1'}, {'bytes': '61'}], (0.5, b'a'))
"""

from __future__ import annotations

import json
import math
import numbers
import re
from enum import Enum, StrEnum
from typing import Final

import numpy as np


class Side(StrEnum):
    """Where a noisy count lies: what `side_of_threshold` and `between_thresholds` publish."""

    BELOW = "below"
    BETWEEN = "between"
    ABOVE = "above"


class Mark(Enum):
    """What is published that is no value: "too close to call", "much as it was", "too few agree"; the key NULL."""

    BOUNDARY = "boundary"
    UNCHANGED = "unchanged"
    LOW = "low"
    MISSING = "NULL"

    def __repr__(self) -> str:
        """Return the name it is imported by."""
        return self.name

    def __str__(self) -> str:
        """Return what people read."""
        return self.value


BOUNDARY: Final = Mark.BOUNDARY
UNCHANGED: Final = Mark.UNCHANGED
LOW: Final = Mark.LOW
MISSING: Final = Mark.MISSING
"""In a key: the rows whose column has no value. None is no key at all."""

PUBLISHABLE: Final = "None, a bool, an int, a float that is not NaN, text, bytes, a mark, or a tuple of these"

_DEEPEST: Final = 50
_AS_THEY_ARE: Final = frozenset({type(None), bool, int, str, bytes, Side, Mark})

_PLAIN_BITS: Final = 1024
"""Integers of more bits are written in hexadecimal: Python refuses to write very long ones in decimal."""

_SURROGATES: Final = re.compile("[\ud800-\udfff]")
"""Halves of characters: in JSON two of them become one character, and the outcome another."""


class UnpublishableError(Exception):
    """The value has no canonical form. Internal: it carries no text, since the value may come from the data."""


def publishable(value: object, depth: int = 0) -> object:
    """Return the canonical plain form of an outcome; tuples are nested at most 50 deep.

    Raises:
        UnpublishableError: if it has none.
    """
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if isinstance(value, float | np.floating):
        number = float.__float__(value) if isinstance(value, float) else float(value)
        if math.isnan(number):
            raise UnpublishableError
        return number + 0.0
    if isinstance(value, tuple | list):
        if depth >= _DEEPEST:
            raise UnpublishableError
        return tuple([publishable(member, depth + 1) for member in value])
    return _plain(value)


def _plain(value: object) -> object:
    """Return rarer things: numpy's scalars and arrays, subclasses of the plain types."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.ndarray):
        return publishable(value.tolist())
    # Of a subclass the plain content, past whatever it says of itself: str() of an enum is not its text.
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return bytes.__bytes__(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    raise UnpublishableError


def same(first: object, second: object) -> bool:
    """Return whether two canonical values are equal and look alike, down to the types inside tuples."""
    if type(first) is not type(second):
        return False
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


def with_nulls(key: object) -> object:
    """Return a published key for tables, CSV and JSON, which have NULL themselves: None for MISSING."""
    if isinstance(key, tuple):
        return tuple(map(with_nulls, key))
    return None if key is MISSING else key


def to_plain(outcome: object) -> object:
    """Return a canonical outcome as JSON data, so that `from_plain` gives back the same value and type."""
    match outcome:
        case Side():
            return {"side": outcome.value}
        case Mark():
            return {"mark": outcome.value}
        case float():
            return {"float": outcome.hex()}
        case bytes():
            return {"bytes": outcome.hex()}
        case tuple():
            return [to_plain(member) for member in outcome]
        case str() if not outcome.isascii() and _SURROGATES.search(outcome):
            return {"text": outcome.encode("utf-8", "surrogatepass").hex()}
        case int() if outcome.bit_length() > _PLAIN_BITS:
            return {"int": hex(outcome)}
        case _:
            return outcome


def from_plain(plain: object) -> object:
    """Return the outcome."""
    match plain:
        case {"side": str(value)}:
            return Side(value)
        case {"mark": str(value)}:
            return Mark(value)
        case {"float": str(value)}:
            return float.fromhex(value)
        case {"bytes": str(value)}:
            return bytes.fromhex(value)
        case {"text": str(value)}:
            return bytes.fromhex(value).decode("utf-8", "surrogatepass")
        case {"int": str(value)}:
            return int(value, 16)
        case list():
            return tuple(from_plain(member) for member in plain)
        case _:
            return plain


_encode: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode


def canonical_json(body: object) -> str:
    """Return plain data as compact JSON in ASCII."""
    return _encode(body)
