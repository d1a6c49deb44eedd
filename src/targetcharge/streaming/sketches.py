"""Sketches whose copies are worked on together: the number of distinct items of a stream, and its second moment.

`DistinctValues` keeps the k smallest hash values of each copy. With k distinct values or more, (k - 1)/v estimates
their number, where v in (0, 1) is the k-th smallest of their hash values; with fewer it is exact. Its standard
error is about 1/sqrt(k). Values that are independent for any two items would do for that (Bar-Yossef et al. 2002),
but on regular items, such as consecutive numbers, one copy in hundreds would be far off; here they are independent
for any four.

`SecondMoment` estimates Σ f², where f is how often an item came: Alon, Matias and Szegedy's sketch. Each row of a
copy adds up the weights of all items with random signs; the mean square of the rows estimates the moment without
bias. Signs are bits of values that are independent for any four items, so a copy with r rows has a relative
variance of at most 2/r (docs/theory/labels.md#streams). Who sees its estimates soon finds items whose signs
cancel: of all sketches this is the easiest to break.

The hash functions are polynomials with random coefficients over the integers modulo 2^61 - 1: those of degree d -
1 take any d different numbers to independent uniform values (Wegman and Carter 1981). Nothing is assumed about the
numbers, as long as they were chosen without knowing the coefficients. Integers stand for themselves, text and
bytes for a keyed hash: with a secret key nobody can look for two texts with the same number. One stream has one
kind of items, or else a text could be made to look like an integer.

>>> from targetcharge.randomness import SystemEntropy
>>> copies = DistinctValues(size=64).copies(2, SystemEntropy())
>>> copies.follow(np.array([7, 8, 7], dtype=np.uint64), None).tolist()
[[1.0, 1.0], [2.0, 2.0], [2.0, 2.0]]
>>> copies = SecondMoment(rows=61).copies(2, SystemEntropy())
>>> copies.follow(np.array([7, 7], dtype=np.uint64), np.array([2.0, 1.0])).tolist()
[[4.0, 4.0], [9.0, 9.0]]
>>> family = Polynomials.draw(SystemEntropy(), shape=(3,), independence=2)
>>> values = family(np.array([5, 6, 5], dtype=np.uint64))
>>> values.shape, bool((values[0] == values[2]).all()), bool((values < PRIME).all())
((3, 3), True, True)
>>> numbers = ItemNumbers(SystemEntropy())
>>> numbers(range(3)).tolist()
[0, 1, 2]
>>> numbers(["a"])
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: items is 'a'; it must be an integer, as the first item of this stream is
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.keyed_hash import KeyedHash
from targetcharge.randomness import below_array

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy
    from targetcharge.streaming.copies import Items, Weights

BITS: Final = 61
PRIME: Final = np.uint64(2**BITS - 1)

_HALF: Final = np.uint64(31)
_LOW_HALF: Final = np.uint64(2**31 - 1)
_REST: Final = np.uint64(30)
_LOW_REST: Final = np.uint64(2**30 - 1)
_ONE: Final = np.uint64(1)
_SHIFT: Final = np.uint64(BITS)

_LARGEST: Final = int(PRIME) - 1
_INTEGER, _TEXT = "an integer", "text or bytes"

_LEAST_SIZE: Final = 3
"""Below this the estimate has no variance."""

_HASH_VALUES: Final = 2**15
_SUMS: Final = 2**17
"""Numbers that are worked on at a time: what stays in a processor's cache."""

_LARGEST_WEIGHT: Final = 2.0**40
"""Sums of some thousand weights up to this are exact; rounding errors of more are nothing to a sketch."""


@final
@dataclass(frozen=True)
class DistinctValues:
    """The sketch of the number of distinct items.

    Attributes:
        size: how many hash values a copy keeps; its standard error is about 1/sqrt(size).
    """

    size: int = 1_024

    def __post_init__(self) -> None:
        """Check the size."""
        if checks.positive_integer(self.size, "size") < _LEAST_SIZE:
            raise InvalidParameter("size", self.size, f"an integer of at least {_LEAST_SIZE}")

    def copies(self, count: int, entropy: Entropy) -> DistinctCopies:
        """Return independent copies."""
        return DistinctCopies(count, self.size, entropy)


