"""Entropy: random bits from the operating system, buffered, never repeated by a fork or a thread.

>>> 0 <= below(SystemEntropy(), 10) < 10
True
"""

from __future__ import annotations

import os
import struct
import weakref
from typing import TYPE_CHECKING, NoReturn, Protocol, final

import numpy as np

from targetcharge.errors import NotAllowed

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD_BITS = 64
_BUFFER_WORDS = 512
_UNPACK = struct.Struct(f"{_BUFFER_WORDS}Q").unpack

_sources: weakref.WeakSet[SystemEntropy] = weakref.WeakSet()


def _drop_inherited() -> None:
    for source in _sources:
        source.drop()


os.register_at_fork(after_in_child=_drop_inherited)


class Entropy(Protocol):
    """A source of independent fair bits. Below `sessions` it is an argument without a default."""

    def word(self) -> int:
        """Return 64 fair bits as an integer."""
        ...

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return an array of 64-bit words."""
        ...


@final
class SystemEntropy:
    """The operating system's entropy, buffered.

    Threads share the buffer: `list.pop` is atomic, so no two of them get the same word. A child of `os.fork` drops
    what it inherited before any of its code runs. It cannot be pickled or copied: copies would repeat its words.
    """

    def __init__(self) -> None:
        """Start with an empty buffer."""
        self._buffer: list[int] = []
        _sources.add(self)

    def drop(self) -> None:
        """Forget the buffered words."""
        self._buffer = []

    def word(self) -> int:
        """Return 64 fair bits."""
        try:
            return self._buffer.pop()
        except IndexError:
            return self._refill()

    def _refill(self) -> int:
        process = os.getpid()
        fresh: list[int] = list(_UNPACK(os.urandom(8 * _BUFFER_WORDS)))
        word = fresh.pop()
        self._buffer = fresh
        if os.getpid() != process:  # a signal handler forked in between, and the parent has the same words
            self.drop()
            return self._refill()
        return word

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied."""
        msg = "a source of entropy cannot be pickled or copied: make a new SystemEntropy()"
        raise NotAllowed(msg)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return an array of 64-bit words, straight from the system."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def below(entropy: Entropy, bound: int) -> int:
    """Return a uniform integer in [0, bound), exactly, by rejection: less than two tries on average."""
    bits = (bound - 1).bit_length()
    if bits <= WORD_BITS:
        shift = WORD_BITS - bits
        while (value := entropy.word() >> shift) >= bound:
            pass
        return value
    words, rest = divmod(bits, WORD_BITS)
    while True:
        value = entropy.word() >> (WORD_BITS - rest)
        for _ in range(words):
            value = value << WORD_BITS | entropy.word()
        if value < bound:
            return value


def below_array(entropy: Entropy, bounds: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a uniform integer in [0, bound) for each bound of an array, exactly, by rejection."""
    # The smallest all-ones mask that covers bound - 1.
    mask = bounds - np.uint64(1)
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(shift)
    values = entropy.words(len(bounds)) & mask
    again = np.flatnonzero(values >= bounds)
    while len(again):
        values[again] = entropy.words(len(again)) & mask[again]
        again = again[values[again] >= bounds[again]]
    return values
