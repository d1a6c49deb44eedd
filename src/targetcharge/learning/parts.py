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
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

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
        units: one value for each record: text, bytes or a number. Numbers that are equal are one unit, whatever
            their type, since the type of a whole column can hang on one of its values.
        parts: how many.
        key: of the hash, at most 64 bytes; chosen without looking at the units.

    Raises:
        InvalidParameter: if a unit is missing or of another type.
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
    """Return what the hash reads of a unit: different for different units, and the same for equal numbers."""
    match unit:
        case str():
            return b"s" + unit.encode("utf-8", "surrogatepass")
        case bytes():
            return b"b" + unit
        case numbers.Integral() | np.bool_():
            return b"n%d" % int(unit)
        case float() | np.floating() if np.isfinite(unit):
            number = float(unit)
            return b"n%d" % int(number) if number.is_integer() else b"n" + number.hex().encode()
        case _:
            raise InvalidParameter(
                "units", unit.__class__, "text, bytes or a number for every record, none missing"
            )
