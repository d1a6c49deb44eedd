"""Trust: whether a ledger is the file that was written to, or a copy that its owner vouches for.

A restored copy has forgotten charges, so it opens as spent until its owner names the last entry ever published.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from targetcharge.errors import LedgerError
from targetcharge.ledger.entries import Restored
from targetcharge.ledger.sqlite.creation import ledger_at
from targetcharge.ledger.sqlite.database import translated
from targetcharge.ledger.sqlite.locks import in_locked_folder
from targetcharge.ledger.sqlite.transactions import Transactions
from targetcharge.ledger.sqlite.verify import check_totals, lost_offset
from targetcharge.ledger.sqlite.witness import Witnesses, WitnessRecords, check_restored, distrust
from targetcharge.ledger.state import Reservation, verify_chain

if TYPE_CHECKING:
    from pathlib import Path

    from targetcharge.ledger.offset import SecretOffset
    from targetcharge.ledger.sqlite.database import Database
    from targetcharge.ledger.sqlite.transactions import Draft


def trusted(
    path: Path,
    database: Database,
    transactions: Transactions,
    witnesses: Witnesses,
    restored: tuple[int, str] | None,
) -> tuple[str, SecretOffset | None]:
    """Return why a ledger must not be trusted, empty if it may be, and its offset, if it is the one it began with.

    Args:
        path: of the file.
        database: in it.
        transactions: to write that the owner vouches for it.
        witnesses: to tell of it then.
        restored: the number and hash of the last entry ever published, if the owner names them.

    Raises:
        NotAllowed: if the ledger does not end there, or a witness knows of more.
        LedgerError: if it was changed.
    """
    records = WitnessRecords.read(path, database.state().ledger)
    with database.reading():
        if restored is not None:
            check_restored(path, database, records, restored)
        lost = lost_offset(database)
        offset = database.offset() if not lost else None
        why = distrust(database, records)
        if not why:
            check_totals(path, database, records)
        elif restored is not None:
            verify_chain(path, database.rows(), database.state())
    if lost:
        return lost, offset  # and nobody's word brings it back
    if why and restored is not None:
        transactions.commit(_vouch, tell_witnesses=False)
        witnesses.tell(database.state(), anew=True)
        return "", offset
    return why, offset


def _vouch(draft: Draft) -> None:
    """Write that the owner vouches for all entries so far."""
    draft.append([Restored(draft.state.last_entry)])


def restore(path: Path, number: int, head: str) -> None:
    """Take the owner's word that a restored copy holds all that was ever published: from now on it opens as it is.

    Args:
        path: of the file.
        number: of the last entry ever published.
        head: its hash.

    Raises:
        NotAllowed: if the ledger does not end there, or a witness knows of more.
        LedgerError: if there is none, it was changed, or its secret offset is gone.
    """
    path = path.resolve()
    with translated(path):
        database = in_locked_folder(path.parent, partial(ledger_at, path))
        if database is None:
            msg = f"there is no ledger {path}"
            raise LedgerError(msg)
        with closing(database):
            witnesses, meters = Witnesses(database), len(database.state().terms.capacities)
            transactions = Transactions(database, witnesses, Reservation((0,) * meters, 0))
            with closing(transactions):
                why, _ = trusted(path, database, transactions, witnesses, (number, head))
    if why:
        raise LedgerError(why)
