"""The state of a ledger: its header, where its entries end, and what they add up to."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

from targetcharge.errors import LedgerError
from targetcharge.ledger.entries import Sums, canonical


@final
@dataclass(frozen=True)
class State:
    """Where the ledger stands.

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

    @property
    def fields(self) -> dict[str, Any]:
        """Return the header's fields."""
        return _fields(self.header)

    @property
    def ledger(self) -> str:
        """Return the ledger's id."""
        return _id(self.header)

    def digest(self, sums: Sums | None = None) -> str:
        """Return a hash of the header and the totals, or of the header and other sums, in hexadecimal."""
        return hashlib.sha256(f"{self.header}\n{sums_text(sums or self.sums)}".encode()).hexdigest()


@final
@dataclass(frozen=True)
class Held:
    """What a tenant holds back.

    Attributes:
        units: on each meter.
        count: how many hits that is.
    """

    units: tuple[int, ...]
    count: int

    def __bool__(self) -> bool:
        """Return whether it is anything."""
        return self.count > 0


def held_of(units: str, count: object) -> Held:
    """Return what a tenant's row says that it holds back.

    Raises:
        LedgerError: if that is nothing that can be held back: a negative amount would give a budget back.
    """
    try:
        amounts = json.loads(units)
    except (ValueError, TypeError, RecursionError):
        amounts = None
    if isinstance(amounts, list) and all(type(each) is int and each >= 0 for each in [*amounts, count]):
        return Held(tuple(amounts), int(str(count)))
    msg = "what an open session holds back cannot be read: the ledger was damaged or changed"
    raise LedgerError(msg)


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
        if all(type(each) is int for each in (*sums.spent, *sums.hits, sums.delta)):
            return sums
    except (ValueError, KeyError, TypeError):
        pass
    msg = "the ledger's totals cannot be read: it was damaged or changed"
    raise LedgerError(msg)


@lru_cache(maxsize=32)
def _id(header: str) -> str:
    """Return the id in a header, which is looked up after every commit."""
    found = _fields(header).get("ledger")
    if isinstance(found, str):
        return found
    raise _unreadable()


def _fields(header: str) -> dict[str, Any]:
    try:
        found: object = json.loads(header)
    except (ValueError, TypeError):
        found = None
    if isinstance(found, dict):
        return found
    raise _unreadable()


def _unreadable() -> LedgerError:
    return LedgerError("the ledger's header cannot be read: it was damaged or changed")
