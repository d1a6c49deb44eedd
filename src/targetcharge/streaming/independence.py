"""Independence: copies with other seeds must differ, or a private choice among them protects nothing.

Before a stream begins, twins of the copies are fed random items until no two of them have had the same estimates
throughout. Two that never differ have the same seed, or ignore it, or count exactly and need no copies.

>>> from targetcharge.randomness import SystemEntropy
>>> class Exact:
...     def __init__(self, seed):
...         self.seen = set()
...     def update(self, item):
...         self.seen.add(item)
...     def estimate(self):
...         return len(self.seen)
>>> seeded(Exact, 2, SystemEntropy())
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: sketch is <class '...Exact'>; it must be a function of a seed whose sketches
differ: two with different seeds had the same estimates on all of 1,048,576 random items
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, final

from targetcharge.errors import InvalidParameter
from targetcharge.randomness import below
from targetcharge.streaming.copies import SketchCopies
from targetcharge.streaming.hashing import PRIME

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.randomness import Entropy
    from targetcharge.streaming.copies import Sketch

    Make = Callable[[int], Sketch]
    """From a seed to a sketch of an empty stream."""

_SEEDS: Final = 2**63
"""Seeds are below this: it fits in signed 64-bit integers."""

_EACH: Final = 1_024
"""Estimates are compared after each of so many items, later half as many times while their number doubles."""

_MOST: Final = 2**20
"""Items on which two copies must differ. A large sketch counts exactly up to its size."""


def seeded(make: Make, count: int, entropy: Entropy) -> SketchCopies:
    """Return copies of a sketch with fresh seeds, and a spare.

    Raises:
        InvalidParameter: if it makes no sketches, or such that do not differ.
    """
    if not callable(make):
        raise InvalidParameter("sketch", make, "a kind of sketch, or a function that makes one of a seed")
    seeds = [below(entropy, _SEEDS) for _ in range(count + 1)]
    sketches = [_made(make, seed) for seed in seeds]
    if len({id(sketch) for sketch in sketches}) <= count:
        raise InvalidParameter("sketch", make, "a function that makes another sketch each time: it gave one twice")
    _check_different(make, seeds[:count], entropy)
    return SketchCopies(sketches[:count], sketches[count])


def _made(make: Make, seed: int) -> Sketch:
    sketch = make(seed)
    if not callable(getattr(sketch, "update", None)) or not callable(getattr(sketch, "estimate", None)):
        raise InvalidParameter("sketch", make, "a function that makes objects with `update` and `estimate`")
    return sketch


def _check_different(make: Make, seeds: list[int], entropy: Entropy) -> None:
    """Feed two that do not differ yet until they do, then the others; go on with those that still agree."""
    key = below(entropy, int(PRIME))
    groups = [[_Trial(make, seed, key) for seed in seeds]]
    while groups:
        group = groups.pop()
        needed = _apart(make, *group[:2])
        agreeing: dict[tuple[float, ...], list[_Trial]] = {}
        for trial in group:
            agreeing.setdefault(trial.after(needed), []).append(trial)
        groups += [some for some in agreeing.values() if len(some) > 1]


def _apart(make: Make, one: _Trial, other: _Trial) -> int:
    """Return after how many items two trials differ."""
    items = _EACH
    while one.after(items) == other.after(items):
        if items >= _MOST:
            alike = "two with different seeds had the same estimates on all"
            expected = f"a function of a seed whose sketches differ: {alike} of {items:,} random items"
            raise InvalidParameter("sketch", make, expected)
        items *= 2
    return items


def _is_looked_at(items: int) -> bool:
    """Return whether estimates are compared after so many items."""
    return not items % (2 ** (items - 1).bit_length() // _EACH or 1)


@final
class _Trial:
    """A twin of a copy, fed with items that are the same for all twins."""

    def __init__(self, make: Make, seed: int, key: int) -> None:
        self._make = make
        self._sketch = _made(make, seed)
        self._key = key
        self._items = 0
        self._estimates: list[float] = []

    def after(self, items: int) -> tuple[float, ...]:
        """Return all estimates that are looked at, the last one after so many items, a power of two."""
        while self._items < items:
            self._items += 1
            self._update((self._items * self._key) % int(PRIME))
            if _is_looked_at(self._items):
                self._estimates.append(self._estimate())
        return tuple(self._estimates)

    def _update(self, item: int) -> None:
        try:
            self._sketch.update(item)
        except Exception as error:
            expected = f"a function that makes sketches of integers: one refused {item} ({type(error).__name__})"
            raise InvalidParameter("sketch", self._make, expected) from error

    def _estimate(self) -> float:
        try:
            number = float(self._sketch.estimate())
        except Exception:  # noqa: BLE001 - it has no estimate, whatever the reason
            number = math.nan
        if not math.isfinite(number):
            expected = (
                f"a function that makes sketches with finite estimates: one gave {number} after {self._items}"
            )
            raise InvalidParameter("sketch", self._make, f"{expected} items")
        return number
