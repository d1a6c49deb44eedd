"""The place of a ledger: which file it is, whether it is still there, and what its witness knows."""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, final

from targetcharge.errors import LedgerError
from targetcharge.ledger.sqlite.restored import check_named, distrust
from targetcharge.ledger.sqlite.store import inode
from targetcharge.ledger.sqlite.witness import Recalled, Testimony, Witness, sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from targetcharge.ledger.sqlite.store import State, Store


@final
class Place:
    """A ledger's file, by name and by inode. SQLite goes on writing to a file that was removed; we do not."""

    def __init__(self, path: Path) -> None:
        """Make an empty file that only its owner can read, unless there is one."""
        self.path = path.resolve()  # as SQLite does: its log lies beside the file itself
        self._witness = Witness.beside(self.path)
        self._log = self.path.with_name(self.path.name + "-wal")
        self._log_inode = 0
        with self.translated():
            self._create()
            self._inode = inode(self.path)

    def _create(self) -> None:
        if self.path.exists() and self.path.stat().st_size:
            return
        self.refuse_to_start_anew()
        with suppress(FileExistsError):  # one that exists is not opened: closing it would drop SQLite's locks
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            sync_folder(self.path)
        self.path.chmod(0o600)  # it will hold pending outcomes, which are as secret as the data

    def refuse_to_start_anew(self) -> None:
        """Refuse to make a new ledger where the witness remembers one that published something."""
        known, witness = self._witness.read(), self._witness.path.name
        if self._witness.exists() and (known is None or known.number > 0):
            sentence = (
                f"the ledger {self.path} is gone or empty, and {witness} remembers"
                f" {known.number if known else 'its'} entries: restore it; or remove {witness} if its budget may"
                " start anew"
            )
            raise LedgerError(sentence)

    def settle_in(self) -> None:
        """Remember which file is the log, once there is one."""
        self._log_inode = inode(self._log)

    def check(self) -> None:
        """Refuse to go on if the file or its log was moved or replaced."""
        if inode(self.path) != self._inode or (self._log_inode and inode(self._log) != self._log_inode):
            msg = f"the ledger {self.path} was moved or replaced while it was open: no answer is given"
            raise LedgerError(msg)

    def distrust(self, store: Store, named: tuple[int, str] | None) -> str:
        """Return why the file looks like a restored copy; empty if it does not. Check what its owner names."""
        recalled = Recalled.of(self.path, store.state().fields["ledger"])
        if named is not None:
            check_named(self.path, store, recalled, named)
        return distrust(store, recalled, self._inode)

    def testify(self, state: State, *, anew: bool = False) -> None:
        """Tell the witnesses how far the ledger got; `anew` if what they knew was about another file."""
        testimony = Testimony(state.fields["ledger"], self._inode, state.number, state.head.hex())
        home = Witness.at_home(testimony.ledger)
        if anew:
            self._witness.forget()
        self._witness.remember(testimony)
        with suppress(OSError):  # as good as it gets: not every user has a home that can be written to
            if anew or testimony.number == 0:
                home.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                home.forget()
            home.remember(testimony)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn the database's and the file system's errors into ours."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self.failed(error) from None

    def failed(self, error: Exception) -> LedgerError:
        """Return the error of a file that cannot be used."""
        return LedgerError(f"the ledger {self.path} cannot be read or written ({error}): no answer is given")
