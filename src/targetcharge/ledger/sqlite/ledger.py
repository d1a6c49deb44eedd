"""A ledger in a SQLite file: survives crashes, and serves several processes.

What a session may spend next is held back in the file before the data is touched. A miss leaves it held for the
next call, so a run of misses needs no disk sync; they are written with the next hit, every thousand or at closing.
A hit is one transaction: charge, published outcome, and what is held back for the next call.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import ge
from typing import TYPE_CHECKING, final

from targetcharge.errors import BudgetSpent, InvalidParameter, LedgerError, NotAllowed, TargetChargeError
from targetcharge.ledger.entries import DeltaSpent, Entry, Spent, answers_in, count_of, entry_of
from targetcharge.ledger.ledger import Ledger, Most, Settlement, already_published, check_room, show_sums
from targetcharge.ledger.offset import SecretOffset
from targetcharge.ledger.sqlite.creation import connect
from targetcharge.ledger.sqlite.database import translated, unusable
from targetcharge.ledger.sqlite.locks import exclusive_lock
from targetcharge.ledger.sqlite.transactions import Draft, Transactions
from targetcharge.ledger.sqlite.trust import trusted
from targetcharge.ledger.sqlite.witness import Witnesses
from targetcharge.ledger.state import LedgerState, Reservation, Sums
from targetcharge.numerics.rounding import grains_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from io import FileIO
    from pathlib import Path

    from targetcharge.accounting.meter import Meter
    from targetcharge.ledger.answer import Answer
    from targetcharge.ledger.entries import Pending
    from targetcharge.ledger.ledger import Tail
    from targetcharge.ledger.published import QuestionId
    from targetcharge.ledger.sqlite.database import Database
    from targetcharge.ledger.sqlite.locks import OwnLocks
    from targetcharge.ledger.state import Row
    from targetcharge.ledger.terms import Terms


class _HeldByOthersError(Exception):
    """A call is covered only if other sessions do not need what they hold back."""


@final
class SqliteLedger(Ledger):
    """One session's access to a ledger file."""

    def __init__(
        self,
        path: Path,
        terms: Terms,
        meters: tuple[Meter, ...],
        restored: tuple[int, str] | None = None,
        fresh_offset: int | None = None,
    ) -> None:
        """Open a ledger, which is made if there is none.

        Args:
            path: of the file.
            terms: what it must have been made for; `terms_at` says what it was made for.
            meters: those that belong to the terms.
            restored: the number and hash of the last entry ever published, if it is a restored copy.
            fresh_offset: the secret offset if this call makes the ledger; one that exists keeps its own.
        """
        fresh = SecretOffset.fresh(fresh_offset) if fresh_offset is not None else None
        del fresh_offset  # a traceback may show variables
        if fresh is not None and terms.offset is None:
            raise InvalidParameter("fresh_offset", int, "left out where the terms have no offset")
        self._lock = threading.RLock()
        self._meters = meters
        self._nothing = Reservation((0,) * len(meters), 0)
        self._distrust = ""
        self._offset: SecretOffset | None = None
        self._closed = False
        self._path = path.resolve()  # as SQLite does: its log lies beside the file itself
        self._database = connect(self._path, terms, fresh)
        self._witnesses = Witnesses(self._database)
        self._transactions = Transactions(self._database, self._witnesses, self._nothing)
        try:
            with translated(self._path):
                self._open(terms, restored)
        except BaseException:
            self.close()
            raise

    def _open(self, terms: Terms, restored: tuple[int, str] | None) -> None:
        state = self._database.state()
        state.terms.check(terms, self._path)
        self._id = state.ledger
        self._distrust = self._trust(restored)
        if not self._database.index.exists():  # a file of an earlier version
            self._transactions.write(lambda: self._database.index.create(self._database.rows()))
        if not self._distrust:
            self._witnesses.tell(self._database.state(), opening=True)
            self._transactions.add_session()
            with self.exclusive() if self._meters[0].individual else nullcontext():
                self._spend_for_dead()
        self._refresh()

    def _trust(self, restored: tuple[int, str] | None) -> str:
        """Return why this file must not be trusted, if so; take the owner's word that it is complete."""
        parts = self._path, self._database, self._transactions, self._witnesses
        why, self._offset = trusted(*parts, restored)
        return why

    @property
    def id(self) -> str:
        """Return what tells the ledger from all others: its file holds it."""
        return self._id

    @property
    def meters(self) -> tuple[Meter, ...]:
        """Return the meters, with what other processes charged meanwhile."""
        with self._lock, translated(self._path):
            if not self._closed:
                self._transactions.resolve()
                self._refresh()
        return self._meters

    @property
    def offset(self) -> int | None:
        """Return the secret offset: the one that the ledger was made with."""
        return self._offset.value if self._offset is not None else None

    def _refresh(self, state: LedgerState | None = None) -> None:
        sums = (state or self._database.state()).sums
        if self._distrust:
            sums = Sums(tuple(meter.tariff.capacity for meter in self._meters), sums.hits, sums.delta)
        show_sums(self._meters, sums)

    def reserve(self, most: Most) -> None:
        """Hold back what the call could charge: in the file before this returns."""
        with self._lock:
            try:
                locks = self._usable_locks()
                self._transactions.resolve()
                if self._transactions.session.reserved is not None:
                    self.forfeit("interrupted")
                self._hold_back(locks, most)
            except (sqlite3.Error, OSError) as error:
                raise unusable(self._path, error) from None
            self._transactions.begin_call(most)

    def _usable_locks(self) -> OwnLocks:
        if self._distrust:
            raise BudgetSpent(self._distrust, asked=1.0, left=0.0)
        locks = self._transactions.locks
        if self._transactions.broken or locks is None:
            msg = f"the ledger {self._path} is closed after an error: open a new session on it"
            raise LedgerError(msg)
        self._database.check_in_place()
        return locks

    def _hold_back(self, locks: OwnLocks, most: Most) -> None:
        try:
            while not self._holds(locks, most):
                locks.end_call()
                self._spend_for_dead()
                self._transactions.take_from_others()
        except BaseException:
            locks.end_call()
            raise

    def _holds(self, locks: OwnLocks, most: Most) -> bool:
        """Return whether the call is covered; False if that depends on what other sessions hold."""
        if not locks.start_call():
            self._transactions.accept_loss(locks)
        session = self._transactions.session
        if (
            all(map(ge, session.held.grains, most.grains))
            and not most.delta
            and session.block.left >= most.answers
        ):
            return True
        try:
            self._transactions.commit(partial(self._top_up, most))
        except _HeldByOthersError:
            return False
        return True

    def _top_up(self, most: Most, draft: Draft) -> None:
        self._refresh(draft.state)
        # First without the others: what none of their misses could make room for is refused at once.
        check_room(self._meters, most)
        try:
            check_room(self._meters, most, self._transactions.held_by_others())
        except BudgetSpent:
            raise _HeldByOthersError from None
        draft.append([DeltaSpent(grains_up(most.delta))] if most.delta else [])
        draft.hold(self._transactions.name, Reservation(most.grains, most.count), seqs=most.answers)

    def _spend_for_dead(self) -> None:
        self._transactions.spend_for_dead(spare_idle=self._meters[0].individual)

    def next_seq(self, count: int = 1) -> int:
        """Return the next seq of this session's block."""
        return self._transactions.session.block.next(count)

    def settle(self, settlement: Settlement) -> None:
        """Make hits and pending outcomes durable; keep misses for later."""
        with self._lock:
            try:
                if settlement.waits:
                    self._transactions.keep(settlement.entries)
                else:
                    self._settle_now(settlement)
            except NotAllowed:
                self._finish_call()  # nothing was published, so nothing is charged
                raise
            self._finish_call()

    def _settle_now(self, settlement: Settlement) -> None:
        with self._transactions.fatal():
            self._transactions.commit(partial(self._record, settlement), ends_call=True)

    def _record(self, settlement: Settlement, draft: Draft) -> None:
        if settlement.closes is not None and not self._database.remove_pending(settlement.closes):
            raise already_published(settlement.closes)
        if settlement.pending is not None:
            self._database.add_pending(settlement.pending)
        draft.append(settlement.entries)
        self._refresh(draft.state)
        draft.hold(self._transactions.name, self._next(self._transactions.session.reserved))

    def _next(self, most: Most | None) -> Reservation:
        """Return what to hold back for a following call: one hit, if there is room for it."""
        if most is not None:
            one = replace(most, count=1, delta=0.0, answers=0)
            with suppress(BudgetSpent):
                check_room(self._meters, one, self._transactions.held_by_others())
                return Reservation(one.grains, 1)
        return self._nothing

    def forfeit(self, algorithm: str) -> None:
        """Spend what is held back for the call that broke."""
        with self._lock:
            if self._transactions.broken:
                return
            with self._transactions.fatal():
                self._transactions.resolve()
                most = self._transactions.session.reserved
                if most is None:
                    return
                spent = Spent("failed", most.grains, most.count, algorithm)
                self._transactions.commit(partial(self._spend, spent), ends_call=True)
            self._finish_call()

    def _spend(self, spent: Spent, draft: Draft) -> None:
        draft.append([spent])
        draft.hold(self._transactions.name, self._nothing)

    def _finish_call(self) -> None:
        self._transactions.finish_call()
        self.end_call()

    def end_call(self) -> None:
        """Let others take what this session holds back, unless an interrupted call has yet to pay with it."""
        transactions = self._transactions
        if transactions.intent is not None:
            with self._lock, suppress(sqlite3.Error, OSError, TargetChargeError):
                transactions.resolve()
        locks = transactions.locks
        if locks is not None and transactions.session.reserved is None and transactions.intent is None:
            locks.end_call()

    def exclusive(self) -> AbstractContextManager[object]:
        """Wait for the others, and keep them waiting; charge what broken and dead calls left behind."""
        file: FileIO | None = None
        try:
            file = exclusive_lock(self._path)
            with self._lock, translated(self._path):
                self._transactions.keep_out_others(file)
                if self._transactions.locks is not None and not self._transactions.broken:
                    self.forfeit("interrupted")
                    self._spend_for_dead()
            return file  # noqa: TRY300 - an interrupt here must close it too
        except BaseException:
            if file is not None:
                file.close()
            raise

    def pending(self) -> list[int]:
        """Return which releases wait for a revision."""
        with self._lock, self._transactions.resolved() as database:
            return database.pending()

    def pending_outcome(self, release: int) -> Pending | None:
        """Return what waits for a revision."""
        with self._lock, self._transactions.resolved() as database:
            return database.pending_outcome(release)

    def answers(self, last: int | None = None) -> Iterator[Answer]:
        """Yield what was published: the file's, then the misses that wait to be written."""
        with self._reading() as database:
            misses = self._transactions.session.misses
            unwritten = [answer for entry in misses for answer in answers_in(entry)]
            if last is not None:
                written = database.last_answers(max(0, last - len(unwritten)))
                return iter((written + unwritten)[-last:] if last else [])
            number = database.state().last_entry  # what comes later may hold what waits now
        return chain(chain.from_iterable(map(answers_in, self._entries_until(number))), unwritten)

    def count(self) -> int:
        """Return how many answers are written, or wait to be."""
        with self._reading() as database:
            unwritten = sum(map(count_of, self._transactions.session.misses))
            number = database.state().last_entry
        return unwritten + sum(map(count_of, self._entries_until(number)))

    def published(self, asked: Sequence[QuestionId], most: int = 1) -> list[tuple[Answer, ...]]:
        """Return what each question published when it last hit, also in another session."""
        with self._reading() as database:
            return database.index.of_questions(asked, most)

    def published_keys(self, asked: QuestionId, keys: Sequence[object]) -> dict[int, Answer]:
        """Return what a question about keys published for those that hit, also in another session."""
        with self._reading() as database:
            return database.index.of_keys(asked, keys)

    @contextmanager
    def _reading(self) -> Iterator[Database]:
        """Return the database, to be read while the session is open."""
        with self._lock:
            if self._closed:
                msg = "this session is closed: open another one on the same ledger to read its transcript"
                raise NotAllowed(msg)
            with self._transactions.resolved() as database:
                yield database

    def entries(self) -> Iterator[Entry]:
        """Yield all entries that are written."""
        with self._lock, self._transactions.resolved() as database:
            number = database.state().last_entry
        return self._entries_until(number)

    def _entries_until(self, last: int) -> Iterator[Entry]:
        """Yield the entries up to a number, one by one, leaving the ledger free in between."""
        rows: Iterator[Row] | None = None
        while True:
            with self._lock, self._transactions.resolved() as database:
                rows = rows or database.rows()
                row = next(rows, None)
            if row is None or row[0] > last:
                return
            yield entry_of(row[2])

    def since(self, number: int) -> Tail:
        """Return the entries written after a number, and where they end; what waits to be are misses."""
        with self._lock, self._transactions.resolved() as database:
            rows = list(database.rows(number))
        return (rows[-1][0] if rows else number), [entry_of(row[2]) for row in rows]

    def hash_at(self, number: int) -> bytes | None:
        """Return the hash of an entry, if there is one."""
        with self._lock, self._transactions.resolved() as database:
            return database.hash_at(number)

    def close(self, patience: float | None = None) -> None:
        """Write waiting misses, let go of what is held back, and close the file."""
        with self._lock:
            if self._closed:
                return
            try:
                if patience is not None:
                    self._database.hurry(patience)
                if not self._transactions.broken:
                    self._remove_session()
            finally:
                self._transactions.close()
                self._database.close()
                self._closed = True

    def _remove_session(self) -> None:
        transactions = self._transactions
        with transactions.fatal():
            transactions.resolve()
            if transactions.session.reserved is not None and self._meters[0].individual:
                return  # it charges, and nobody has the exclusive lock: who opens the ledger next does it
            self.forfeit("interrupted")
            transactions.remove_session()
