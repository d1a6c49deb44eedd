"""Totals: whether they are the sum of the entries.

In full, every hash is computed again and the totals are added up again from the entries: that needs nothing but
the file. When a ledger is opened it takes no longer for many entries: its witnesses keep a digest of the header
and the totals as they saw them, and only the entries since (after a crash) are looked at.
"""

from __future__ import annotations

from operator import gt, sub
from typing import TYPE_CHECKING

from targetcharge.errors import LedgerError
from targetcharge.ledger.entries import Sums, entry_of, link
from targetcharge.ledger.terms import Terms

if TYPE_CHECKING:
    from pathlib import Path

    from targetcharge.ledger.sqlite.state import State
    from targetcharge.ledger.sqlite.store import Store
    from targetcharge.ledger.sqlite.witness import Recalled, Testimony


def verify_entries(path: Path, store: Store) -> int:
    """Return the number of entries of a ledger in which every hash and every total is right.

    Raises:
        LedgerError: naming the first entry that is not what was written.
    """
    state = store.state()
    sums = _added(path, store, state, 0, link(b"", state.header))
    if sums != state.sums:
        raise _tampered(path, "its totals are not the sum of its entries")
    return state.number


def check_totals(path: Path, store: Store, recalled: Recalled) -> None:
    """Refuse a ledger whose header or totals are not those that its witnesses saw; all of it if they did not look.

    Raises:
        LedgerError: naming what was changed.
    """
    state = store.state()
    seen = [known for known in recalled.about(state.ledger) if known.totals]
    if seen and all(_as_seen(path, store, state, known) for known in seen):
        return
    verify_entries(path, store)
    if seen:
        what = "its totals are the sum of its entries, and its witness beside it or in the state folder saw others"
        raise _tampered(path, what)


def _as_seen(path: Path, store: Store, state: State, known: Testimony) -> bool:
    """Return whether a witness saw these totals, but for what the entries since have added."""
    since = _added(path, store, state, known.number, bytes.fromhex(known.head))
    before = Sums(
        tuple(map(sub, state.sums.spent, since.spent)),
        tuple(map(sub, state.sums.hits, since.hits)),
        state.sums.delta - since.delta,
    )
    return state.digest(before) == known.totals


def _added(path: Path, store: Store, state: State, number: int, head: bytes) -> Sums:
    """Return what the entries after a number add up to, which lead from a hash to the ledger's head."""
    sums = Sums.zero(len(Terms.of(state.fields).capacities))
    for stored, seq, body, digest in store.rows(number):
        number += 1
        if stored != number:
            raise _tampered(path, f"entry {number} is missing")
        head = link(head, body) if _is_text(body) else b""
        if digest != head:
            raise _tampered(path, f"entry {number} is not what was written, or one before it was changed")
        entry = entry_of(body)
        if seq != getattr(entry, "seq", None):
            raise _tampered(path, f"entry {number} does not have the seq of its answer")
        try:
            after = sums.plus(entry)
        except ValueError:
            raise _tampered(path, f"entry {number} does not charge its meters") from None
        if any(map(gt, (*sums.spent, *sums.hits, sums.delta), (*after.spent, *after.hits, after.delta))):
            raise _tampered(path, f"entry {number} gives a charge back")
        sums = after
    if (number, head) != (state.number, state.head):
        raise _tampered(path, f"its state names entry {state.number} as the last, and the entries end at {number}")
    return sums


def _is_text(body: object) -> bool:
    return isinstance(body, str) and body.isascii()


def _tampered(path: Path, what: str) -> LedgerError:
    return LedgerError(f"the ledger {path} was damaged or changed: {what}")
