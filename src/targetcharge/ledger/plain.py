"""Published values as JSON, and back: the same value and type.

>>> to_plain((0.5, b"a")), from_plain(to_plain((0.5, b"a")))
([{'float': '0x1.0000000000000p-1'}, {'bytes': '61'}], (0.5, b'a'))
"""

from __future__ import annotations

import json
import re
from typing import Final

from targetcharge.outcomes import Mark, Side

_PLAIN_BITS: Final = 1024
"""Integers of more bits are written in hexadecimal: Python refuses to write very long ones in decimal."""

_SURROGATES: Final = re.compile("[\ud800-\udfff]")
"""Halves of characters: in JSON two of them become one character, and the outcome another."""


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


def canonical(body: object) -> str:
    """Return plain data as compact JSON in ASCII."""
    return _encode(body)
