"""Numbering: seqs come in blocks, so that a miss needs no write to get its own.

>>> block, next_seq = Block().taken(next_seq=1, least=2)
>>> block.next(), block.next(), block.left, next_seq
(1, 2, 998, 1001)
"""

from __future__ import annotations

from typing import Final, final

SIZE: Final = 1000
"""Seqs taken at a time, and so the most misses that wait to be written."""


@final
class Block:
    """The seqs that one session has taken and not used."""

    def __init__(self, last: int = 0, end: int = 1) -> None:
        """Start with those after `last` and before `end`: with none."""
        self._last = last
        self._end = end

    @property
    def left(self) -> int:
        """Return how many there are."""
        return self._end - self._last - 1

    def next(self, count: int = 1) -> int:
        """Return the next one, the first of `count` in a row."""
        self._last += count
        return self._last - count + 1

    def taken(self, next_seq: int, least: int) -> tuple[Block, int]:
        """Return a block with more if fewer than `least` are left, and the first seq that is free afterwards."""
        if self.left >= least:
            return self, next_seq
        # If another session took the seqs after ours, ours are given up.
        last, end = self._last if self._end == next_seq else next_seq - 1, next_seq + max(SIZE, least)
        return Block(last, end), end

    def given_back(self, next_seq: int) -> int:
        """Return the first free seq if what is left is given back: only if nobody took any since."""
        return self._last + 1 if next_seq == self._end else next_seq
