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

from targetcharge.errors import LedgerError
from targetcharge.ledger.entries import canonical
from targetcharge.ledger.sqlite.files import in_locked_folder, put_in_place, unfinished
from targetcharge.ledger.sqlite.place import translated
from targetcharge.ledger.sqlite.store import Store, inode
from targetcharge.ledger.sqlite.witness import Testimony, Witness
from targetcharge.ledger.terms import Terms

if TYPE_CHECKING:
    from pathlib import Path

    from targetcharge.ledger.sqlite.state import State

_LOGS: Final = ("-wal", "-shm", "-journal")
"""What SQLite may leave beside a file."""


def terms_at(path: Path) -> Terms | None:
    """Return what the ledger at a path was made for; None if there is none.

    Raises:
        LedgerError: if there is something else, or it cannot be read.
    """
    path = path.resolve()

    def read() -> Terms | None:
        store = _ledger_at(path)
        if store is None:
            return None
        with closing(store):
            return Terms.of(store.state().fields)

    with translated(path):
        return in_locked_folder(path.parent, read)


def connect(path: Path, terms: Terms) -> Store:
    """Connect to the ledger at a path, which is made for these terms if there is none.

    Raises:
        LedgerError: if there is something else, it cannot be read or written, or its witness remembers a ledger
            that is gone.
    """

    def connected() -> Store:
        store = _ledger_at(path)
        if store is None:
            _make(path, terms)
            store = Store(path)
        return store

    with translated(path):
        return in_locked_folder(path.parent, connected)


def _ledger_at(path: Path) -> Store | None:
    """Connect to a ledger; return None if there is no file, or one that holds nothing.

    In a locked folder only: SQLite removes a log by its name, and so a connection to an empty file must not be
    open any more when another file gets that name.
    """
    try:
        if not path.stat().st_size:
            return None
    except FileNotFoundError:
        return None
    store = Store(path)
    try:
        if not store.empty():
            return store
    except BaseException:
        store.close()
        raise
    store.close()
    return None


def _make(path: Path, terms: Terms) -> None:
    _refuse_to_start_anew(path)
    draft = unfinished(path)
    _remove(draft)
    try:
        state = _write(draft, canonical({**terms.plain(), "ledger": uuid.uuid4().hex}), len(terms.capacities))
        _remove_logs(path)  # of an empty file: SQLite would take them for the new one's
        Witness.beside(path).replace(Testimony.of(state, inode(draft)))
        put_in_place(draft, path)
    finally:
        with suppress(OSError):
            _remove(draft)


def _refuse_to_start_anew(path: Path) -> None:
    """Refuse to make a new ledger where the witness remembers one that published something."""
    witness = Witness.beside(path)
    if witness.is_empty():
        return
    known, name = witness.read(), witness.path.name
    if known is None or known.number > 0:
        sentence = (
            f"the ledger {path} is gone or empty, and {name} remembers"
            f" {known.number if known else 'its'} entries: restore it; or remove {name} if its budget may start"
            " anew"
        )
        raise LedgerError(sentence)


def _write(draft: Path, header: str, meters: int) -> State:
    """Write a whole ledger that only its owner can read: it will hold pending outcomes."""
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(Store(draft)) as store:
        with store.transaction():
            store.create(header, meters)
        store.checkpoint()
        state = store.state()
    handle = os.open(draft, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return state


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    _remove_logs(path)


def _remove_logs(path: Path) -> None:
    for kind in _LOGS:
        path.with_name(path.name + kind).unlink(missing_ok=True)
