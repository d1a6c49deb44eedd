"""The state of a ledger: where its entries end, what they add up to, and what open sessions have taken of it.

A session takes seqs in blocks, so that a miss needs no write to get its own, and holds back in the ledger what its
next call may charge.

>>> block, next_seq = SeqBlock().extended(next_seq=1, least=2)
>>> block.next(), block.next(), block.left, next_seq
(1, 2, 998, 1001)
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge.errors import LedgerError
from targetcharge.ledger.entries import Sums, link
from targetcharge.ledger.plain import canonical
from targetcharge.ledger.terms import Terms

if TYPE_CHECKING:
    from collections.abc import Iterable

_BLOCK: Final = 1000
"""Seqs taken at a time, and so the most misses that wait to be written."""


@final
@dataclass(frozen=True)
class LedgerState:
    """Where a ledger stands.

    Attributes:
        header: the terms and the ledger's id, as canonical JSON.
        number: of the last entry.
        head: its hash.
        next_seq: the first seq that no session has taken.
        sums: what the entries add up to.
    """

    header: str
    number: int
    head: bytes
    next_seq: int
    sums: Sums

    @classmethod
    def new(cls, terms: Terms, ledger: str) -> LedgerState:
        """Return the state of a new ledger with this id, which has no entries."""
        header = canonical({**terms.plain(), "ledger": ledger})
        return cls(header, 0, link(b"", header), 1, Sums.zero(len(terms.capacities)))

    @property
    def fields(self) -> dict[str, Any]:
        """Return the header's fields."""
        return _fields(self.header)

    @property
    def ledger(self) -> str:
        """Return the ledger's id."""
        return _id(self.header)

    @property
    def terms(self) -> Terms:
        """Return what the ledger was made for."""
        return Terms.of(self.fields)

    def digest(self, sums: Sums | None = None) -> str:
        """Return a hash of the header and the totals, or of the header and other sums, in hexadecimal."""
        return hashlib.sha256(f"{self.header}\n{sums_text(sums or self.sums)}".encode()).hexdigest()


@final
@dataclass(frozen=True)
class Reservation:
    """What sessions hold back.

    Attributes:
        grains: on each meter.
        count: how many hits that is.
    """

    grains: tuple[int, ...]
    count: int

    def __bool__(self) -> bool:
        """Return whether anything is held back."""
        return self.count > 0

    @classmethod
    def parsed(cls, grains: str, count: object) -> Reservation:
        """Return what a stored row says.

        Raises:
            LedgerError: if that is nothing that can be held back: a negative amount would give a budget back.
        """
        try:
            amounts = json.loads(grains)
        except (ValueError, TypeError, RecursionError):
            amounts = None
        if isinstance(amounts, list) and all(type(amount) is int and amount >= 0 for amount in [*amounts, count]):
            return cls(tuple(amounts), int(str(count)))
        msg = "what an open session holds back cannot be read: the ledger was damaged or changed"
        raise LedgerError(msg)

    @classmethod
    def total(cls, reservations: Iterable[Reservation], meters: int) -> Reservation:
        """Return what all of these hold back."""
        rows = [cls((0,) * meters, 0), *reservations]
        grains = zip(*(row.grains for row in rows), strict=True)
        return cls(tuple(map(sum, grains)), sum(row.count for row in rows))


@final
class SeqBlock:
    """The seqs that one session has taken and not used."""

    def __init__(self, last: int = 0, end: int = 1) -> None:
        """Start with those after `last` and before `end`: with none."""
        self._last = last
        self._end = end

    @property
    def left(self) -> int:
        """Return how many seqs are left."""
        return self._end - self._last - 1

    def next(self, count: int = 1) -> int:
        """Return the next seq, the first of `count` in a row."""
        self._last += count
        return self._last - count + 1

    def extended(self, next_seq: int, least: int) -> tuple[SeqBlock, int]:
        """Return a block with more if fewer than `least` are left, and the first seq that is free afterwards."""
        if self.left >= least:
            return self, next_seq
        # If another session took the seqs after ours, ours are given up.
        last, end = self._last if self._end == next_seq else next_seq - 1, next_seq + max(_BLOCK, least)
        return SeqBlock(last, end), end

    def given_back(self, next_seq: int) -> int:
        """Return the first free seq if what is left is given back: only if nobody took any since."""
        return self._last + 1 if next_seq == self._end else next_seq


def sums_text(sums: Sums) -> str:
    """Return sums as canonical JSON."""
    return canonical({"spent": sums.spent, "hits": sums.hits, "delta": sums.delta})


def sums_of(text: str) -> Sums:
    """Return the sums that a text holds.

    Raises:
        LedgerError: if it holds none.
    """
    try:
        body = json.loads(text)
        sums = Sums(tuple(body["spent"]), tuple(body["hits"]), body["delta"])
        if all(type(total) is int for total in (*sums.spent, *sums.hits, sums.delta)):
            return sums
    except (ValueError, KeyError, TypeError):
        pass
    msg = "the ledger's totals cannot be read: it was damaged or changed"
    raise LedgerError(msg)


@lru_cache(maxsize=32)
def _id(header: str) -> str:
    """Return the id in a header, which is looked up after every commit."""
    ledger = _fields(header).get("ledger")
    if isinstance(ledger, str):
        return ledger
    raise _unreadable()


def _fields(header: str) -> dict[str, Any]:
    try:
        fields: object = json.loads(header)
    except (ValueError, TypeError):
        fields = None
    if isinstance(fields, dict):
        return fields
    raise _unreadable()


def _unreadable() -> LedgerError:
    return LedgerError("the ledger's header cannot be read: it was damaged or changed")
