"""Transactions of one session on a ledger, and what it remembers between them.

A session remembers misses that wait to be written, the running call's reservation, what it holds back, and the
seqs that it may use. A transaction changes this state as a whole. The one after it is made before COMMIT and kept
as an intent, and takes effect by one assignment, once the file is known to hold the transaction. Whatever
interrupts that, and if the reply to COMMIT is lost, the intent is still there, and the next use of the ledger
resolves it from the file before it decides anything: so nothing is written twice, and nothing that was written is
forgotten.
"""

from __future__ import annotations

import sqlite3
import weakref
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, final

from targetcharge.errors import LedgerError
from targetcharge.ledger.entries import Spent
from targetcharge.ledger.sqlite.database import translated
from targetcharge.ledger.sqlite.locks import OtherLocks, OwnLocks, holds_exclusive_lock, remove_left_over
from targetcharge.ledger.state import LedgerState, Reservation, SeqBlock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import FileIO

    from targetcharge.ledger.entries import Entry
    from targetcharge.ledger.ledger import Most
    from targetcharge.ledger.sqlite.database import Database
    from targetcharge.ledger.sqlite.witness import Witnesses


@final
@dataclass(slots=True)
class SessionState:
    """What a session remembers between two transactions.

    Attributes:
        misses: answers that were published and wait to be written.
        reserved: what the running call may charge; None if no call runs that has yet to pay.
        held: what the session holds back: no more than the file says.
        block: the seqs that it may use.
    """

    misses: list[Entry]
    reserved: Most | None
    held: Reservation
    block: SeqBlock


@final
class Draft:
    """A transaction that is being written: the ledger's state and the session's after what was written so far."""

    def __init__(self, database: Database, session: SessionState) -> None:
        """Begin where the ledger stands."""
        self._database = database
        self.state = database.state()
        self.start = self.state.last_entry
        self.held, self.block = session.held, session.block

    def append(self, entries: Sequence[Entry]) -> None:
        """Write entries."""
        self.state = self._database.append(self.state, entries)

    def hold(self, session: str, held: Reservation, seqs: int = 0) -> None:
        """Write what the session holds back; take a block of seqs if fewer are left."""
        self._database.hold(session, held)
        self.held = held
        self.block, next_seq = self.block.extended(self.state.next_seq, seqs)
        self.state = replace(self.state, next_seq=next_seq)

    def remove_session(self, session: str) -> None:
        """Let go of what the session holds back, and of the seqs that it has not used."""
        self._database.remove_session(session)
        self.held = Reservation((), 0)
        self.state = replace(self.state, next_seq=self.block.given_back(self.state.next_seq))


@final
@dataclass(frozen=True)
class Intent:
    """What a transaction is about to do.

    Attributes:
        state: of the ledger after it.
        traced: whether it wrote entries: then the file tells whether it happened.
        session: what the session remembers after it.
        tell_witnesses: whether they are to be told.
    """

    state: LedgerState
    traced: bool
    session: SessionState
    tell_witnesses: bool


