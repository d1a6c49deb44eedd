"""A ledger in a SQLite file: survives crashes, and serves several processes.

What a session may spend next is held back in the file before the data is touched. A miss leaves it held for the
next call, so a run of misses needs no disk sync; they are written with the next hit, every thousand or at closing.
A hit is one transaction: charge, published outcome, and what is held back for the next call.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import nullcontext, suppress
from dataclasses import replace
from operator import ge
from typing import TYPE_CHECKING, final

from targetcharge.errors import BudgetSpent, LedgerError, NotAllowed, TargetChargeError
from targetcharge.ledger.entries import DeltaSpent, Entry, Restored, Spent, Sums
from targetcharge.ledger.ledger import Ledger, Most, Settlement
from targetcharge.ledger.room import already_published, check, load
from targetcharge.ledger.sqlite.alone import alone
from targetcharge.ledger.sqlite.commits import Commits, Draft
from targetcharge.ledger.sqlite.creation import connect
from targetcharge.ledger.sqlite.history import History
from targetcharge.ledger.sqlite.others import Others
from targetcharge.ledger.sqlite.place import Place
from targetcharge.ledger.sqlite.restored import check_named, distrust
from targetcharge.ledger.sqlite.state import Held, State
from targetcharge.ledger.sqlite.tenancy import Tenancy, sweep
from targetcharge.ledger.sqlite.totals import check_totals, verify_entries
from targetcharge.ledger.sqlite.witness import Recalled
from targetcharge.ledger.terms import Terms
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


@final
class SqliteLedger(Ledger):
    """One session's access to a ledger file."""

    def __init__(
        self, path: Path, terms: Terms, meters: tuple[Meter, ...], restored: tuple[int, str] | None = None
    ) -> None:
        """Open a ledger, which is made if there is none.

        Args:
            path: of the file.
            terms: what it must have been made for; `terms_at` says what it was made for.
            meters: those that belong to the terms.
            restored: the number and hash of the last entry ever published, if it is a restored copy.
        """
        self._lock = threading.RLock()
        self._meters = meters
        self._nothing = Held((0,) * len(meters), 0)
        self._distrust = ""
        self._closed = False
        path = path.resolve()  # as SQLite does: its log lies beside the file itself
        self._store = connect(path, terms)
        self._place = Place(path)
        self._commits = Commits(self._store, self._place, self._nothing)
        self._history = History(self._commits, self._lock)
        self._others = Others(self._store, self._commits, path)
        try:
            with self._place.translated():
                self._open(terms, restored)
        except BaseException:
            self.close()
            raise

    def _open(self, terms: Terms, restored: tuple[int, str] | None) -> None:
        Terms.of(self._store.state().fields).check(terms, self._place.path)
        self._distrust = self._trust(restored)
        if not self._distrust:
            self._place.testify(self._store.state(), opening=True)
            self._move_in()
            self._place.settle_in()
            with self.alone() if self._meters[0].individual else nullcontext():
                self._bury()
        self._refresh()

    def _trust(self, restored: tuple[int, str] | None) -> str:
        """Return why this file must not be trusted, if so; take the owner's word that it is complete."""
        path = self._place.path
        recalled = Recalled.of(path, self._store.state().ledger)
        with self._store.reading():
            if restored is not None:
                check_named(path, self._store, recalled, restored)
            why = distrust(self._store, recalled, self._place.inode)
            if not why:
                check_totals(path, self._store, recalled)
            elif restored is not None:
                verify_entries(path, self._store)
        if why and restored is not None:
            self._commits.commit(lambda draft: draft.append([Restored(draft.state.number)]), testify=False)
            self._place.testify(self._store.state(), anew=True)
            return ""
        return why

    def _move_in(self) -> None:
        """Make lock files and a row for this session, and remove what others have left; all of it or nothing."""
        try:
            self._commits.commit(self._arrive)
        except BaseException:
            with suppress(sqlite3.Error, OSError):
                self._commits.settle_doubt()
                tenancy = self._commits.tenancy
                if tenancy is not None and self._store.held_by(tenancy.name) is None:
                    self._commits.tenancy = None
                    tenancy.leave()
            raise

    def _arrive(self, draft: Draft) -> None:
        self._commits.tenancy = Tenancy(self._place.path)
        draft.hold(self._commits.tenant, self._nothing)
        sweep(self._place.path, self._store.tenants())

    @property
    def meters(self) -> tuple[Meter, ...]:
        """Return the meters, with what other processes charged meanwhile."""
        with self._lock, self._place.translated():
            if not self._closed:
                self._commits.settle_doubt()
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
                self._commits.settle_doubt()
                if self._commits.standing.reserved is not None:
                    self.forfeit("interrupted")
                self._hold_back(tenancy, most)
            except (sqlite3.Error, OSError) as error:
                raise self._place.failed(error) from None
            self._commits.standing.reserved = most

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
        tenancy = self._commits.tenancy
        if self._commits.broken or tenancy is None:
            msg = f"the ledger {self._place.path} is closed after an error: open a new session on it"
            raise LedgerError(msg)
        self._place.check()
        return tenancy

    def _holds(self, tenancy: Tenancy, most: Most) -> bool:
        """Return whether the call is covered; False if that depends on what other tenants hold."""
        standing = self._commits.standing
        if not tenancy.start():
            standing.held = self._nothing
            tenancy.accept()  # after forgetting: an interrupt in between must not bring back what was taken
        if (
            all(map(ge, standing.held.units, most.units))
            and not most.delta
            and standing.block.left >= most.answers
        ):
            return True
        others = False

        def top_up(draft: Draft) -> None:
            nonlocal others
            self._refresh(draft.state)
            check(self._meters, most)  # first: what no miss of the others could make room for is refused at once
            held = self._others.held(self._nothing)
            others = any(held)
            check(self._meters, most, held)
            draft.append([DeltaSpent(grains_up(most.delta))] if most.delta else [])
            draft.hold(self._commits.tenant, Held(most.units, most.count), seqs=most.answers)

        try:
            self._commits.commit(top_up)
        except BudgetSpent:
            if not others:
                raise
            return False
        return True

    def _bury(self) -> None:
        self._others.bury(spare_idle=self._meters[0].individual)

    def number(self, count: int = 1) -> int:
        """Return the next seq of this session's block."""
        return self._commits.standing.block.next(count)

    def settle(self, settlement: Settlement) -> None:
        """Make hits, sheets and pending outcomes durable; keep misses for later."""
        with self._lock:
            try:
                if settlement.waits:
                    self._keep(settlement.entries)
                else:
                    self._settle_now(settlement)
            except NotAllowed:
                self._end_call()  # nothing was published, so nothing is charged
                raise
            self._end_call()

    def _keep(self, misses: Sequence[Entry]) -> None:
        if self._commits.alone is not None:
            with self._commits.fatal():
                self._commits.check_alone()
        self._commits.standing.misses += misses

    def _end_call(self) -> None:
        self._commits.standing.reserved = None
        self.rest()

    def rest(self) -> None:
        """Let others take what this session holds back, unless an interrupted call has yet to pay with it."""
        commits = self._commits
        if commits.intent is not None:
            with self._lock, suppress(sqlite3.Error, OSError, TargetChargeError):
                commits.settle_doubt()
        if commits.tenancy is not None and commits.standing.reserved is None and commits.intent is None:
            commits.tenancy.stop()

    def _settle_now(self, settlement: Settlement) -> None:
        most = self._commits.standing.reserved

        def record(draft: Draft) -> None:
            if settlement.closes is not None and not self._store.remove_pending(settlement.closes):
                raise already_published(settlement.closes)
            if settlement.pending is not None:
                self._store.add_pending(settlement.pending)
            draft.append(settlement.entries)
            self._refresh(draft.state)
            draft.hold(self._commits.tenant, self._next(most))

        with self._commits.fatal():
            self._commits.commit(record, ends_call=True)

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
            if self._commits.broken:
                return
            with self._commits.fatal():
                self._commits.settle_doubt()
                most = self._commits.standing.reserved
                if most is None:
                    return
                spent = Spent("failed", most.units, most.count, algorithm)
                self._commits.commit(lambda draft: self._give_up(draft, spent), ends_call=True)
            self._end_call()

    def _give_up(self, draft: Draft, spent: Spent) -> None:
        draft.append([spent])
        draft.hold(self._commits.tenant, self._nothing)

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
            return self._history.answers(last)

    def _check_open(self) -> None:
        if self._closed:
            msg = "this session is closed: open another one on the same ledger to read its transcript"
            raise NotAllowed(msg)

    def count(self) -> int:
        """Return how many answers there are."""
        with self._lock:
            self._check_open()
            return self._history.count()

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
                self._commits.alone = file
                if self._commits.tenancy is not None and not self._commits.broken:
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
            try:
                if patience is not None:
                    self._store.hurry(patience)
                if not self._commits.broken:
                    self._move_out()
            finally:
                if self._commits.tenancy is not None:
                    self._commits.tenancy.close_files()
                self._commits.tenancy = None
                self._store.close()
                self._closed = True

    def _move_out(self) -> None:
        commits, tenancy = self._commits, self._commits.tenancy
        with commits.fatal():
            commits.settle_doubt()
            if commits.standing.reserved is not None and self._meters[0].individual:
                return  # it charges, and nobody is alone: who opens the ledger next does it
            self.forfeit("interrupted")
            if tenancy is not None:
                commits.commit(lambda draft: draft.leave(tenancy.name))
                tenancy.leave()
