"""The chain of a ledger's entries: each one's hash covers its text and the hash before it.

So no entry can be changed, dropped or put in unnoticed. The totals are the sum of the entries.

>>> from targetcharge.ledger.entries import Spent
>>> from targetcharge.ledger.state import LedgerState
>>> from targetcharge.ledger.terms import Terms
>>> terms = Terms(1.0, 1e-6, "exact", 0.01, 0.0, (("NotPrior",),), (), 12.5, (229,), (1,))
>>> state = LedgerState.new(terms, "a")
>>> rows, state = chained(state, [Spent("failed", (2,), 1), Spent("failed", (3,), 1)])
>>> verify_chain("a.db", rows, state)
>>> verify_chain("a.db", rows[1:], state)
Traceback (most recent call last):
targetcharge.errors.LedgerError: the ledger a.db was damaged or changed: entry 1 is missing
"""

from __future__ import annotations

from dataclasses import replace
from operator import gt
from typing import TYPE_CHECKING

from targetcharge.errors import LedgerError
from targetcharge.ledger.entries import Sums, entry_of, link, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from targetcharge.ledger.entries import Entry
    from targetcharge.ledger.state import LedgerState

Row = tuple[int, int | None, str, bytes]
"""An entry as it is stored: its number, its seq if it holds answers, its text, its hash."""


def chained(state: LedgerState, entries: Iterable[Entry]) -> tuple[list[Row], LedgerState]:
    """Return the rows of entries that follow a state, and the state after them."""
    rows: list[Row] = []
    number, head, sums = state.number, state.head, state.sums
    for entry in entries:
        text = text_of(entry)
        number, head, sums = number + 1, link(head, text), sums.plus(entry)
        rows.append((number, _seq(entry), text, head))
    return rows, replace(state, number=number, head=head, sums=sums)


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
    if (number, head) != (state.number, state.head):
        what = f"its state names entry {state.number} as the last, and the entries end at {number}"
        raise tampered(ledger, what)
    return sums


def tampered(ledger: Path | str, what: str) -> LedgerError:
    """Return the error of a ledger that is not what was written."""
    return LedgerError(f"the ledger {ledger} was damaged or changed: {what}")


def _seq(entry: Entry) -> int | None:
    return getattr(entry, "seq", None)


def _is_text(body: object) -> bool:
    return isinstance(body, str) and body.isascii()
