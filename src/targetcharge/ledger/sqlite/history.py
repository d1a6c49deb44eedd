"""History: the entries of a ledger, read while others write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from targetcharge.ledger.entries import entry_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import RLock

    from targetcharge.ledger.entries import Entry
    from targetcharge.ledger.sqlite.place import Place
    from targetcharge.ledger.sqlite.store import Store


def read(store: Store, lock: RLock, place: Place, last: int) -> Iterator[Entry]:
    """Yield the entries up to the number `last`, one by one, leaving the ledger free in between."""
    rows = store.rows()
    while True:
        with lock, place.translated():  # in no transaction: only what is durable may be seen
            row = next(rows, None)
        if row is None or row[0] > last:
            return
        yield entry_of(row[2])
