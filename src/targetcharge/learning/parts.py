"""Parts: which teacher learns from which record, decided so that one record or unit reaches one teacher only.

Without units a random permutation of the positions deals the records; it depends on their number alone, and sizes
differ by at most one. With units a keyed hash of a unit's value names its part, so that units come, go and change
without moving any other. (Dealing units in sorted or first-seen order would not do: a new one shifts all that
follow, and so changes many teachers.)

>>> import numpy as np
>>> np.bincount(deal(10, 3, np.random.default_rng(0))).tolist()
[4, 3, 3]
>>> before = deal_units(["ann", "bob", "cid"], 1000, key=b"secret")
>>> after = deal_units(["bob", "abe", "cid"], 1000, key=b"secret")
>>> bool(before[1] == after[0]), bool(before[2] == after[2])
(True, True)
"""

from __future__ import annotations

import numbers
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_FLAGS: Final = {b"true": b"n1", b"false": b"n0"}
"""Names of what a file may call them, as of the numbers they are equal to."""

_ROUNDED: Final = 2.0**53
"""From here on floating-point numbers miss integers, and two units may have become one."""

KEY_BYTES = 32
"""The length of the key of the hash that deals units."""


def deal(records: int, parts: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Return the part of each position: sizes differ by at most one, and nothing depends on the records."""
    dealt = np.empty(records, np.intp)
    dealt[generator.permutation(records)] = np.arange(records) % parts
    return dealt


def deal_units(units: Iterable[object], parts: int, key: bytes) -> NDArray[np.intp]:
    """Return the part of each record by the unit it belongs to.

    A unit's part depends on its own value and the key only. Parts have random sizes and may be empty.

    Args:
        units: one value for each record: text, bytes or a number. The type of a whole column can hang on one of
            its values, so values that are equal in a column of another type are one unit: 1, 1.0, "1" and "01".
        parts: how many.
        key: of the hash, at most 64 bytes; chosen without looking at the units.

    Raises:
        InvalidParameter: if a unit is missing, of another type, or a floating-point number that may be rounded.
    """
    found: dict[bytes, int] = {}
    dealt = []
    for unit in _plain(units):
        name = _name(unit)
        part = found.get(name)
        if part is None:
            digest = blake2b(name, digest_size=16, key=key).digest()
            part = found[name] = int.from_bytes(digest) % parts
        dealt.append(part)
    return np.array(dealt, np.intp)


def count_units(units: Iterable[object]) -> int:
    """Return how many different units there are, as `deal_units` tells them apart."""
    return len({_name(unit) for unit in _plain(units)})


def _plain(units: Iterable[object]) -> Iterable[object]:
    """Return the values as Python's own, as fast as can be."""
    return units.tolist() if isinstance(units, np.ndarray) else units


def _name(unit: object) -> bytes:
    """Return what the hash reads of a unit: the same for values that a column's type can make equal."""
    match unit:
        case str():
            return _name_of_text(unit.encode("utf-8", "surrogatepass"))
        case bytes():
            return _name_of_text(unit)
        case numbers.Integral() | np.bool_():
            return b"n%d" % int(unit)
        case float() | np.floating() if np.isfinite(unit):
            return _name_of_float(float(unit))
        case _:
            raise InvalidParameter(
                "units", unit.__class__, "text, bytes or a number for every record, none missing"
            )


def _name_of_text(text: bytes) -> bytes:
    """Return the number's name if it reads as one."""
    text = text.rstrip(b"\0")  # as NumPy does
    if text.lower() in _FLAGS:
        return _FLAGS[text.lower()]
    with suppress(ValueError):
        return b"n%d" % int(text)
    with suppress(ValueError):
        number = float(text)
        if abs(number) < _ROUNDED:  # not NaN, nor infinite
            return _name_of_float(number)
    return b"t" + text


def _name_of_float(number: float) -> bytes:
    if abs(number) >= _ROUNDED:
        expected = "integers or text where numbers reach 2^53: floating-point ones are rounded"
        raise InvalidParameter("units", float, expected)
    return b"n%d" % int(number) if number.is_integer() else b"n" + number.hex().encode()
