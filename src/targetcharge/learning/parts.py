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

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge.identity import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

LEFT_OUT: Final = -1
"""The part of a record whose unit is missing: no teacher learns from it."""

KEY_BYTES = 32
"""The length of the key of the hash that deals units."""


def deal(records: int, parts: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Return the part of each position: sizes differ by at most one, and nothing depends on the records."""
    dealt = np.empty(records, np.intp)
    dealt[generator.permutation(records)] = np.arange(records) % parts
    return dealt


def deal_units(units: Iterable[object], parts: int, key: bytes) -> NDArray[np.intp]:
    """Return the part of each record by the unit it belongs to.

    A unit's part depends on its own value and the key only. Parts have random sizes and may be empty. The type of
    a whole column can hang on one of its values, so units are told apart as in tables: by value, however typed.

    Args:
        units: one value for each record; records whose unit is missing, or is none, are left out.
        parts: how many.
        key: of the hash, at most 64 bytes; chosen without looking at the units.
    """
    dealt: dict[str | None, int] = {None: LEFT_OUT}
    return np.array([_part(name, parts, key, dealt) for name in map(canonical, _plain(units))], np.intp)


def _part(name: str | None, parts: int, key: bytes, dealt: dict[str | None, int]) -> int:
    part = dealt.get(name)
    if part is None:
        digest = blake2b(str(name).encode(), digest_size=16, key=key).digest()
        part = dealt[name] = int.from_bytes(digest) % parts
    return part


def count_units(units: Iterable[object]) -> int:
    """Return how many different units there are, as `deal_units` tells them apart."""
    return len({canonical(unit) for unit in _plain(units)} - {None})


def _plain(units: Iterable[object]) -> Iterable[object]:
    """Return the values as Python's own, as fast as can be; times stay as they are, to the nanosecond."""
    return units.tolist() if isinstance(units, np.ndarray) and units.dtype.kind != "M" else units
