"""Creation: the file of a ledger appears complete or not at all, whenever the process is killed.

Who opens a ledger locks its folder while it looks whether there is one and, if not, makes it: under another name,
with tables and header, synced and closed; then its witness gets its name, and then the file. So a kill leaves

    nothing, or an empty file                     a new ledger
    that, and a witness without entries           a new ledger
    the file, and the witness that knows it       this ledger

and never a file without its witness: one that has none is a copy, also if it holds no entry yet. What it was
copied from may have published since.
"""

from __future__ import annotations

import os
import uuid
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

from targetcharge.errors import InvalidParameter, LedgerError
from targetcharge.ledger.files import put_in_place, sync, unfinished
from targetcharge.ledger.sqlite.database import Database, inode, translated
from targetcharge.ledger.sqlite.locks import in_locked_folder
from targetcharge.ledger.sqlite.witness import WitnessFile, WitnessRecord
from targetcharge.ledger.state import LedgerState
from targetcharge.markup import counted

if TYPE_CHECKING:
    from pathlib import Path

    from targetcharge.ledger.offset import SecretOffset
    from targetcharge.ledger.terms import Terms

_LOGS: Final = ("-wal", "-shm", "-journal")
"""What SQLite may leave beside a file."""


def terms_at(path: Path) -> Terms | None:
    """Return what the ledger at a path was made for; None if there is none.

    Raises:
        LedgerError: if there is something else, or it cannot be read.
    """
    path = path.resolve()

    def read() -> Terms | None:
        database = ledger_at(path)
        if database is None:
            return None
        with closing(database):
            return database.state().terms

    with translated(path):
        return in_locked_folder(path.parent, read)


def connect(path: Path, terms: Terms, fresh_offset: SecretOffset | None = None) -> Database:
    """Connect to the ledger at a path, which is made for these terms, with this offset, if there is none.

    Raises:
        InvalidParameter: if it is to be made, its terms have an offset, and none was given.
        LedgerError: if there is something else, it cannot be read or written, or its witness remembers a ledger
            that is gone.
    """

    def connected() -> Database:
        database = ledger_at(path)
        if database is None:
            _make(path, terms, fresh_offset)
            database = Database(path)
        return database

    with translated(path):
        return in_locked_folder(path.parent, connected)


def ledger_at(path: Path) -> Database | None:
    """Connect to a ledger; return None if there is no file, or one that holds nothing.

    In a locked folder only: SQLite removes a log by its name, and so a connection to an empty file must not be
    open any more when another file gets that name.
    """
    try:
        if not path.stat().st_size:
            return None
    except FileNotFoundError:
        return None
    database = Database(path)
    try:
        if not database.is_empty():
            return database
    except BaseException:
        database.close()
        raise
    database.close()
    return None


def _make(path: Path, terms: Terms, offset: SecretOffset | None) -> None:
    if terms.offset is not None and offset is None:
        raise InvalidParameter(
            "fresh_offset", None, "an integer where a ledger is made whose terms have an offset"
        )
    _refuse_to_start_anew(path)
    draft = unfinished(path)
    _remove(draft)
    try:
        commitment = offset.commitment if offset is not None else ""
        state = _write(draft, LedgerState.new(terms, uuid.uuid4().hex, commitment), offset)
        _remove_logs(path)  # of an empty file: SQLite would take them for the new one's
        WitnessFile.beside(path).replace(WitnessRecord.of(state, inode(draft)))
        put_in_place(draft, path)
    finally:
        with suppress(OSError):
            _remove(draft)


def _refuse_to_start_anew(path: Path) -> None:
    """Refuse to make a new ledger where the witness remembers one that published something."""
    witness = WitnessFile.beside(path)
    if witness.is_empty():
        return
    known, name = witness.read(), witness.path.name
    if known is None or known.number > 0:
        entries = counted(known.number, "entry", "entries") if known else "its entries"
        sentence = (
            f"the ledger {path} is gone or empty, and {name} remembers {entries}: restore it; or remove {name} if"
            " its budget may start anew"
        )
        raise LedgerError(sentence)


def _write(draft: Path, state: LedgerState, offset: SecretOffset | None) -> LedgerState:
    """Write a whole ledger that only its owner can read: it holds its offset and will hold pending outcomes."""
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(Database(draft)) as database:
        with database.transaction():
            database.create(state, offset)
        database.checkpoint()
        written = database.state()
    sync(draft, os.O_RDWR)
    return written


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    _remove_logs(path)


def _remove_logs(path: Path) -> None:
    for kind in _LOGS:
        path.with_name(path.name + kind).unlink(missing_ok=True)
