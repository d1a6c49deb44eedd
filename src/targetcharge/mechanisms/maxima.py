"""The law of a private sketch of maxima (Smith, Song, Thakurta 2020): floor, levels and phantoms.

Every element falls into a random bucket and has a random level. A bucket keeps the highest level of its elements
and of some phantoms, which are always there. Levels up to a floor count as the floor, here level 0.

>>> law = MaximaLaw.of(Fraction(1, 10))
>>> law.phantoms, len(law.tails)
(10, 224)
>>> law.levels(np.array([2**63, 2**60, 2**10], np.uint64)).tolist()  # a word's level is higher the smaller it is
[0, 3, 203]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.numerics.rounding import down
from targetcharge.randomness.entropy import WORD_BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy

_WHOLE: Final = 1 << WORD_BITS
_STEPS_AN_OCTAVE: Final = 4
"""A level must fit in a byte, and twice as many would lower the error by 0.2% only."""

_SMALLEST_TAIL: Final = 1 << 5
_CHUNK_WORDS: Final = 1 << 16


@final
@dataclass(frozen=True)
class MaximaLaw:
    """How levels are drawn, and how many phantoms hide an element.

    An element has a level above i with probability tails[i]/2^64, exactly: its word, 64 fair bits, is below
    tails[i]. Adding an element to a bucket changes the probability of any maximum by a factor from F to
    1 + 1/phantoms, where F = 1 - tails[0]/2^64 is the probability of the floor
    (docs/theory/labels.md#distinct-counts).

    Attributes:
        phantoms: in every bucket.
        tails: of the levels, falling; the highest level is len(tails).
    """

    phantoms: int
    tails: tuple[int, ...]

    @staticmethod
    def of(epsilon: Fraction) -> MaximaLaw:
        """Return the law under which adding or removing an element has a loss of at most ε.

        Fewest phantoms and lowest floor: 1 + 1/phantoms ≤ e^ε and F ≥ e^-ε, rounded towards privacy.
        """
        least = down(float(epsilon))
        phantoms = math.ceil(1 / Fraction(down(math.expm1(least))))
        first = math.floor(Fraction(down(-math.expm1(-least))) * _WHOLE)
        octaves = (first // _SMALLEST_TAIL).bit_length() - 1
        steps = [2.0 ** (-step / _STEPS_AN_OCTAVE) for step in range(_STEPS_AN_OCTAVE)]
        tails = tuple(int(math.ldexp(first, -octave) * step) for octave in range(octaves + 1) for step in steps)
        return MaximaLaw(phantoms, tails)

    @cached_property
    def _rising(self) -> NDArray[np.uint64]:
        return np.array(self.tails[::-1], dtype=np.uint64)

    def levels(self, words: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """Return the levels of random words: how many tails are above each."""
        return (len(self.tails) - np.searchsorted(self._rising, words, side="right")).astype(np.uint8)

    def only_phantoms(self, buckets: int, entropy: Entropy) -> NDArray[np.uint8]:
        """Return a sketch without elements: in each bucket the highest level of its phantoms, a word for each."""
        smallest = entropy.words(buckets)
        left, rows = self.phantoms - 1, max(1, _CHUNK_WORDS // buckets)
        while left > 0:
            drawn = entropy.words(min(left, rows) * buckets).reshape(-1, buckets)
            smallest = np.minimum(smallest, drawn.min(axis=0))
            left -= len(drawn)
        return self.levels(smallest)

    def put(self, sketch: NDArray[np.uint8], buckets: NDArray[np.intp], words: NDArray[np.uint64]) -> None:
        """Put elements into a sketch by their buckets and words."""
        above = words < self._rising[-1]
        np.maximum.at(sketch, buckets[above], self.levels(words[above]))
