"""The number of distinct items of a stream: the k smallest hash values of each copy.

With k distinct values or more, (k - 1)/v estimates their number, where v in (0, 1) is the k-th smallest of their
hash values; with fewer it is exact. Its standard error is about 1/sqrt(k). Values that are independent for any two
items would do for that (Bar-Yossef et al. 2002), but on regular items, such as consecutive numbers, one copy in
hundreds would be far off; here they are independent for any four.

>>> from targetcharge.randomness import SystemEntropy
>>> copies = DistinctValues(size=64).copies(2, SystemEntropy())
>>> copies.follow(np.array([7, 8, 7], dtype=np.uint64), None).tolist()
[[1.0, 1.0], [2.0, 2.0], [2.0, 2.0]]
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.streaming.hashing import PRIME, ItemNumbers, Polynomials

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy
    from targetcharge.streaming.copies import Items, Weights

_LEAST: Final = 3
"""Below this the estimate has no variance."""

_WHOLE: Final = int(PRIME)

_CELLS: Final = 2**15
"""Hash values that are worked on together: what stays in a processor's cache."""


@final
@dataclass(frozen=True)
class DistinctValues:
    """The kind of sketch.

    Attributes:
        size: how many hash values a copy keeps; its standard error is about 1/sqrt(size).
    """

    size: int = 1_024

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
        self._number = ItemNumbers(entropy)
        self._size = size
        self._hash = Polynomials.draw(entropy, (count,), independence=4)
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

    def follow(self, items: Items, _: Weights, /) -> NDArray[np.float64]:
        """Take in items, some at a time; most of them change no copy."""
        found = np.empty((len(items), len(self._kept)))
        for some, values in self._hashed(items):
            rows = np.full(values.shape, np.nan)
            rows[0] = self._current
            for copy, changed, estimates in self._kept_of(values):
                rows[changed, copy] = estimates
            found[some] = _filled(rows)
        return found

    def update(self, items: Items, _: Weights, /) -> None:
        """Take in items."""
        for some in self._hashed(items):
            deque(self._kept_of(some[1]), maxlen=0)

    def _hashed(self, items: Items) -> Iterator[tuple[slice, NDArray[np.uint64]]]:
        """Yield the hash values of some items at a time, a row for each."""
        together = max(1, _CELLS // len(self._kept))
        for start in range(0, len(items), together):
            some = slice(start, start + together)
            yield some, self._hash(np.asarray(items[some]))

    def _kept_of(self, values: NDArray[np.uint64]) -> Iterator[tuple[int, list[int], list[float]]]:
        """Take in hash values; yield each copy that has changed, by which of the items, and its estimates then."""
        small = values < self._bounds
        for copy in np.flatnonzero(small.any(axis=0)).tolist():
            rows = np.flatnonzero(small[:, copy])
            changed, estimates = self._keep(copy, rows.tolist(), values[rows, copy].tolist())
            if changed:
                self._current[copy] = estimates[-1]
                yield copy, changed, estimates

    def estimates(self) -> NDArray[np.float64]:
        """Return the estimates."""
        return self._current.copy()

    def _keep(self, copy: int, rows: list[int], values: list[int]) -> tuple[list[int], list[float]]:
        """Keep the hash values that are new and small enough; return the rows of those, and the estimates then."""
        kept, size = self._kept[copy], self._size
        changed, estimates = [], []
        for row, value in zip(rows, values, strict=True):
            place = bisect_left(kept, value)
            if place == size or (place < len(kept) and kept[place] == value):
                continue
            kept.insert(place, value)
            del kept[size:]
            changed.append(row)
            estimates.append((size - 1) * _WHOLE / (kept[-1] + 1) if len(kept) == size else float(len(kept)))
        if len(kept) == size:
            self._bounds[copy] = kept[-1]
        return changed, estimates


def _filled(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows with what is missing taken from the row before."""
    known = np.where(np.isnan(rows), 0, np.arange(len(rows))[:, None])
    return np.take_along_axis(rows, np.maximum.accumulate(known, axis=0), axis=0)
