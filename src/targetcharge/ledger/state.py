"""The state of a ledger: where its entries end, what they add up to, and what open sessions have taken of it.

Entries are chained: each one's hash covers its text and the hash before it. So none can be changed, dropped or put
in unnoticed. The totals are the sum of the entries.

A session takes seqs in blocks, so that a miss needs no write to get its own, and holds back in the ledger what its
next call may charge.

>>> from targetcharge.ledger.entries import Spent
>>> terms = Terms(1.0, 1e-6, "exact", 0.01, 0.0, (("NotPrior",),), (), 12.5, (229,), (1,))
>>> rows, state = chained(LedgerState.new(terms, "a"), [Spent("failed", (2,), 1), Spent("failed", (3,), 1)])
>>> verify_chain("a.db", rows, state)
>>> verify_chain("a.db", rows[1:], state)
Traceback (most recent call last):
targetcharge.errors.LedgerError: the ledger a.db was damaged or changed: entry 1 is missing
>>> block, next_seq = SeqBlock().extended(next_seq=1, least=2)
>>> block.next(), block.next(), block.left, next_seq
(1, 2, 998, 1001)
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import gt
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge.errors import LedgerError
from targetcharge.ledger.answer import Answer, BatchEntry
from targetcharge.ledger.entries import DeltaSpent, Restored, Spent, entry_of, text_of
from targetcharge.ledger.terms import Terms
from targetcharge.outcomes import canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from targetcharge.ledger.entries import Entry

_BLOCK: Final = 1000
"""Seqs taken at a time, and so the most misses that wait to be written."""

Row = tuple[int, int | None, str, bytes]
"""An entry as it is stored: its number, its seq if it holds answers, its text, its hash."""


@final
@dataclass(frozen=True)
class Sums:
    """What entries add up to, on every meter.

    Attributes:
        spent: grains charged, for each meter.
        hits: hits charged, for each meter.
        delta: grains of the computations' own δ spent.
    """

    spent: tuple[int, ...]
    hits: tuple[int, ...]
    delta: int = 0

    @classmethod
    def zero(cls, meters: int) -> Sums:
        """Return the sums of no entries."""
        return cls((0,) * meters, (0,) * meters)

    @classmethod
    def of(cls, text: str) -> Sums:
        """Return the sums that a text holds.

        Raises:
            LedgerError: if it holds none.
        """
        try:
            body = json.loads(text)
            sums = cls(tuple(body["spent"]), tuple(body["hits"]), body["delta"])
            if all(type(total) is int for total in (*sums.spent, *sums.hits, sums.delta)):
                return sums
        except (ValueError, KeyError, TypeError):
            pass
        msg = "the ledger's totals cannot be read: it was damaged or changed"
        raise LedgerError(msg)

    def text(self) -> str:
        """Return the sums as canonical JSON."""
        return canonical_json({"spent": self.spent, "hits": self.hits, "delta": self.delta})

    def plus(self, entry: Entry) -> Sums:
        """Return the sums with one more entry."""
        match entry:
            case Answer():
                return self._charged(entry.grains, tuple(map(int, entry.meters_hit))) if entry.hit else self
            case BatchEntry():
                count = len(entry.hit_places)
                return self._charged(entry.grains, tuple(count if grains else 0 for grains in entry.first.grains))
            case Spent(_, grains, count):
                return self._charged(grains, tuple(count if one else 0 for one in grains))
            case DeltaSpent(delta):
                return Sums(self.spent, self.hits, self.delta + delta)
            case Restored():
                return self

    def _charged(self, grains: tuple[int, ...], hits: tuple[int, ...]) -> Sums:
        return Sums(
            tuple(total + charged for total, charged in zip(self.spent, grains, strict=True)),
            tuple(total + hit for total, hit in zip(self.hits, hits, strict=True)),
            self.delta,
        )


@final
@dataclass(frozen=True)
class LedgerState:
    """Where a ledger stands.

    Attributes:
        header: the terms, the ledger's id and the commitment to its offset, if it has one, as canonical JSON.
        last_entry: the number of the last entry.
        head: its hash.
        next_seq: the first seq that no session has taken.
        sums: what the entries add up to.
    """

    header: str
    last_entry: int
    head: bytes
    next_seq: int
    sums: Sums

    @classmethod
    def new(cls, terms: Terms, ledger: str, commitment: str = "") -> LedgerState:
        """Return the state of a new ledger with this id and no entries, committed to an offset or to none."""
        committed = {"commitment": commitment} if commitment else {}
        header = canonical_json({**terms.plain(), "ledger": ledger, **committed})
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
    def commitment(self) -> str:
        """Return the commitment to the ledger's offset; empty if there is none."""
        return str(self.fields.get("commitment", ""))

    @property
    def terms(self) -> Terms:
        """Return what the ledger was made for."""
        return Terms.of(self.fields)

    def digest(self, sums: Sums | None = None) -> str:
        """Return a hash of the header and the totals, or of the header and other sums, in hexadecimal."""
        return hashlib.sha256(f"{self.header}\n{(sums or self.sums).text()}".encode()).hexdigest()


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