@final
class Transactions:
    """One session's access to the database, for writing. Whoever uses it has the ledger's lock.

    Attributes:
        session: what the session remembers; right once `resolve` was called.
        intent: what the last transaction was about to do, until it is known whether it did.
        locks: the session's lock files, while it has a row in the database.
        broken: whether it has ended after an error.
    """

    def __init__(self, database: Database, witnesses: Witnesses, nothing: Reservation) -> None:
        """Write to a database, holding nothing back."""
        self._database = database
        self._witnesses = witnesses
        self._nothing = nothing
        self.intent: Intent | None = None
        self._replied = self._busy = False
        self.session = SessionState([], None, nothing, SeqBlock())
        self.locks: OwnLocks | None = None
        self._exclusive: weakref.ref[FileIO] | None = None
        self.broken = False

    @property
    def name(self) -> str:
        """Return the name of the session's row; empty while it has none."""
        return self.locks.name if self.locks is not None else ""

    def add_session(self) -> None:
        """Make lock files and a row for this session, and remove files left over; all of it or nothing."""
        try:
            self.commit(self._make_locks)
        except BaseException:
            with suppress(sqlite3.Error, OSError):
                self.resolve()
                locks = self.locks
                if locks is not None and self._database.reservation(locks.name) is None:
                    self.locks = None
                    locks.remove()
            raise

    def _make_locks(self, draft: Draft) -> None:
        self.locks = OwnLocks(self._database.path)
        draft.hold(self.name, self._nothing)
        remove_left_over(self._database.path, self._database.reservations())

    def remove_session(self) -> None:
        """Write waiting misses, and remove the session's row and its lock files."""
        if self.locks is not None:
            self.commit(self._remove_row)
            self.locks.remove()

    def _remove_row(self, draft: Draft) -> None:
        draft.remove_session(self.name)

    def close(self) -> None:
        """Let go of the lock files: a session that still has a row has died, to the others."""
        if self.locks is not None:
            self.locks.close()
        self.locks = None

    def begin_call(self, most: Most) -> None:
        """Remember what the running call may charge."""
        self.session.reserved = most

    def finish_call(self) -> None:
        """Forget what the call could charge: it was settled, or spent."""
        self.session.reserved = None

    def keep(self, misses: Sequence[Entry]) -> None:
        """Remember misses that wait to be written."""
        if self._exclusive is not None:
            with self.fatal():
                self._check_exclusive()
        self.session.misses += misses

    def accept_loss(self, locks: OwnLocks) -> None:
        """Go on without what others took."""
        self.session.held = self._nothing
        locks.accept_loss()  # after forgetting: an interrupt in between must not bring back what was taken

    def keep_out_others(self, file: FileIO) -> None:
        """Remember the exclusive lock: what is written while it is held needs it.

        Only the block that holds it keeps it open: whoever is interrupted on the way to that block lets go of it.
        """
        self._exclusive = weakref.ref(file)

    def commit(
        self, work: Callable[[Draft], None], *, ends_call: bool = False, tell_witnesses: bool = True
    ) -> None:
        """Write waiting misses and what `work` does in one transaction; then tell the witnesses.

        With `ends_call` the running call needs its reservation no longer.
        """
        self._database.check_in_place()
        self.resolve()
        before = self.session
        self._replied = False
        try:
            self.write(partial(self._write_draft, work, ends_call=ends_call, tell_witnesses=tell_witnesses))
            self._replied = True
        except sqlite3.Error:
            self.resolve()
            if self.session is before:
                raise
        self.resolve()

    def _write_draft(self, work: Callable[[Draft], None], *, ends_call: bool, tell_witnesses: bool) -> None:
        before = self.session
        draft = Draft(self._database, before)
        self._check_row()
        self._check_exclusive()
        draft.append(before.misses)
        work(draft)
        self._database.save(draft.state)
        session = SessionState([], None if ends_call else before.reserved, draft.held, draft.block)
        self.intent = Intent(draft.state, draft.state.last_entry > draft.start, session, tell_witnesses)

    def write(self, work: Callable[[], None]) -> None:
        """Do something in a write transaction, durably or not at all."""
        try:
            self._busy = True
            with self._database.transaction():
                work()
        finally:
            self._busy = False

    def resolve(self) -> None:
        """Find out what became of the last transaction, if that is not known, and go on from there.

        One that left no trace in the file counts as undone, except that what is held back is read from there: the
        seqs that it may have taken are not used. Nothing is done for a signal's handler that looks at the ledger
        in the middle of a transaction, or of this.
        """
        if self._busy or not (self.intent or self._database.in_transaction):
            return
        try:
            self._busy = True
            self._database.roll_back()
            if self.intent is not None:
                self._resolve(self.intent)
        finally:
            self._busy = False

    def _resolve(self, intent: Intent) -> None:
        if self._replied or self._is_written(intent):
            self.session = intent.session
            if intent.tell_witnesses:
                self._witnesses.tell(intent.state)
        else:
            self.session.held = self._database.reservation(self.name) or self._nothing
        self.intent = None

    def _is_written(self, intent: Intent) -> bool:
        return intent.traced and self._database.hash_at(intent.state.last_entry) == intent.state.head

    def _check_row(self) -> None:
        """Refuse to write if the others took this session for dead and spent what it held back."""
        if self.locks is not None and self._database.reservation(self.locks.name) is None:
            raise self._lost_locks()

    def _check_exclusive(self) -> None:
        """Refuse to go on if this session keeps the others out by a lock that they do not know any more."""
        file = None if self._exclusive is None else self._exclusive()
        if file is not None and not file.closed and not holds_exclusive_lock(self._database.path, file):
            raise self._lost_locks()

    def _lost_locks(self) -> LedgerError:
        self.give_up()
        return LedgerError(
            f"the lock files of this session on the ledger {self._database.path} were removed while it was open:"
            " no answer is given, and what it held back is spent. Open a new session"
        )

    def give_up(self) -> None:
        """End: to the others this session is dead, and what it holds back is spent."""
        self.broken = True
        if self.locks is not None:
            self.locks.close()

    @contextmanager
    def fatal(self) -> Iterator[None]:
        """After the data was touched: what cannot be written stays spent, and this access to the ledger ends."""
        try:
            with translated(self._database.path):
                yield
        except LedgerError:
            self.give_up()
            raise

    @contextmanager
    def resolved(self) -> Iterator[Database]:
        """Return the database, to be read outside of transactions: only what is durable may be seen."""
        with translated(self._database.path):
            self.resolve()
            yield self._database

    def held_by_others(self) -> tuple[int, ...]:
        """Return what the other sessions hold back, on each meter."""
        others = self._database.reservations(but=self.name).values()
        return Reservation.total(others, len(self._nothing.grains)).grains

    def take_from_others(self) -> None:
        """Wait for the running calls of the other sessions, then take what they hold back."""
        for name in self._database.reservations(but=self.name):
            with OtherLocks(self._database.path, name) as locks:
                if locks.wait_for_call():
                    self.write(partial(self._take, name, locks))

    def _take(self, name: str, locks: OtherLocks) -> None:
        if self._database.reservation(name):
            locks.mark_taken()  # before the commit: it may hold less than it thinks, never more
            self._database.hold(name, self._nothing)

    def spend_for_dead(self, *, spare_idle: bool) -> None:
        """Spend what sessions held back that ended without closing.

        With `spare_idle` those that died between two calls spend nothing: where a broken call charges every unit,
        a kernel that is shut down in the evening would cost everybody a hit.
        """
        for name in self._database.reservations(but=self.name):
            with OtherLocks(self._database.path, name) as locks:
                if locks.died():
                    spend = not (spare_idle and locks.idle)
                    self.commit(partial(self._remove_dead, name, spend=spend))
                    locks.remove()

    def _remove_dead(self, name: str, draft: Draft, *, spend: bool) -> None:
        held = self._database.remove_session(name)
        if held and spend:
            draft.append([Spent("abandoned", held.grains, held.count)])
