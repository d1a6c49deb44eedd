"""Tenancies: which sessions have a ledger open, which of them are computing, and which have died.

Each session that has the ledger open is a tenant and may hold units back for its next call. The kernel's file
locks tell the others the truth about it, also after kill -9:

    alive   locked as long as the tenant lives: whoever can lock it knows that the tenant died without closing
    run     locked while a call runs: whoever locks it has waited for the call and may take back what the tenant
            holds, which it finds out from the one byte in that file before its next call. The byte also tells a
            call that ended from one that was killed: what that held is spent, not taken

Locks are advisory and per open file, so two sessions in one process are two tenants.

The database has a row for each tenant, written in the transaction in which its files are made. So in a
transaction, files without a row are left over from a tenant that could not stay, or was killed as it left. A
tenant whose files somebody removed looks dead: its row is removed, what it held back is spent, and it finds that
out in its next transaction.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import uuid
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_KINDS: Final = ("alive", "run")

_IDLE: Final = 0
_RUNNING: Final = 1
_TAKEN: Final = 2

_tenancies: weakref.WeakSet[Tenancy] = weakref.WeakSet()


def _leave_in_child() -> None:
    """Close the locks that a forked child inherited: it must not keep its dead parent alive."""
    for tenancy in list(_tenancies):
        tenancy.close_files()


os.register_at_fork(after_in_child=_leave_in_child)


def directory(ledger: Path) -> Path:
    """Return where the tenants of a ledger keep their locks."""
    return ledger.with_name(ledger.name + "-tenants")


@final
class Tenancy:
    """This session's own locks."""

    def __init__(self, ledger: Path) -> None:
        """Make the lock files and lock the first one; leave none behind if that fails."""
        self.name = uuid.uuid4().hex
        self._folder = directory(ledger)
        files: list[int] = []
        try:
            for kind in _KINDS:
                files.append(self._create(kind))  # noqa: PERF401 - what was made must be known if the next one fails
            alive, run = files
            fcntl.flock(alive, fcntl.LOCK_EX)
            os.pwrite(run, bytes([_IDLE]), 0)
            self._run, self._byte = run, mmap.mmap(run, 1)  # in memory: it changes twice in every call
        except BaseException:
            for file in files:
                os.close(file)
            remove(self._folder, self.name)
            raise
        self._files = tuple(files)
        self._started = False
        _tenancies.add(self)

    def _create(self, kind: str) -> int:
        while True:
            with suppress(FileExistsError):
                self._folder.mkdir(mode=0o700)
            try:
                return os.open(self._folder / f"{self.name}.{kind}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            except FileNotFoundError:
                continue  # another tenant left and took the folder with it

    def start(self) -> bool:
        """Begin a call; return whether what was held back is still held. If not, `accept` it."""
        self._started = True
        fcntl.flock(self._run, fcntl.LOCK_EX)
        if self._byte[0] == _TAKEN:
            return False
        self._byte[0] = _RUNNING
        return True

    def accept(self) -> None:
        """Begin anew after what was held back was taken."""
        self._byte[0] = _RUNNING

    def stop(self) -> None:
        """End a call, if one runs."""
        if self._files and self._started:
            if self._byte[0] == _RUNNING:
                self._byte[0] = _IDLE
            fcntl.flock(self._run, fcntl.LOCK_UN)
            self._started = False

    def leave(self) -> None:
        """Close and remove the lock files."""
        self.close_files()
        remove(self._folder, self.name)

    def close_files(self) -> None:
        """Let go of the locks, and leave the traces of a tenant that died."""
        files, self._files = self._files, ()
        self._byte.close()
        for file in files:
            os.close(file)


@final
class Neighbour:
    """Another tenant, seen from outside. Use as a context: it holds the locks that it got."""

    def __init__(self, ledger: Path, name: str) -> None:
        """Name the tenant."""
        self._folder = directory(ledger)
        self._name = name
        self._files: list[int] = []
        self._run: int | None = None

    def __enter__(self) -> Neighbour:
        """Enter with no locks."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of all locks."""
        for file in self._files:
            fcntl.flock(file, fcntl.LOCK_UN)  # closing does not unlock what a forked child inherited
            os.close(file)

    def died(self) -> bool:
        """Return whether it ended without closing, or somebody removed its files.

        Without its files nobody could find out when it dies, or wait for its call. If it has closed, the database
        knows.
        """
        return not self.alive or self._open("run") is None

    @property
    def alive(self) -> bool:
        """Return whether it has its lock. We take a shared one: several neighbours may find out at once."""
        file = self._open("alive")
        if file is None:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False

    @property
    def idle(self) -> bool:
        """Return whether it died between two calls, and not because somebody removed its files."""
        file = self._open("run")
        states = bytes([_IDLE]), bytes([_TAKEN])
        return file is not None and self._open("alive") is not None and os.pread(file, 1, 0) in states

    def wait(self) -> bool:
        """Wait until it is not computing, and keep it so; False if it has left or died meanwhile.

        A process that is killed loses its locks one by one, in any order: one that still looks alive may have died
        in the middle of a call, and its byte says so.
        """
        self._run = self._open("run")
        if self._run is None:
            return False
        fcntl.flock(self._run, fcntl.LOCK_EX)
        return os.pread(self._run, 1, 0) != bytes([_RUNNING]) and not self.died()

    def tell(self) -> None:
        """Let it know that what it held back was taken."""
        if self._run is not None:
            os.pwrite(self._run, bytes([_TAKEN]), 0)

    def remove(self) -> None:
        """Remove what a dead tenant left."""
        remove(self._folder, self._name)

    def _open(self, kind: str) -> int | None:
        try:
            file = os.open(self._folder / f"{self._name}.{kind}", os.O_RDWR)
        except FileNotFoundError:
            return None
        self._files.append(file)
        return file


def remove(folder: Path, name: str) -> None:
    """Remove a tenant's files, and the folder with the last of them."""
    for kind in _KINDS:
        (folder / f"{name}.{kind}").unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def sweep(ledger: Path, tenants: Collection[str]) -> None:
    """Remove lock files that are left over, of none of the ledger's tenants. In a write transaction only."""
    found = {file.stem for file in directory(ledger).iterdir() if file.suffix.lstrip(".") in _KINDS}
    for name in found.difference(tenants):
        with Neighbour(ledger, name) as neighbour:
            if not neighbour.alive:
                neighbour.remove()
