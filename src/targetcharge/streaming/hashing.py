"""Hash functions that are provably independent: random polynomials over the field of integers modulo 2^61 - 1.

A polynomial of degree d - 1 with random coefficients takes any d different items to independent uniform values
(Wegman and Carter 1981). Nothing is assumed about the items, as long as they were chosen without knowing the
coefficients.

>>> from targetcharge.randomness import SystemEntropy
>>> family = Polynomials.draw(SystemEntropy(), shape=(3,), independence=2)
>>> values = family(np.array([5, 6, 5], dtype=np.uint64))
>>> values.shape, bool((values[0] == values[2]).all()), bool((values < PRIME).all())
((3, 3), True, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.randomness import below_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy

BITS: Final = 61
PRIME: Final = np.uint64(2**BITS - 1)

_HALF: Final = np.uint64(31)
_LOW_HALF: Final = np.uint64(2**31 - 1)
_REST: Final = np.uint64(30)
_LOW_REST: Final = np.uint64(2**30 - 1)
_ONE: Final = np.uint64(1)
_SHIFT: Final = np.uint64(BITS)


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
