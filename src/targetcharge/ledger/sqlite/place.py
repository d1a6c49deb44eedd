"""The place of a ledger: which file it is, whether it is still there, and what its witnesses are told."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, final

from targetcharge.errors import LedgerError
from targetcharge.ledger.sqlite.store import inode
from targetcharge.ledger.sqlite.witness import Testimony, Witness

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from targetcharge.ledger.sqlite.state import State


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn the database's and the file system's errors into ours."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise failed(path, error) from None


def failed(path: Path, error: Exception) -> LedgerError:
    """Return the error of a file that cannot be used."""
    return LedgerError(f"the ledger {path} cannot be read or written ({error}): no answer is given")


@final
class Place:
    """A ledger's file, by name and by inode. SQLite goes on writing to a file that was removed; we do not."""

    def __init__(self, path: Path) -> None:
        """Remember which file there is at a path."""
        self.path = path
        self.inode = inode(path)
        self._beside = Witness.beside(path)
        self._home: Witness | None = None
        self._log = path.with_name(path.name + "-wal")
        self._log_inode = 0

    def settle_in(self) -> None:
        """Remember which file is the log, once there is one."""
        self._log_inode = inode(self._log)

    def check(self) -> None:
        """Refuse to go on if the file or its log was moved or replaced."""
        if inode(self.path) != self.inode or (self._log_inode and inode(self._log) != self._log_inode):
            msg = f"the ledger {self.path} was moved or replaced while it was open: no answer is given"
            raise LedgerError(msg)

    def testify(self, state: State, *, opening: bool = False, anew: bool = False) -> None:
        """Tell the witnesses how far the ledger got.

        Args:
            state: where it stands.
            opening: whether to make the state folder, if it is missing.
            anew: whether what they knew was about another file.
        """
        testimony = Testimony.of(state, self.inode)
        home = self._home = self._home or Witness.at_home(testimony.ledger)
        if anew:
            self._beside.forget()
        self._beside.remember(testimony)
        with suppress(OSError):  # as good as it gets: not every user has a home that can be written to
            if opening or anew:
                home.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if anew:
                home.forget()
            home.remember(testimony)

    def translated(self) -> AbstractContextManager[None]:
        """Turn the database's and the file system's errors into ours."""
        return translated(self.path)

    def failed(self, error: Exception) -> LedgerError:
        """Return the error of a file that cannot be used."""
        return failed(self.path, error)
