"""Numbering: seqs come in blocks, so that a miss needs no write to get its own.

>>> block = Block()
>>> block.take(next_seq=1, least=2)
1001
>>> block.next(), block.next(), block.left
(1, 2, 998)
"""

from __future__ import annotations

from typing import Final, final

SIZE: Final = 1000
"""Seqs taken at a time, and so the most misses that wait to be written."""


@final
class Block:
    """The seqs that one session has taken and not used."""

    def __init__(self) -> None:
        """Start with none."""
        self._last = 0
        self._end = 1

    @property
    def left(self) -> int:
        """Return how many there are."""
        return self._end - self._last - 1

    def next(self, count: int = 1) -> int:
        """Return the next one, the first of `count` in a row."""
        self._last += count
        return self._last - count + 1

    def take(self, next_seq: int, least: int) -> int:
        """Take more if fewer than `least` are left; return the first seq that is free afterwards."""
        if self.left >= least:
            return next_seq
        if self._end != next_seq:  # another session took the seqs after ours: give ours up
            self._last = next_seq - 1
        self._end = next_seq + max(SIZE, least)
        return self._end

    def give_back(self, next_seq: int) -> int:
        """Return the first free seq if what is left is given back: only if nobody took any since."""
        return self._last + 1 if next_seq == self._end else next_seq

    def copy(self) -> Block:
        """Return one that can be gone back to."""
        copied = Block()
        copied._last, copied._end = self._last, self._end
        return copied
