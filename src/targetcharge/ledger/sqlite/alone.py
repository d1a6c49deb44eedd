"""Alone: one call at a time among all sessions on a ledger, where what is drawn depends on what was published.

With a budget for every individual a call draws with the units that can pay at the ledger's head, so nothing may be
charged between its look at the head and its own entry. The kernel's lock on an open file says whose turn it is,
also after kill -9. The file is the context: no interrupt can leave it open.

Somebody may remove the file, and another session be alone by a new one. So who is alone asks `is_alone` before it
publishes: of those with different files at most one gets a yes, since the name leads to one file.
"""

from __future__ import annotations

import fcntl
import os
import threading
import weakref
from contextlib import suppress
from io import FileIO
from typing import TYPE_CHECKING, Final

from targetcharge.errors import NotAllowed
from targetcharge.ledger.sqlite.files import named
from targetcharge.ledger.sqlite.tenancy import directory

if TYPE_CHECKING:
    from pathlib import Path

_NAME: Final = "alone"

_held: Final[dict[Path, tuple[weakref.ref[FileIO], int]]] = {}
"""The file by which this process was last alone with a ledger, and the thread that was."""

_files: Final[weakref.WeakSet[FileIO]] = weakref.WeakSet()


def _leave_in_child() -> None:
    """Close what a forked child inherited: it must not be alone in its parent's place."""
    for file in list(_files):
        file.close()
    _held.clear()


os.register_at_fork(after_in_child=_leave_in_child)


def alone(ledger: Path) -> FileIO:
    """Wait until no other session on this ledger is alone with it; they wait until the file is closed.

    Raises:
        NotAllowed: if this very thread is: it would wait for ever.
    """
    known, thread = _held.get(ledger, (None, 0))
    last = known() if known is not None else None
    if last is not None and not last.closed and thread == threading.get_ident():
        msg = "a table cannot be asked from inside a condition or rule of another one on the same ledger"
        raise NotAllowed(msg)
    while True:
        file: FileIO | None = None
        try:
            file = _open(ledger)
            _files.add(file)
            fcntl.flock(file, fcntl.LOCK_EX)
            if is_alone(ledger, file):
                _held[ledger] = weakref.ref(file), threading.get_ident()
                return file
            file.close()  # it was removed while we waited, and is not the one that others lock
        except BaseException:
            if file is not None:
                file.close()
            raise


def is_alone(ledger: Path, file: FileIO) -> bool:
    """Return whether the lock is still the one that others wait for."""
    return named(directory(ledger) / _NAME, file.fileno())


def _open(ledger: Path) -> FileIO:
    folder = directory(ledger)
    while True:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        try:
            return FileIO(os.open(folder / _NAME, os.O_RDWR | os.O_CREAT, 0o600), "r+")
        except FileNotFoundError:
            continue  # the last tenant left and took the folder with it
