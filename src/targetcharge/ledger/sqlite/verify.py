"""Verification from outside: what a ledger file says of itself, and whether it is what was written."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from targetcharge.errors import LedgerError
from targetcharge.ledger.sqlite.restored import distrust
from targetcharge.ledger.sqlite.state import Held, State
from targetcharge.ledger.sqlite.store import Store, inode
from targetcharge.ledger.sqlite.totals import check_totals, verify_entries
from targetcharge.ledger.sqlite.witness import Recalled
from targetcharge.ledger.terms import Terms

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from targetcharge.ledger.entries import Entry


@final
@dataclass(frozen=True)
class Inspection:
    """What a ledger file says of itself; public facts only.

    Attributes:
        terms: what it was made for.
        state: where it stands.
        held: what open sessions hold back; after a crash it will be spent.
        pending: how many releases wait for a revision.
        restored: why it looks like a restored copy; empty if it does not.
        last: the last entries, oldest first.
    """

    terms: Terms
    state: State
    held: Held
    pending: int
    restored: str
    last: tuple[Entry, ...]

    @property
    def individual(self) -> bool:
        """Return whether each unit has a meter of its own."""
        return self.terms.charging == "individual"

    @property
    def hits_left(self) -> int:
        """Return how many more hits of the declared kind are covered, on the meter that has the most left.

        Where each unit has a meter of its own: how many hits that covers in all. What is left of it is secret.
        """
        if self.restored:
            return 0
        terms, spent = self.terms, self.state.sums.spent
        spent = (0,) * len(spent) if self.individual else spent
        left = zip(terms.capacities, spent, terms.typical, strict=True)
        return max(max(0, capacity - used) // unit for capacity, used, unit in left)


def inspect(path: Path, last: int = 0, *, unchecked: bool = False) -> Inspection:
    """Read a ledger without changing it.

    Args:
        path: of the file.
        last: how many of the last entries to read.
        unchecked: whether totals that were changed are told all the same, to a caller who verifies them.

    Raises:
        LedgerError: if there is none, it cannot be read, or its totals are not those that its witnesses saw.
    """
    with _reading(path) as (store, recalled):
        state = store.state()
        restored = distrust(store, recalled, inode(path))
        if not restored and not unchecked:
            check_totals(path, store, recalled)
        held = store.tenants().values()
        zero = (0,) * len(state.sums.spent)
        return Inspection(
            terms=Terms.of(state.fields),
            state=state,
            held=Held(
                tuple(map(sum, zip(zero, *(each.units for each in held), strict=True))),
                sum(each.count for each in held),
            ),
            pending=len(store.pending()),
            restored=restored,
            last=tuple(store.last_entries(last)),
        )


def verify(path: Path) -> int:
    """Return the number of entries of a ledger in which every hash and every total is right.

    Raises:
        LedgerError: naming the first entry that is not what was written.
    """
    with _reading(path) as (store, recalled):
        count = verify_entries(path, store)
        restored = distrust(store, recalled, inode(path))
    if restored:
        msg = f"{path}: {restored}"
        raise LedgerError(msg)
    return count


@contextmanager
def _reading(path: Path) -> Iterator[tuple[Store, Recalled]]:
    """Read a ledger as it stands now, also while others write. The witnesses first: they must not be ahead."""
    try:
        with closing(_open(path)) as store:
            recalled = Recalled.of(path.resolve(), store.state().ledger)
            with store.reading():
                yield store, recalled
    except (sqlite3.Error, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"the ledger {path} cannot be read: {error}"
        raise LedgerError(msg) from None


def _open(path: Path) -> Store:
    if not path.is_file():
        msg = f"there is no ledger {path}"
        raise LedgerError(msg)
    store = Store(path, read_only=True)
    if store.empty():
        store.close()
        msg = f"{path} is empty: no session was opened on it"
        raise LedgerError(msg)
    return store
