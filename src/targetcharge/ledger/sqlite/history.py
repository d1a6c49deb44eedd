"""History: the entries of a ledger, read while others write."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, final

from targetcharge.ledger.entries import answers_in, count_of, entry_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import RLock

    from targetcharge.ledger.answer import Answer
    from targetcharge.ledger.entries import Entry, Pending
    from targetcharge.ledger.ledger import Tail
    from targetcharge.ledger.sqlite.commits import Commits


@final
class History:
    """What is written, and the session's own misses that wait to be."""

    def __init__(self, commits: Commits, lock: RLock) -> None:
        """Read where a session writes, whose connection the lock guards."""
        self._commits = commits
        self._lock = lock

    def answers(self, last: int | None) -> Iterator[Answer]:
        """Yield the answers that are written, then those that wait to be; the last few if there is a number."""
        with self._lock, self._commits.settled() as store:
            unwritten = [answer for entry in self._commits.standing.misses for answer in answers_in(entry)]
            if last is not None:
                written = store.last_answers(max(0, last - len(unwritten)))
                return iter((written + unwritten)[-last:] if last else [])
            number = store.state().number  # what comes later may hold what waits now
        return chain(chain.from_iterable(map(answers_in, self._upto(number))), unwritten)

    def count(self) -> int:
        """Return how many answers are written, or wait to be."""
        with self._lock, self._commits.settled() as store:
            unwritten = sum(map(count_of, self._commits.standing.misses))
            number = store.state().number
        return unwritten + sum(map(count_of, self._upto(number)))

    def entries(self) -> Iterator[Entry]:
        """Yield all entries."""
        with self._lock, self._commits.settled() as store:
            number = store.state().number
        return self._upto(number)

    def since(self, number: int) -> Tail:
        """Return the entries after a number, and where they end."""
        with self._lock, self._commits.settled() as store:
            rows = list(store.rows(number))
        return (rows[-1][0] if rows else number), [entry_of(row[2]) for row in rows]

    def pending(self) -> list[int]:
        """Return which releases wait for a revision."""
        with self._lock, self._commits.settled() as store:
            return store.pending()

    def kept(self, release: int) -> Pending | None:
        """Return what waits for a revision."""
        with self._lock, self._commits.settled() as store:
            return store.kept(release)

    def hash_at(self, number: int) -> bytes | None:
        """Return the hash of an entry, if there is one."""
        with self._lock, self._commits.settled() as store:
            return store.hash_at(number)

    def _upto(self, last: int) -> Iterator[Entry]:
        """Yield the entries up to a number, one by one, leaving the ledger free in between."""
        rows: Iterator[tuple[int, int | None, str, bytes]] | None = None
        while True:
            with self._lock, self._commits.settled() as store:
                rows = rows or store.rows()
                row = next(rows, None)
            if row is None or row[0] > last:
                return
            yield entry_of(row[2])
