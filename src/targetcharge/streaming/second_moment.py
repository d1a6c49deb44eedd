"""The second moment of a stream, Σ f², where f is how often an item came: Alon, Matias and Szegedy's sketch.

Each row of a sketch adds up the weights of all items with random signs; the mean square of the rows estimates the
moment without bias. Signs are bits of values that are independent for any four items, so a copy with r rows has
a relative variance of at most 2/r (docs/theory/labels.md#streams). Who sees its estimates soon finds items whose
signs cancel: of all sketches this is the easiest to break.

>>> from targetcharge.randomness import SystemEntropy
>>> copies = SecondMoment(rows=61).copies(2, SystemEntropy())
>>> copies.follow(np.array([7, 7], dtype=np.uint64), np.array([2.0, 1.0])).tolist()
[[4.0, 4.0], [9.0, 9.0]]
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.streaming.hashing import BITS, ItemNumbers, Polynomials

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy
    from targetcharge.streaming.copies import Items, Weights

_CELLS: Final = 2**17
"""Numbers that are worked on together: what stays in a processor's cache."""

_LARGEST: Final = 2.0**40
"""Sums of some thousand weights up to this are exact; rounding errors of more are nothing to a sketch."""


@final
@dataclass(frozen=True)
class SecondMoment:
    """The kind of sketch.

    Attributes:
        rows: of one copy; its standard error is about sqrt(2/rows).
    """

    rows: int = 122

    def __post_init__(self) -> None:
        """Check the number of rows."""
        checks.positive_integer("rows", self.rows)

    def copies(self, count: int, entropy: Entropy) -> MomentCopies:
        """Return independent copies."""
        return MomentCopies(count, self.rows, entropy)


@final
class MomentCopies:
    """Copies of the sketch, as one array."""

    def __init__(self, count: int, rows: int, entropy: Entropy) -> None:
        """Draw the signs; start with an empty stream."""
        self._number = ItemNumbers(entropy)
        self._hash = Polynomials.draw(entropy, (count, -(-rows // BITS)), independence=4)
        self._sums = np.zeros((count, rows))

    def check(self, items: Items, weights: Weights) -> NDArray[np.uint64]:
        """Return the numbers of the items."""
        if weights is not None:
            wrong = weights[~(np.abs(weights) <= _LARGEST)]  # NaN is not
            if len(wrong):
                raise InvalidParameter("weights", wrong[0].item(), "numbers from -2^40 to 2^40")
        return self._number(items)

    def follow(self, items: Items, weights: Weights) -> NDArray[np.float64]:
        """Take in items, some at a time."""
        found = np.empty((len(items), len(self._sums)))
        for some, sums in self._running(items, weights):
            found[some] = _mean_square(sums)
        return found

    def update(self, items: Items, weights: Weights) -> None:
        """Take in items."""
        for _ in self._running(items, weights):
            pass

    def _running(self, items: Items, weights: Weights) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield the sums after each item, for some items at a time."""
        together = max(1, _CELLS // self._sums.size)
        for start in range(0, len(items), together):
            some = slice(start, start + together)
            sums = self._signs(items[some])
            if weights is not None:
                sums *= weights[some, None, None]
            sums[0] += self._sums
            for before, after in pairwise(sums):  # four times as fast as NumPy's cumsum along the first axis
                np.add(before, after, out=after)
            self._sums = sums[-1].copy()
            yield some, sums

    def estimates(self) -> NDArray[np.float64]:
        """Return the mean square of each copy's rows."""
        return _mean_square(self._sums)

    def _signs(self, items: Items) -> NDArray[np.float64]:
        """Return 1 or -1 for each item, copy and row."""
        count, rows = self._sums.shape
        octets = self._hash(np.asarray(items)).astype("<u8", copy=False)[..., None].view(np.uint8)
        bits = np.unpackbits(octets, axis=-1, bitorder="little")[..., :BITS]
        signs = bits.reshape(len(items), count, -1)[..., :rows].astype(np.float64)
        signs *= 2
        signs -= 1
        return signs


def _mean_square(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    means: NDArray[np.float64] = np.einsum("...r,...r->...", sums, sums) / sums.shape[-1]
    return means
