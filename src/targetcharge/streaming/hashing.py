"""Hash functions of streams that are provably independent, and the numbers that they hash.

A polynomial of degree d - 1 with random coefficients, over the integers modulo 2^61 - 1, takes any d different
numbers to independent uniform values (Wegman and Carter 1981). Nothing is assumed about the numbers, as long as
they were chosen without knowing the coefficients. Integers stand for themselves, text and bytes for a keyed
hash: with a secret key nobody can look for two texts with the same number. One stream has one kind of items, or
else a text could be made to look like an integer.

>>> from targetcharge.randomness import SystemEntropy
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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.keyed_hash import KeyedHash
from targetcharge.randomness import below_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy
    from targetcharge.streaming.copies import Items

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