@final
class DistinctCopies:
    """Copies of `DistinctValues`: each keeps its smallest values in order."""

    def __init__(self, count: int, size: int, entropy: Entropy) -> None:
        """Draw the hash functions; start with an empty stream."""
        self._numbers = ItemNumbers(entropy)
        self._size = size
        self._hash = Polynomials.draw(entropy, (count,), independence=4)
        self._kept: list[list[int]] = [[] for _ in range(count)]
        self._bounds = np.full(count, PRIME)
        self._estimates = np.zeros(count)

    def check(self, items: Items, weights: Weights) -> NDArray[np.uint64]:
        """Return the numbers of the items."""
        if weights is not None:
            raise InvalidParameter(
                "weights", weights, "left out: distinct items are counted, not how often they come"
            )
        return self._numbers(items)

    def follow(self, items: Items, _: Weights, /) -> NDArray[np.float64]:
        """Take in items, a block at a time; most of them change no copy."""
        estimates = np.empty((len(items), len(self._kept)))
        for block, values in self._hashed(items):
            rows = np.full(values.shape, np.nan)
            rows[0] = self._estimates
            for copy, changed, changes in self._keep_all(values):
                rows[changed, copy] = changes
            estimates[block] = _filled(rows)
        return estimates

    def update(self, items: Items, _: Weights, /) -> None:
        """Take in items."""
        for _block, values in self._hashed(items):
            deque(self._keep_all(values), maxlen=0)

    def estimates(self) -> NDArray[np.float64]:
        """Return the estimates."""
        return self._estimates.copy()

    def _hashed(self, items: Items) -> Iterator[tuple[slice, NDArray[np.uint64]]]:
        """Yield the hash values of a block of items at a time, a row for each."""
        for block in _blocks(len(items), _HASH_VALUES // len(self._kept)):
            yield block, self._hash(np.asarray(items[block]))

    def _keep_all(self, values: NDArray[np.uint64]) -> Iterator[tuple[int, list[int], list[float]]]:
        """Take in hash values; yield each copy that has changed, by which of the items, and its estimates then."""
        small = values < self._bounds
        for copy in np.flatnonzero(small.any(axis=0)).tolist():
            rows = np.flatnonzero(small[:, copy])
            changed, estimates = self._keep(copy, rows.tolist(), values[rows, copy].tolist())
            if changed:
                self._estimates[copy] = estimates[-1]
                yield copy, changed, estimates

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
            estimates.append((size - 1) * int(PRIME) / (kept[-1] + 1) if len(kept) == size else float(len(kept)))
        if len(kept) == size:
            self._bounds[copy] = kept[-1]
        return changed, estimates


@final
@dataclass(frozen=True)
class SecondMoment:
    """The sketch of the second moment.

    Attributes:
        rows: of one copy; its standard error is about sqrt(2/rows).
    """

    rows: int = 122

    def __post_init__(self) -> None:
        """Check the number of rows."""
        checks.positive_integer(self.rows, "rows")

    def copies(self, count: int, entropy: Entropy) -> MomentCopies:
        """Return independent copies."""
        return MomentCopies(count, self.rows, entropy)


@final
class MomentCopies:
    """Copies of `SecondMoment`, as one array."""

    def __init__(self, count: int, rows: int, entropy: Entropy) -> None:
        """Draw the signs; start with an empty stream."""
        self._numbers = ItemNumbers(entropy)
        self._hash = Polynomials.draw(entropy, (count, -(-rows // BITS)), independence=4)
        self._sums = np.zeros((count, rows))

    def check(self, items: Items, weights: Weights) -> NDArray[np.uint64]:
        """Return the numbers of the items."""
        if weights is not None:
            wrong = weights[~(np.abs(weights) <= _LARGEST_WEIGHT)]  # NaN is not
            if len(wrong):
                raise InvalidParameter("weights", wrong[0].item(), "numbers from -2^40 to 2^40")
        return self._numbers(items)

    def follow(self, items: Items, weights: Weights) -> NDArray[np.float64]:
        """Take in items, a block at a time."""
        estimates = np.empty((len(items), len(self._sums)))
        for block, sums in self._running(items, weights):
            estimates[block] = _mean_square(sums)
        return estimates

    def update(self, items: Items, weights: Weights) -> None:
        """Take in items."""
        deque(self._running(items, weights), maxlen=0)

    def estimates(self) -> NDArray[np.float64]:
        """Return the mean square of each copy's rows."""
        return _mean_square(self._sums)

    def _running(self, items: Items, weights: Weights) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield the sums after each item, for a block of items at a time."""
        for block in _blocks(len(items), _SUMS // self._sums.size):
            sums = self._signs(items[block])
            if weights is not None:
                sums *= weights[block, None, None]
            sums[0] += self._sums
            for before, after in pairwise(sums):  # four times as fast as NumPy's cumsum along the first axis
                np.add(before, after, out=after)
            self._sums = sums[-1].copy()
            yield block, sums

    def _signs(self, items: Items) -> NDArray[np.float64]:
        """Return 1 or -1 for each item, copy and row."""
        count, rows = self._sums.shape
        octets = self._hash(np.asarray(items)).astype("<u8", copy=False)[..., None].view(np.uint8)
        bits = np.unpackbits(octets, axis=-1, bitorder="little")[..., :BITS]
        signs = bits.reshape(len(items), count, -1)[..., :rows].astype(np.float64)
        signs *= 2
        signs -= 1
        return signs


def _blocks(items: int, size: int) -> Iterator[slice]:
    """Yield slices of so many items at most, at least one."""
    size = max(1, size)
    return (slice(start, start + size) for start in range(0, items, size))


def _filled(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows with what is missing taken from the row before."""
    known = np.where(np.isnan(rows), 0, np.arange(len(rows))[:, None])
    return np.take_along_axis(rows, np.maximum.accumulate(known, axis=0), axis=0)


def _mean_square(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    means: NDArray[np.float64] = np.einsum("...r,...r->...", sums, sums) / sums.shape[-1]
    return means


# Hash functions, and the numbers that they hash.


@final
@dataclass(frozen=True, repr=False, eq=False)
class Polynomials:
    """Hash functions.

    Attributes:
        coefficients: one row for each coefficient, the highest first.
    """

    coefficients: NDArray[np.uint64]

    @classmethod
    def draw(cls, entropy: Entropy, shape: tuple[int, ...], independence: int) -> Polynomials:
        """Return fresh functions, each with values that are independent for any so many items."""
        bounds = np.full(independence * math.prod(shape), PRIME)
        return cls(below_array(entropy, bounds).reshape(independence, *shape))

    def __call__(self, items: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the values at each item below 2^61 - 1, for all functions: uniform below 2^61 - 1."""
        points = items.reshape(-1, *([1] * (self.coefficients.ndim - 1)))
        value = np.broadcast_to(self.coefficients[0], (len(items), *self.coefficients.shape[1:]))
        for coefficient in self.coefficients[1:]:
            value = _reduced(_product(value, points) + coefficient)
        return value


def _product(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a·b modulo 2^61 - 1, itself below 2^61 + 8, for factors below 2^61.

    With a = a₁·2^31 + a₀ and b likewise, 2^62 ≡ 2 and 2^61 ≡ 1: all sums stay below 2^64.
    """
    left_high, left_low = left >> _HALF, left & _LOW_HALF
    right_high, right_low = right >> _HALF, right & _LOW_HALF
    middle = left_high * right_low + left_low * right_high
    total = left_low * right_low + ((left_high * right_high) << _ONE)
    total += middle >> _REST
    total += (middle & _LOW_REST) << _HALF
    folded: NDArray[np.uint64] = (total & PRIME) + (total >> _SHIFT)
    return folded


def _reduced(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a value below 2^62 modulo 2^61 - 1."""
    value = (value & PRIME) + (value >> _SHIFT)
    value[value >= PRIME] -= PRIME
    return value


@final
class ItemNumbers:
    """From the items of one stream to numbers below 2^61 - 1."""

    def __init__(self, entropy: Entropy) -> None:
        """Draw a key."""
        self._hash = KeyedHash.draw(entropy)
        self._kind: str | None = None

    def __call__(self, items: Items) -> NDArray[np.uint64]:
        """Return a number for each item.

        Raises:
            InvalidParameter: if one is neither an integer from 0 to 2^61 - 2, nor text, nor bytes; or is not of
                the same kind as the first of the stream.
        """
        if isinstance(items, np.ndarray) and items.dtype.kind in "iu" and self._kind != _TEXT:
            return self._array(items)
        before = self._kind
        try:
            return np.array([self._number(item) for item in items], dtype=np.uint64)
        except InvalidParameter:  # none is taken in, so the next may be the first
            self._kind = before
            raise

    def _array(self, items: NDArray[Any]) -> NDArray[np.uint64]:
        wrong = items[(items < 0) | (items > _LARGEST)]
        if len(wrong):
            raise self._unfit(wrong[0].item())
        if len(items):
            self._kind = _INTEGER
        return items.astype(np.uint64)

    def _number(self, item: object) -> int:
        if isinstance(item, str | bytes):
            if self._kind == _INTEGER:
                raise self._unfit(item)
            self._kind = _TEXT
            return self._hash.number(item) % int(PRIME)
        if isinstance(item, bool) or not isinstance(item, int | np.integer) or self._kind == _TEXT:
            raise self._unfit(item)
        number = int(item)
        if not 0 <= number <= _LARGEST:
            raise self._unfit(item)
        self._kind = _INTEGER
        return number

    def _unfit(self, item: object) -> InvalidParameter:
        if self._kind is None:
            expected = f"{_INTEGER} from 0 to 2^61 - 2, {_TEXT}"
        elif self._kind == _INTEGER and isinstance(item, int | np.integer):
            expected = f"{_INTEGER} from 0 to 2^61 - 2"
        else:
            expected = f"{self._kind}, as the first item of this stream is"
        return InvalidParameter("items", item.item() if isinstance(item, np.generic) else item, expected)
