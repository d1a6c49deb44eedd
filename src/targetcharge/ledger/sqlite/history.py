"""History: the entries of a ledger, read while others write."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, final

from targetcharge.ledger.entries import answers_in, count_of, entry_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from threading import RLock

    from targetcharge.ledger.answer import Answer
    from targetcharge.ledger.entries import Entry, Pending
    from targetcharge.ledger.ledger import Tail
    from targetcharge.ledger.sqlite.place import Place
    from targetcharge.ledger.sqlite.store import Store


@final
class History:
    """What is written, read in no transaction: only what is durable may be seen."""

    def __init__(self, store: Store, lock: RLock, place: Place) -> None:
        """Read a store whose connection the lock guards."""
        self._store = store
        self._lock = lock
        self._place = place

    def answers(self, waiting: Sequence[Entry], last: int | None) -> Iterator[Answer]:
        """Yield the answers that are written, then those that wait to be; the last few if there is a number."""
        with self._lock, self._place.translated():
            unwritten = [answer for entry in waiting for answer in answers_in(entry)]
            if last is not None:
                written = self._store.last_answers(max(0, last - len(unwritten)))
                return iter((written + unwritten)[-last:] if last else [])
            number = self._store.state().number  # what comes later may hold what waits now
        return chain(chain.from_iterable(map(answers_in, self._upto(number))), unwritten)

    def count(self, waiting: Sequence[Entry]) -> int:
        """Return how many answers are written, or wait to be."""
        with self._lock, self._place.translated():
            unwritten = sum(map(count_of, waiting))
            number = self._store.state().number
        return unwritten + sum(map(count_of, self._upto(number)))

    def entries(self) -> Iterator[Entry]:
        """Yield all entries."""
        with self._lock, self._place.translated():
            number = self._store.state().number
        return self._upto(number)

    def since(self, number: int) -> Tail:
        """Return the entries after a number, and where they end."""
        with self._lock, self._place.translated():
            rows = list(self._store.rows(number))
        return (rows[-1][0] if rows else number), [entry_of(row[2]) for row in rows]

    def pending(self) -> list[int]:
        """Return which releases wait for a revision."""
        with self._lock, self._place.translated():
            return self._store.pending()

    def kept(self, release: int) -> Pending | None:
        """Return what waits for a revision."""
        with self._lock, self._place.translated():
            return self._store.kept(release)

    def hash_at(self, number: int) -> bytes | None:
        """Return the hash of an entry, if there is one."""
        with self._lock, self._place.translated():
            return self._store.hash_at(number)

    def _upto(self, last: int) -> Iterator[Entry]:
        """Yield the entries up to a number, one by one, leaving the ledger free in between."""
        rows = self._store.rows()
        while True:
            with self._lock, self._place.translated():
                row = next(rows, None)
            if row is None or row[0] > last:
                return
            yield entry_of(row[2])