def link(head: bytes, text: str) -> bytes:
    """Return the hash of an entry after the entries that end in `head`."""
    return hashlib.sha256(head + text.encode("ascii")).digest()


def chained(state: LedgerState, entries: Iterable[Entry]) -> tuple[list[Row], LedgerState]:
    """Return the rows of entries that follow a state, and the state after them."""
    rows: list[Row] = []
    number, head, sums = state.last_entry, state.head, state.sums
    for entry in entries:
        text = text_of(entry)
        number, head, sums = number + 1, link(head, text), sums.plus(entry)
        rows.append((number, _seq(entry), text, head))
    return rows, replace(state, last_entry=number, head=head, sums=sums)


def verify_chain(ledger: Path | str, rows: Iterable[Row], state: LedgerState) -> None:
    """Refuse a ledger, of this name, with these rows and this state, in which a hash or a total is not right.

    Raises:
        LedgerError: naming the first entry that is not what was written.
    """
    if added(ledger, rows, state, 0, link(b"", state.header)) != state.sums:
        raise tampered(ledger, "its totals are not the sum of its entries")


def added(ledger: Path | str, rows: Iterable[Row], state: LedgerState, number: int, head: bytes) -> Sums:
    """Return what the entries after a number add up to, which lead from a hash to the ledger's head.

    Raises:
        LedgerError: naming the first entry that is not what was written.
    """
    sums = Sums.zero(len(state.terms.capacities))
    for stored, seq, body, digest in rows:
        number += 1
        if stored != number:
            raise tampered(ledger, f"entry {number} is missing")
        head = link(head, body) if _is_text(body) else b""
        if digest != head:
            raise tampered(ledger, f"entry {number} is not what was written, or one before it was changed")
        entry = entry_of(body)
        if seq != _seq(entry):
            raise tampered(ledger, f"entry {number} does not have the seq of its answer")
        try:
            after = sums.plus(entry)
        except ValueError:
            raise tampered(ledger, f"entry {number} does not charge its meters") from None
        if any(map(gt, (*sums.spent, *sums.hits, sums.delta), (*after.spent, *after.hits, after.delta))):
            raise tampered(ledger, f"entry {number} gives a charge back")
        sums = after
    if (number, head) != (state.last_entry, state.head):
        what = f"its state names entry {state.last_entry} as the last, and the entries end at {number}"
        raise tampered(ledger, what)
    return sums


def tampered(ledger: Path | str, what: str) -> LedgerError:
    """Return the error of a ledger that is not what was written."""
    return LedgerError(f"the ledger {ledger} was damaged or changed: {what}")


def _seq(entry: Entry) -> int | None:
    return entry.seq if isinstance(entry, Answer | BatchEntry) else None


def _is_text(body: object) -> bool:
    return isinstance(body, str) and body.isascii()


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
