"""A ledger in a SQLite file: survives crashes, and serves several processes.

What a session may spend next is held back in the file before the data is touched. A miss leaves it held for the
next call, so a run of misses needs no disk sync; they are written with the next hit, every thousand or at closing.
A hit is one transaction: charge, published outcome, and what is held back for the next call.
"""

from __future__ import annotations

import sqlite3
import threading
import uuid
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from operator import ge
from typing import TYPE_CHECKING, final

from targetcharge.errors import BudgetSpent, LedgerError, NotAllowed
from targetcharge.ledger.entries import DeltaSpent, Entry, Restored, Spent, Sums, canonical
from targetcharge.ledger.ledger import Ledger, Most, Settlement
from targetcharge.ledger.room import already_published, check, load
from targetcharge.ledger.sqlite.alone import alone
from targetcharge.ledger.sqlite.history import History
from targetcharge.ledger.sqlite.numbering import Block
from targetcharge.ledger.sqlite.others import Others
from targetcharge.ledger.sqlite.place import Place
from targetcharge.ledger.sqlite.store import Held, State, Store
from targetcharge.ledger.sqlite.tenancy import Tenancy
from targetcharge.ledger.terms import Terms
from targetcharge.numerics.rounding import grains_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from io import FileIO
    from pathlib import Path

    from targetcharge.accounting.meter import Meter
    from targetcharge.ledger.answer import Answer
    from targetcharge.ledger.entries import Pending
    from targetcharge.ledger.ledger import Tail


