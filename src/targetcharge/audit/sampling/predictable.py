"""Predictable bits: an audit repeats itself from its seed. Never a source of noise that protects anybody.

>>> PredictableEntropy(7).word() == PredictableEntropy(7).word()
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import numpy as np

if TYPE_CHECKING:
    from numpy.random import SeedSequence
    from numpy.typing import NDArray

_BUFFER_WORDS: Final = 512
_WORDS: Final = 2**64


@final
class PredictableEntropy:
    """Bits that anyone who knows the seed can tell beforehand: for made-up data only."""

    def __init__(self, seed: int | SeedSequence) -> None:
        """Start at the seed."""
        self._generator = np.random.default_rng(seed)
        self._buffer: list[int] = []

    def word(self) -> int:
        """Return 64 bits."""
        if not self._buffer:
            self._buffer = self.words(_BUFFER_WORDS).tolist()
        return self._buffer.pop()

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return an array of 64-bit words."""
        return self._generator.integers(0, _WORDS, size=count, dtype=np.uint64)
