"""Verification: what a ledger file says of itself, and whether it is what was written.

In full, every hash is computed again and the totals are added up again from the entries: that needs nothing but
the file. When a ledger is opened it takes no longer for many entries: its witnesses keep a digest of the header
and the totals as they saw them, and only the entries since (after a crash) are looked at.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from operator import sub
from typing import TYPE_CHECKING, final

from targetcharge.errors import LedgerError
from targetcharge.ledger.sqlite.database import Database
from targetcharge.ledger.sqlite.witness import WitnessRecords, distrust
from targetcharge.ledger.state import LedgerState, Reservation, Sums, added, tampered, verify_chain
from targetcharge.numerics.rounding import from_grains

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from targetcharge.ledger.entries import Entry
    from targetcharge.ledger.sqlite.witness import WitnessRecord
    from targetcharge.ledger.terms import Terms


@final
@dataclass(frozen=True)
class Inspection:
    """What a ledger file says of itself; public facts only.

    Attributes:
        terms: what it was made for.
        state: where it stands.
        held: what open sessions hold back; after a crash it will be spent.
        pending: how many releases wait for a revision.
        restored: why it counts as spent: it looks like a restored copy, or its secret offset is gone or altered.
            Empty if it does not.
        last: the last entries, oldest first.
    """

    terms: Terms
    state: LedgerState
    held: Reservation
    pending: int
    restored: str
    last: tuple[Entry, ...]

    @property
    def individual(self) -> bool:
        """Return whether each unit has a meter of its own."""
        return self.terms.charging == "individual"

    @property
    def roomiest(self) -> int:
        """Return which meter has the most hits left, of the declared kind: 0, unless there are alternatives."""
        terms, spent = self.terms, self.state.sums.spent
        rooms = zip(terms.capacities, spent, terms.typical, strict=True)
        left = [(capacity - used) // price for capacity, used, price in rooms]
        return left.index(max(left))

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

    def as_dict(self) -> dict[str, object]:
        """Return all facts but the entries, as plain data."""
        terms, state = self.terms, self.state
        names = (
            "meter", "query_epsilon", "order", "targets", "alternatives", "charging", "noise", "standard_deviation"
        )  # fmt: skip
        return {
            "budget": {"epsilon": terms.epsilon, "delta": terms.delta},
            "unit": terms.unit.plain(),
            **{name: getattr(terms, name) for name in names},
            "offset": asdict(terms.offset) if terms.offset is not None else None,
            "hits": state.sums.hits[self.roomiest],
            "hits_of_meters": state.sums.hits,
            "hits_left": self.hits_left,
            "held": self.held.count,
            "pending": self.pending,
            "computation_delta": {"spent": from_grains(state.sums.delta), "of": terms.computation_delta},
            "number": state.last_entry,
            "head": state.head.hex(),
            "restored": self.restored or None,
        }


class RestoredCopyError(LedgerError):
    """Every hash and every total of the ledger is right, and what was charged since it was copied is not in it."""


def inspect(path: Path, last: int = 0, *, unchecked: bool = False) -> Inspection:
    """Read a ledger without changing it.

    Args:
        path: of the file.
        last: how many of the last entries to read.
        unchecked: whether totals that were changed are told all the same, to a caller who verifies them.

    Raises:
        LedgerError: if there is none, it cannot be read, or its totals are not those that its witnesses saw.
    """
    with _reading(path, str(path)) as (database, records):
        state = database.state()
        restored = distrust(database, records)
        if not restored and not unchecked:
            check_totals(path, database, records)
        restored = lost_offset(database) or restored
        return Inspection(
            terms=state.terms,
            state=state,
            held=Reservation.total(database.reservations().values(), len(state.sums.spent)),
            pending=len(database.pending()),
            restored=restored,
            last=tuple(database.last_entries(last)),
        )


def verify(path: Path, name: str | None = None) -> int:
    """Return the number of entries of a ledger in which every hash and every total is right.

    Args:
        path: of the file.
        name: what errors call it, such as its name without the folders; its path if left out.

    Raises:
        LedgerError: naming the first entry that is not what was written, or saying that the secret offset is not.
        RestoredCopyError: if nothing was changed, and it looks like a restored copy.
    """
    name = str(path) if name is None else name
    with _reading(path, name) as (database, records):
        state = database.state()
        verify_chain(name, database.rows(), state)
        lost, restored = lost_offset(database), distrust(database, records)
    if lost:
        msg = f"{name}: {lost}"
        raise LedgerError(msg)
    if restored:
        msg = f"{name}: {restored}"
        raise RestoredCopyError(msg)
    return state.last_entry


def check_totals(path: Path, database: Database, records: WitnessRecords) -> None:
    """Refuse a ledger whose header or totals are not those that its witnesses saw; all of it if they did not look.

    Raises:
        LedgerError: naming what was changed.
    """
    state = database.state()
    seen = [record for record in records.about(state.ledger) if record.totals]
    if seen and all(_as_seen(path, database, state, record) for record in seen):
        return
    verify_chain(path, database.rows(), state)
    if seen:
        what = "its totals are the sum of its entries, and its witness beside it or in the state folder saw others"
        raise tampered(path, what)


def lost_offset(database: Database) -> str:
    """Return why a ledger whose terms have an offset must count as spent without it; empty if it need not."""
    state = database.state()
    if state.terms.offset is None:
        return ""
    offset = database.offset()
    if offset is not None and offset.opens(state.commitment):
        return ""
    return (
        f"the secret offset of this ledger {'is gone' if offset is None else 'was altered'}: no answer can carry"
        " it any more, and another one would cost the guarantee, so its budget counts as spent. Its transcript can"
        " be read. A copy that has the offset and ends at the same entry can take its place; or start a new ledger"
    )


def _as_seen(path: Path, database: Database, state: LedgerState, record: WitnessRecord) -> bool:
    """Return whether a witness saw these totals, but for what the entries since have added."""
    rows = database.rows(record.number)
    since = added(path, rows, state, record.number, bytes.fromhex(record.head))
    before = Sums(
        tuple(map(sub, state.sums.spent, since.spent)),
        tuple(map(sub, state.sums.hits, since.hits)),
        state.sums.delta - since.delta,
    )
    return state.digest(before) == record.totals


@contextmanager
def _reading(path: Path, name: str) -> Iterator[tuple[Database, WitnessRecords]]:
    """Read a ledger as it stands now, also while others write. The witnesses first: they must not be ahead."""
    try:
        with closing(_open(path, name)) as database:
            records = WitnessRecords.read(path.resolve(), database.state().ledger)
            with database.reading():
                yield database, records
    except (sqlite3.Error, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error  # which would repeat the path
        msg = f"the ledger {name} cannot be read: {reason}"
        raise LedgerError(msg) from None


def _open(path: Path, name: str) -> Database:
    if not path.is_file():
        msg = f"there is no ledger {name}"
        raise LedgerError(msg)
    database = Database(path, read_only=True)
    if database.is_empty():
        database.close()
        msg = f"{name} is empty: no session was opened on it"
        raise LedgerError(msg)
    return database
