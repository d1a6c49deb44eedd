"""Commits: one session's transactions, and what it remembers between them.

What a session remembers is its standing: misses that wait to be written, the running call's reservation, what it
holds back, the seqs that it may use. A transaction changes the standing as a whole. The one after it is made
before COMMIT and kept as an intent, and takes effect by one assignment, once the file is known to hold the
transaction. Whatever interrupts that, and if the reply to COMMIT is lost, the intent is still there, and the next
use of the ledger settles it from the file before it decides anything: so nothing is written twice, and nothing
that was written is forgotten.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

from targetcharge.errors import LedgerError
from targetcharge.ledger.sqlite.alone import is_alone
from targetcharge.ledger.sqlite.numbering import Block
from targetcharge.ledger.sqlite.state import Held, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import FileIO

    from targetcharge.ledger.entries import Entry
    from targetcharge.ledger.ledger import Most
    from targetcharge.ledger.sqlite.place import Place
    from targetcharge.ledger.sqlite.store import Store
    from targetcharge.ledger.sqlite.tenancy import Tenancy


@final
@dataclass(slots=True)
class Standing:
    """What a session remembers between two transactions.

    Attributes:
        misses: answers that were published and wait to be written.
        reserved: what the running call may charge; None if no call runs that has yet to pay.
        held: what the session holds back: no more than the file says.
        block: the seqs that it may use.
    """

    misses: list[Entry]
    reserved: Most | None
    held: Held
    block: Block


@final
class Draft:
    """A transaction that is being written.

    Attributes:
        state: of the ledger, after what was written so far.
        held: what the session holds back then.
        block: the seqs that it may use then.
    """

    def __init__(self, store: Store, standing: Standing) -> None:
        """Begin where the ledger stands."""
        self._store = store
        self.state = store.state()
        self.start = self.state.number
        self.held, self.block = standing.held, standing.block

    def append(self, entries: Sequence[Entry]) -> None:
        """Write entries."""
        self.state = self._store.append(self.state, entries)

    def hold(self, tenant: str, held: Held, seqs: int = 0) -> None:
        """Write what the session holds back; take a block of seqs if fewer are left."""
        self._store.hold(tenant, held)
        self.held = held
        self.block, next_seq = self.block.taken(self.state.next_seq, seqs)
        self.state = replace(self.state, next_seq=next_seq)

    def leave(self, tenant: str) -> None:
        """Let go of what the session holds back, and of the seqs that it has not used."""
        self._store.remove_tenant(tenant)
        self.held = Held((), 0)
        self.state = replace(self.state, next_seq=self.block.given_back(self.state.next_seq))


@final
@dataclass(frozen=True)
class Intent:
    """What a transaction is about to do.

    Attributes:
        state: of the ledger after it.
        traced: whether it wrote entries: then the file tells whether it happened.
        standing: of the session after it.
        testify: whether the witnesses are to be told.
    """

    state: State
    traced: bool
    standing: Standing
    testify: bool


@final
class Commits:
    """One session's access to the database, for writing. Whoever uses it has the ledger's lock.

    Attributes:
        standing: what the session remembers; right once `settle_doubt` was called.
        intent: what the last transaction was about to do, until it is known whether it did.
        tenancy: the session's lock files, while it has a row in the database.
        alone: the lock by which a call of this session was last alone with the ledger.
        broken: whether it has ended after an error.
    """

    def __init__(self, store: Store, place: Place, nothing: Held) -> None:
        """Write to a store that is in this place, holding nothing back."""
        self._store = store
        self._place = place
        self._nothing = nothing
        self.intent: Intent | None = None
        self._replied = self._busy = False
        self.standing = Standing([], None, nothing, Block())
        self.tenancy: Tenancy | None = None
        self.alone: FileIO | None = None
        self.broken = False

    @property
    def tenant(self) -> str:
        """Return the name of the session's row; empty while it has none."""
        return self.tenancy.name if self.tenancy is not None else ""

    def commit(self, work: Callable[[Draft], None], *, ends_call: bool = False, testify: bool = True) -> None:
        """Write waiting misses and what `work` does in one transaction; then tell the witnesses.

        Args:
            work: writes.
            ends_call: whether the running call needs its reservation no longer.
            testify: whether to tell the witnesses.
        """
        self._place.check()
        self.settle_doubt()
        before = self.standing

        def write() -> None:
            draft = Draft(self._store, before)
            self._check_row()
            self.check_alone()
            draft.append(before.misses)
            work(draft)
            self._store.save(draft.state)
            reserved = None if ends_call else before.reserved
            standing = Standing([], reserved, draft.held, draft.block)
            self.intent = Intent(draft.state, draft.state.number > draft.start, standing, testify)

        self._replied = False
        try:
            self.write(write)
            self._replied = True
        except sqlite3.Error:
            self.settle_doubt()
            if self.standing is before:
                raise
        self.settle_doubt()

    def write(self, work: Callable[[], None]) -> None:
        """Do something in a write transaction, durably or not at all."""
        try:
            self._busy = True
            with self._store.transaction():
                work()
        finally:
            self._busy = False

    def settle_doubt(self) -> None:
        """Find out what became of the last transaction, if that is not known, and go on from there.

        One that left no trace in the file counts as undone, except that what is held back is read from there: the
        seqs that it may have taken are not used. Nothing is done for a signal's handler that looks at the ledger
        in the middle of a transaction, or of this.
        """
        if self._busy or not (self.intent or self._store.in_transaction):
            return
        try:
            self._busy = True
            self._store.roll_back()
            if self.intent is not None:
                self._settle(self.intent)
        finally:
            self._busy = False

    def _settle(self, intent: Intent) -> None:
        if self._replied or self._is_written(intent):
            self.standing = intent.standing
            if intent.testify:
                self._place.testify(intent.state)
        else:
            self.standing.held = self._store.held_by(self.tenant) or self._nothing
        self.intent = None

    def _is_written(self, intent: Intent) -> bool:
        return intent.traced and self._store.hash_at(intent.state.number) == intent.state.head

    def _check_row(self) -> None:
        """Refuse to write if the others took this session for dead and spent what it held back."""
        if self.tenancy is not None and self._store.held_by(self.tenancy.name) is None:
            raise self._given_up()

    def check_alone(self) -> None:
        """Refuse to go on if this session is alone by a lock that others do not know any more."""
        if self.alone is not None and not self.alone.closed and not is_alone(self._place.path, self.alone):
            raise self._given_up()

    def _given_up(self) -> LedgerError:
        self.give_up()
        return LedgerError(
            f"the lock files of this session on the ledger {self._place.path} were removed while it was open: no"
            " answer is given, and what it held back is spent. Open a new session"
        )

    def give_up(self) -> None:
        """End: to the others this session is dead, and what it holds back is spent."""
        self.broken = True
        if self.tenancy is not None:
            self.tenancy.close_files()

    @contextmanager
    def fatal(self) -> Iterator[None]:
        """After the data was touched: what cannot be written stays spent, and this access to the ledger ends."""
        try:
            with self._place.translated():
                yield
        except LedgerError:
            self.give_up()
            raise

    @contextmanager
    def settled(self) -> Iterator[Store]:
        """Return the database, to be read outside of transactions: only what is durable may be seen."""
        with self._place.translated():
            self.settle_doubt()
            yield self._store