@final
class SqliteLedger(Ledger):
    """One session's access to a ledger file."""

    def __init__(self, path: Path, restored: tuple[int, str] | None = None) -> None:
        """Connect, making the file if there is none; `start` opens it for business.

        Args:
            path: of the file.
            restored: the number and hash of the last entry ever published, if it is a restored copy.
        """
        self._restored = restored
        self._lock = threading.RLock()
        self._meters: tuple[Meter, ...] = ()
        self._tenancy: Tenancy | None = None
        self._held = Held((), 0)
        self._reserved: Most | None = None
        self._misses: list[Entry] = []
        self._block = Block()
        self._distrust = ""
        self._broken = self._closed = False
        self._place = Place(path)
        with self._place.translated():
            self._store = Store(self._place.path)
            self._new = self._store.empty()
        self._history = History(self._store, self._lock, self._place)
        self._others = Others(self._store, self._place.path)

    def terms(self) -> Terms | None:
        """Return what the file was made for; None if it is new."""
        with self._place.translated():
            return None if self._new else Terms.of(self._store.state().fields)

    def start(self, terms: Terms, meters: tuple[Meter, ...]) -> None:
        """Open for business, with the meters that belong to the terms."""
        self._meters = meters
        with self._place.translated():
            with self._store.transaction():
                if self._store.empty():
                    self._create(terms)
            if self._new:
                self._store.checkpoint()  # a copy of the file without its WAL must not look like a new ledger
            Terms.of(self._store.state().fields).check(terms, self._place.path)
            self._distrust = self._trust()
            if not self._distrust:
                self._tenancy = Tenancy(self._place.path)
                self._others.own = self._tenancy.name
                self._commit(lambda state: self._hold(state, self._nothing))
                self._place.settle_in()
                with self.alone() if self._meters[0].individual else nullcontext():
                    self._bury()
            self._refresh()

    def _create(self, terms: Terms) -> None:
        self._place.refuse_to_start_anew()
        header = canonical({**terms.plain(), "ledger": uuid.uuid4().hex})
        self._store.create(header, len(terms.capacities))
        self._place.testify(self._store.state())

    def _trust(self) -> str:
        """Return why this file must not be trusted, if so; take the owner's word that it is complete."""
        why = self._place.distrust(self._store, self._restored)
        if why and self._restored is not None:
            self._commit(lambda state: self._store.append(state, [Restored(state.number)]), testify=False)
            self._place.testify(self._store.state(), anew=True)
            return ""
        return why

    @property
    def meters(self) -> tuple[Meter, ...]:
        """Return the meters, with what other processes charged meanwhile."""
        with self._lock, self._place.translated():
            if not self._closed:
                self._refresh()
        return self._meters

    def _refresh(self, state: State | None = None) -> None:
        sums = (state or self._store.state()).sums
        if self._distrust:
            sums = Sums(tuple(meter.tariff.capacity for meter in self._meters), sums.hits, sums.delta)
        load(self._meters, sums)

    def reserve(self, most: Most) -> None:
        """Hold back what the call could charge: in the file before this returns."""
        with self._lock:
            try:
                tenancy = self._open_tenancy()
                if self._reserved is not None:
                    self.forfeit("interrupted")
                self._hold_back(tenancy, most)
            except (sqlite3.Error, OSError) as error:
                raise self._place.failed(error) from None
            self._reserved = most

    def _hold_back(self, tenancy: Tenancy, most: Most) -> None:
        try:
            while not self._holds(tenancy, most):
                tenancy.stop()
                self._bury()
                self._others.take_back(self._nothing)
        except BaseException:
            tenancy.stop()
            raise

    def _open_tenancy(self) -> Tenancy:
        if self._distrust:
            raise BudgetSpent(self._distrust, asked=1.0, left=0.0)
        if self._broken or self._tenancy is None:
            msg = f"the ledger {self._place.path} is closed after an error: open a new session on it"
            raise LedgerError(msg)
        self._place.check()
        return self._tenancy

    @property
    def _nothing(self) -> Held:
        return Held((0,) * len(self._meters), 0)

    def _holds(self, tenancy: Tenancy, most: Most) -> bool:
        """Return whether the call is covered; False if that depends on what other tenants hold."""
        if not tenancy.start():
            self._held = self._nothing
            tenancy.accept()  # after forgetting: an interrupt in between must not bring back what was taken
        if all(map(ge, self._held.units, most.units)) and not most.delta and self._block.left >= most.answers:
            return True
        others = False

        def top_up(state: State) -> State:
            nonlocal others
            self._refresh(state)
            check(self._meters, most)  # first: what no miss of the others could make room for is refused at once
            held = self._others.held(self._nothing)
            others = any(held)
            check(self._meters, most, held)
            spent = [DeltaSpent(grains_up(most.delta))] if most.delta else []
            return self._hold(self._store.append(state, spent), Held(most.units, most.count), seqs=most.answers)

        try:
            self._commit(top_up)
        except BudgetSpent:
            if not others:
                raise
            return False
        return True

    def _bury(self) -> None:
        self._others.bury(self._commit, spare_idle=self._meters[0].individual)

    def _hold(self, state: State, held: Held, seqs: int = 0) -> State:
        """Write what this tenant holds back; take a block of seqs if too few are left."""
        if self._tenancy is not None:
            self._store.hold(self._tenancy.name, held)
        return replace(state, next_seq=self._block.take(state.next_seq, seqs))

    def number(self, count: int = 1) -> int:
        """Return the next seq of this session's block."""
        return self._block.next(count)

    def settle(self, settlement: Settlement) -> None:
        """Make hits, sheets and pending outcomes durable; keep misses for later."""
        with self._lock:
            try:
                if settlement.waits:
                    self._misses += settlement.entries
                else:
                    self._settle_now(settlement)
            except NotAllowed:
                self._end_call()  # nothing was published, so nothing is charged
                raise
            self._end_call()

    def _end_call(self) -> None:
        self._reserved = None
        self.rest()

    def rest(self) -> None:
        """Let others take what this session holds back, unless an interrupted call has yet to pay with it."""
        if self._tenancy is not None and self._reserved is None:
            self._tenancy.stop()

    def _settle_now(self, settlement: Settlement) -> None:
        most = self._reserved

        def record(state: State) -> State:
            if settlement.closes is not None and not self._store.remove_pending(settlement.closes):
                raise already_published(settlement.closes)
            if settlement.pending is not None:
                self._store.add_pending(settlement.pending)
            state = self._store.append(state, settlement.entries)
            self._refresh(state)
            return self._hold(state, self._next(most))

        with self._fatal():
            self._commit(record, ends_call=True)

    def _next(self, most: Most | None) -> Held:
        """Return what to hold back for a following call: one hit, if there is room for it."""
        if most is not None:
            one = replace(most, count=1, delta=0.0, answers=0)
            with suppress(BudgetSpent):
                check(self._meters, one, self._others.held(self._nothing))
                return Held(one.units, 1)
        return self._nothing

    def forfeit(self, algorithm: str) -> None:
        """Spend what is held back for the call that broke."""
        with self._lock:
            most = self._reserved
            if most is None or self._broken:
                return
            spent, nothing = Spent("failed", most.units, most.count, algorithm), self._nothing
            with self._fatal():
                self._commit(lambda now: self._hold(self._store.append(now, [spent]), nothing), ends_call=True)
            self._end_call()

    def _commit(self, work: Callable[[State], State], *, ends_call: bool = False, testify: bool = True) -> None:
        """Write waiting misses and what `work` does in one transaction; then tell the witness.

        If the reply to COMMIT is lost, the file is read again: what it holds is what happened. Meanwhile nothing
        counts as held back: this session may think that it holds less than the file says, never more.

        Args:
            work: writes, and returns the state after it.
            ends_call: whether the running call needs its reservation no longer.
            testify: whether to tell the witness.
        """
        self._place.check()
        waiting, block, held = tuple(self._misses), self._block.copy(), self._held
        self._held = self._nothing
        before: State | None = None
        after: State | None = None
        try:
            with self._store.transaction():
                before = self._store.state()
                changed = work(self._store.append(before, waiting))
                self._store.save(changed)
                after = changed
        except BaseException as error:
            if before is None or after is None or not self._happened(before, after):
                self._block = block
                if after is None:
                    self._held = held
                raise
            if not isinstance(error, sqlite3.Error):
                self._committed(after, len(waiting), ends_call=ends_call, testify=testify)
                raise
        self._committed(after, len(waiting), ends_call=ends_call, testify=testify)

    def _happened(self, before: State, after: State) -> bool:
        """Return whether a commit without a reply is in the file.

        One that wrote no entries leaves no trace there; as nothing counts as held back, it need not have happened.
        """
        return after.number > before.number and self._store.hash_at(after.number) == after.head

    def _committed(self, state: State, misses: int, *, ends_call: bool, testify: bool) -> None:
        del self._misses[:misses]
        if ends_call:
            self._reserved = None
        if self._tenancy is not None:
            self._held = self._store.tenants().get(self._tenancy.name, self._nothing)
        self._refresh(state)
        if testify:
            self._place.testify(state)

    def pending(self) -> list[int]:
        """Return which releases wait for a revision."""
        return self._history.pending()

    def kept(self, release: int) -> Pending | None:
        """Return what waits for a revision."""
        return self._history.kept(release)

    def answers(self, last: int | None = None) -> Iterator[Answer]:
        """Yield what was published: the file's, then the misses that wait to be written."""
        with self._lock:
            self._check_open()
            return self._history.answers(self._misses, last)

    def _check_open(self) -> None:
        if self._closed:
            msg = "this session is closed: open another one on the same ledger to read its transcript"
            raise NotAllowed(msg)

    def count(self) -> int:
        """Return how many answers there are."""
        with self._lock:
            self._check_open()
            return self._history.count(self._misses)

    def entries(self) -> Iterator[Entry]:
        """Yield all entries that are written."""
        return self._history.entries()

    def since(self, number: int) -> Tail:
        """Return what was written after an entry; what waits to be are misses."""
        return self._history.since(number)

    def hash_at(self, number: int) -> bytes | None:
        """Return the hash of an entry."""
        return self._history.hash_at(number)

    def alone(self) -> AbstractContextManager[object]:
        """Wait for the others, and keep them waiting; charge what broken and dead calls left behind."""
        file: FileIO | None = None
        try:
            file = alone(self._place.path)
            with self._lock, self._place.translated():
                if self._tenancy is not None and not self._broken:
                    self.forfeit("interrupted")
                    self._bury()
            return file  # noqa: TRY300 - an interrupt here must close it too
        except BaseException:
            if file is not None:
                file.close()
            raise

    def close(self, patience: float | None = None) -> None:
        """Write waiting misses, let go of what is held back, and close the file."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                if patience is not None:
                    self._store.hurry(patience)
                if self._reserved is not None and self._meters[0].individual:
                    self._broken = True  # it charges, and nobody is alone: who opens the ledger next does it
                self.forfeit("interrupted")
                if self._tenancy is not None and not self._broken:
                    with self._fatal():
                        self._commit(partial(self._leave, self._tenancy.name))
                    self._tenancy.leave()
            finally:
                if self._tenancy is not None:
                    self._tenancy.close_files()
                self._tenancy = None
                self._store.close()

    def _leave(self, tenant: str, state: State) -> State:
        self._store.remove_tenant(tenant)
        return replace(state, next_seq=self._block.give_back(state.next_seq))

    @contextmanager
    def _fatal(self) -> Iterator[None]:
        """After the data was touched: what cannot be written stays spent, and this access to the ledger ends."""
        try:
            with self._place.translated():
                yield
        except LedgerError:
            self._broken = True
            if self._tenancy is not None:
                self._tenancy.close_files()  # to the others this tenant is dead, and what it holds is spent
            raise
