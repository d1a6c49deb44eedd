"""The number of distinct items of a stream: the k smallest hash values of each copy.

With k distinct values or more, (k - 1)/v estimates their number, where v in (0, 1) is the k-th smallest of their
hash values; with fewer it is exact. Values are independent for any two items, which is enough for a standard error
of about 1/sqrt(k) (Bar-Yossef et al. 2002).

>>> from targetcharge.randomness import SystemEntropy
>>> copies = DistinctValues(size=64).copies(2, SystemEntropy())
>>> copies.follow(np.array([7, 8, 7], dtype=np.uint64), None).tolist()
[[1.0, 1.0], [2.0, 2.0], [2.0, 2.0]]
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.streaming.hashing import PRIME, Polynomials
from targetcharge.streaming.items import Numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy
    from targetcharge.streaming.copies import Items, Weights

_LEAST: Final = 3
"""Below this the estimate has no variance."""

_CELLS: Final = 2**15
"""Hash values that are worked on together: what stays in a processor's cache."""


@final
@dataclass(frozen=True)
class DistinctValues:
    """The kind of sketch.

    Attributes:
        size: how many hash values a copy keeps; its standard error is about 1/sqrt(size).
    """

    size: int = 256

    def __post_init__(self) -> None:
        """Check the size."""
        if checks.positive_integer("size", self.size) < _LEAST:
            raise InvalidParameter("size", self.size, f"an integer of at least {_LEAST}")

    def copies(self, count: int, entropy: Entropy) -> DistinctCopies:
        """Return independent copies."""
        return DistinctCopies(count, self.size, entropy)


@final
class DistinctCopies:
    """Copies of the sketch: each keeps its smallest values in order."""

    def __init__(self, count: int, size: int, entropy: Entropy) -> None:
        """Draw the hash functions; start with an empty stream."""
        self._number = Numbers(entropy)
        self._size = size
        self._hash = Polynomials.draw(entropy, (count,), independence=2)
        self._kept: list[list[int]] = [[] for _ in range(count)]
        self._bounds = np.full(count, PRIME)
        self._current = np.zeros(count)

    def check(self, items: Items, weights: Weights) -> NDArray[np.uint64]:
        """Return the numbers of the items."""
        if weights is not None:
            raise InvalidParameter(
                "weights", weights, "left out: distinct items are counted, not how often they come"
            )
        return self._number(items)

    def follow(self, items: Items, weights: Weights) -> NDArray[np.float64]:  # noqa: ARG002 - `check` refuses them
        """Take in items, some at a time; most of them change no copy."""
        found = np.empty((len(items), len(self._kept)))
        for some, values in self._hashed(items):
            rows = np.full(values.shape, np.nan)
            rows[0] = self._current
            for row, copy in self._kept_of(values):
                rows[row, copy] = self._current[copy]
            found[some] = _filled(rows)
        return found

    def update(self, items: Items, weights: Weights) -> None:  # noqa: ARG002 - as above
        """Take in items."""
        for _, values in self._hashed(items):
            for _ in self._kept_of(values):
                pass

    def _hashed(self, items: Items) -> Iterator[tuple[slice, NDArray[np.uint64]]]:
        """Yield the hash values of some items at a time, a row for each."""
        together = max(1, _CELLS // len(self._kept))
        for start in range(0, len(items), together):
            some = slice(start, start + together)
            yield some, self._hash(np.asarray(items[some]))

    def _kept_of(self, values: NDArray[np.uint64]) -> Iterator[tuple[int, int]]:
        """Take in hash values; yield the item and the copy of each that was kept, once it was."""
        for row, copy in zip(*(places.tolist() for places in np.nonzero(values < self._bounds)), strict=True):
            if self._keep(copy, int(values[row, copy])):
                yield row, copy

    def estimates(self) -> NDArray[np.float64]:
        """Return the estimates."""
        return self._current.copy()

    def _keep(self, copy: int, value: int) -> bool:
        """Keep a hash value if it is new and small enough; return whether it was."""
        kept = self._kept[copy]
        place = bisect_left(kept, value)
        if place == self._size or (place < len(kept) and kept[place] == value):
            return False
        kept.insert(place, value)
        del kept[self._size :]
        self._current[copy] = len(kept)
        if len(kept) == self._size:
            self._bounds[copy] = kept[-1]
            self._current[copy] = (self._size - 1) * int(PRIME) / (kept[-1] + 1)
        return True


def _filled(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows with what is missing taken from the row before."""
    known = np.where(np.isnan(rows), 0, np.arange(len(rows))[:, None])
    return np.take_along_axis(rows, np.maximum.accumulate(known, axis=0), axis=0)
