"""Parts: which teacher learns from which record, decided so that one record or unit reaches one teacher only.

Without units a random permutation of the positions deals the records; it depends on their number alone, and sizes
differ by at most one. With units a keyed hash of a unit's value names its part, so that units come, go and change
without moving any other. (Dealing units in sorted or first-seen order would not do: a new one shifts all that
follow, and so changes many teachers.)

>>> choices = RandomChoices(0, teachers=3)
>>> np.bincount(deal(10, 3, choices.generator)).tolist()
[4, 3, 3]
>>> before = deal_units(["ann", "bob", "cid"], 1000, choices.key)
>>> after = deal_units(["bob", "abe", "cid"], 1000, choices.key)
>>> bool(before[1] == after[0]), bool(before[2] == after[2])
(True, True)
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final, final

import numpy as np
from sklearn.utils import check_random_state

from targetcharge.errors import InvalidParameter
from targetcharge.identity import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

LEFT_OUT: Final = -1
"""The part of a record whose unit is missing: no teacher learns from it."""

MOST_SEED: Final = 2**31 - 1

_KEY_BYTES: Final = 32


@final
class RandomChoices:
    """Everything random about the teachers that is no noise, drawn before any data is looked at.

    It may be repeated (`random_state`), since privacy never hangs on it. Each teacher has a seed of its own: if
    teachers shared a stream, what the first draws would depend on its records and change what the second draws.

    Attributes:
        key: of the hash that deals units.
        seeds: one for each teacher.
        generator: deals records.
    """

    def __init__(self, random_state: object, teachers: int) -> None:
        """Make the choices of a random state; fresh ones for None."""
        try:
            source = check_random_state(random_state)
        except ValueError:
            raise InvalidParameter(
                "random_state", random_state, "None, an integer from 0 to 2^32 - 1 or a RandomState"
            ) from None
        words = None if random_state is None else source.randint(MOST_SEED, size=8).tolist()
        self.generator = np.random.default_rng(words)
        self.seeds: tuple[int, ...] = tuple(self.generator.integers(MOST_SEED, size=teachers).tolist())
        self.key = self.generator.bytes(_KEY_BYTES)


def deal(records: int, parts: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Return the part of each position: sizes differ by at most one, and nothing depends on the records."""
    dealt = np.empty(records, np.intp)
    dealt[generator.permutation(records)] = np.arange(records) % parts
    return dealt


def deal_units(units: Iterable[object], parts: int, key: bytes) -> NDArray[np.intp]:
    """Return the part of each record by the unit it belongs to.

    A unit's part depends on its own value and the key only. Parts have random sizes and may be empty. The type of
    a whole column can hang on one of its values, so units are told apart as in tables: by value, however typed.
    Records whose unit is missing, or is none, are left out. The key of the hash, at most 64 bytes, is chosen
    without looking at the units.
    """
    names = [canonical(unit) for unit in _plain(units)]
    dealt = {name: LEFT_OUT if name is None else _part(name, parts, key) for name in set(names)}
    return np.array([dealt[name] for name in names], np.intp)


def _part(unit: str, parts: int, key: bytes) -> int:
    return int.from_bytes(blake2b(unit.encode(), digest_size=16, key=key).digest()) % parts


def count_units(units: Iterable[object]) -> int:
    """Return how many different units there are, as `deal_units` tells them apart."""
    return len({canonical(unit) for unit in _plain(units)} - {None})


def _plain(units: Iterable[object]) -> Iterable[object]:
    """Return the values as Python's own, as fast as can be; times stay as they are, to the nanosecond."""
    return units.tolist() if isinstance(units, np.ndarray) and units.dtype.kind != "M" else units
