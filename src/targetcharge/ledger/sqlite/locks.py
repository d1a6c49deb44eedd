"""Locks: which sessions have a ledger open, which of them are computing, which have died, and whose turn it is.

Each session that has the ledger open may hold back what its next call could charge. The kernel's file locks tell
the others the truth about it, also after kill -9:

    NAME.alive  locked as long as the session lives: whoever can lock it knows that the session died without
                closing
    NAME.run    locked while a call runs: whoever locks it has waited for the call and may take back what the
                session holds, which it finds out from the one byte in that file before its next call. The byte
                also tells a call that ended from one that was killed: what that held is spent, not taken
    alone       the exclusive lock, of a call beside which no other call of any session may run

Locks are advisory and per open file, so two sessions in one process have locks of their own. The files lie in a
folder beside the ledger.

The database has a row for each open session, written in the transaction in which its lock files are made. So in
a transaction, files without a row are left over from a session that could not be opened, or was killed as it
closed. A session whose files somebody removed looks dead: its row is removed, what it held back is spent, and it
finds that out in its next transaction.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import threading
import time
import uuid
import weakref
from contextlib import suppress
from io import FileIO
from typing import TYPE_CHECKING, Final, TypeVar, final

from targetcharge.errors import NotAllowed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

Result = TypeVar("Result")

_WAIT_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.005

_KINDS: Final = ("alive", "run")

_IDLE: Final = 0
_RUNNING: Final = 1
_TAKEN: Final = 2

_EXCLUSIVE: Final = "alone"

_own: Final[weakref.WeakSet[OwnLocks]] = weakref.WeakSet()
_exclusive: Final[weakref.WeakSet[FileIO]] = weakref.WeakSet()
_holders: Final[dict[Path, tuple[weakref.ref[FileIO], int]]] = {}
"""The file by which this process last held the exclusive lock of a ledger, and the thread that did."""


def _close_own_in_child() -> None:
    """Close the locks that a forked child inherited: it must not keep its dead parent alive."""
    for locks in list(_own):
        locks.close()


def _close_exclusive_in_child() -> None:
    """Close what a forked child inherited: it must not hold the lock in its parent's place."""
    for file in list(_exclusive):
        file.close()
    _holders.clear()


os.register_at_fork(after_in_child=_close_own_in_child)
os.register_at_fork(after_in_child=_close_exclusive_in_child)


@final
class OwnLocks:
    """The lock files of this session.

    Attributes:
        name: of the session: of its files and its row in the database.
    """

    def __init__(self, ledger: Path) -> None:
        """Make the lock files and lock the first one; leave none behind if that fails."""
        self.name = uuid.uuid4().hex
        self._folder = _folder(ledger)
        files: list[int] = []
        try:
            for kind in _KINDS:
                files.append(_open(self._folder, f"{self.name}.{kind}", os.O_EXCL))  # noqa: PERF401 - what was made must be known if the next one fails
            alive, run = files
            fcntl.flock(alive, fcntl.LOCK_EX)
            os.pwrite(run, bytes([_IDLE]), 0)
            self._run, self._byte = run, mmap.mmap(run, 1)  # in memory: it changes twice in every call
        except BaseException:
            for file in files:
                os.close(file)
            _remove(self._folder, self.name)
            raise
        self._files = tuple(files)
        self._started = False
        _own.add(self)

    def start_call(self) -> bool:
        """Lock the run file; return whether what was held back is still held. If not, `accept_loss`."""
        self._started = True
        fcntl.flock(self._run, fcntl.LOCK_EX)
        if self._byte[0] == _TAKEN:
            return False
        self._byte[0] = _RUNNING
        return True

    def accept_loss(self) -> None:
        """Go on with the call after what was held back was taken."""
        self._byte[0] = _RUNNING

    def end_call(self) -> None:
        """Unlock the run file, if a call runs."""
        if self._files and self._started:
            if self._byte[0] == _RUNNING:
                self._byte[0] = _IDLE
            fcntl.flock(self._run, fcntl.LOCK_UN)
            self._started = False

    def remove(self) -> None:
        """Close and remove the lock files."""
        self.close()
        _remove(self._folder, self.name)

    def close(self) -> None:
        """Close the lock files, which lets go of the locks, and leave the traces of a session that died."""
        files, self._files = self._files, ()
        self._byte.close()
        for file in files:
            os.close(file)


@final
class OtherLocks:
    """The lock files of another session. Use as a context: it holds the locks that it got."""

    def __init__(self, ledger: Path, name: str) -> None:
        """Take the name of the other session; open none of its files yet."""
        self._folder = _folder(ledger)
        self._name = name
        self._files: list[int] = []
        self._run: int | None = None

    def __enter__(self) -> OtherLocks:
        """Enter with no locks."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of all locks."""
        for file in self._files:
            fcntl.flock(file, fcntl.LOCK_UN)  # closing does not unlock what a forked child inherited
            os.close(file)

    def died(self) -> bool:
        """Return whether the session ended without closing, or somebody removed its files.

        Without its files nobody could find out when it dies, or wait for its call. If it has closed, the database
        knows.
        """
        return not self.alive or self._open("run") is None

    @property
    def alive(self) -> bool:
        """Return whether the session has its lock. We take a shared one: several may find out at once."""
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
        """Return whether the session died between two calls, and not because somebody removed its files."""
        file = self._open("run")
        states = bytes([_IDLE]), bytes([_TAKEN])
        return file is not None and self._open("alive") is not None and os.pread(file, 1, 0) in states

    def wait_for_call(self) -> bool:
        """Wait until the session is not computing, and keep it so; False if it has closed or died meanwhile.

        A process that is killed loses its locks one by one, in any order: one that still looks alive may have died
        in the middle of a call, and its byte says so.
        """
        self._run = self._open("run")
        if self._run is None:
            return False
        fcntl.flock(self._run, fcntl.LOCK_EX)
        return os.pread(self._run, 1, 0) != bytes([_RUNNING]) and not self.died()

    def mark_taken(self) -> None:
        """Let the session know that what it held back was taken."""
        if self._run is not None:
            os.pwrite(self._run, bytes([_TAKEN]), 0)

    def remove(self) -> None:
        """Remove the files that a dead session left."""
        _remove(self._folder, self._name)

    def _open(self, kind: str) -> int | None:
        try:
            file = os.open(self._folder / f"{self._name}.{kind}", os.O_RDWR)
        except FileNotFoundError:
            return None
        self._files.append(file)
        return file


def remove_left_over(ledger: Path, sessions: Collection[str]) -> None:
    """Remove lock files of none of the ledger's open sessions. In a write transaction only."""
    names = {file.stem for file in _folder(ledger).iterdir() if file.suffix.lstrip(".") in _KINDS}
    for name in names.difference(sessions):
        with OtherLocks(ledger, name) as locks:
            if not locks.alive:
                locks.remove()


def exclusive_lock(ledger: Path) -> FileIO:
    """Wait for the exclusive lock of a ledger, and hold it until the file is closed.

    With a budget for every individual a call draws with the units that can pay at the ledger's head, so nothing
    may be charged between its look at the head and its own entry. The file is the context: no interrupt can leave
    it open.

    Raises:
        NotAllowed: if this very thread holds the lock: it would wait for ever.
    """
    known, thread = _holders.get(ledger, (None, 0))
    last = known() if known is not None else None
    if last is not None and not last.closed and thread == threading.get_ident():
        msg = "a table cannot be asked from inside a condition or rule of another one on the same ledger"
        raise NotAllowed(msg)
    while True:
        file: FileIO | None = None
        try:
            file = FileIO(_open(_folder(ledger), _EXCLUSIVE), "r+")
            _exclusive.add(file)
            fcntl.flock(file, fcntl.LOCK_EX)
            if holds_exclusive_lock(ledger, file):
                _holders[ledger] = weakref.ref(file), threading.get_ident()
                return file
            file.close()  # it was removed while we waited, and is not the one that others lock
        except BaseException:
            if file is not None:
                file.close()
            raise


def holds_exclusive_lock(ledger: Path, file: FileIO) -> bool:
    """Return whether a locked file is still the one that others wait for. To be asked before publishing.

    Somebody may remove the file, and another session lock a new one. Of those with different files at most one
    gets a yes, since the name leads to one file.
    """
    return is_named(_folder(ledger) / _EXCLUSIVE, file.fileno())


def in_locked_file(path: Path, work: Callable[[int], Result], *, shared: bool = False) -> Result:
    """Do something with the open file that a path names while nobody else does, or others who only read as well.

    A function and no context, here and below: an interrupt at the beginning of an `__exit__` in Python, or before
    the `with` is reached, would leave it locked.
    """
    while True:
        handle = os.open(path, os.O_RDONLY if shared else os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
            if is_named(path, handle):
                return work(handle)
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # closing does not unlock what a forked child inherited
            os.close(handle)


def in_locked_folder(folder: Path, work: Callable[[], Result]) -> Result:
    """Do something while nobody else does so in this folder: where files appear as a whole, that is how.

    Raises:
        OSError: if another program keeps the folder locked for a minute.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock_within(handle, folder, time.monotonic() + _WAIT_SECONDS)
        return work()
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _lock_within(handle: int, folder: Path, last: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > last:
                problem = "another program keeps its folder locked"
                raise OSError(errno.EAGAIN, problem, str(folder)) from None
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def is_named(path: Path, handle: int) -> bool:
    """Return whether a path still names this open file: one that was replaced is not the one that others lock."""
    try:
        there = os.stat(path)  # noqa: PTH116 - in every exclusive call, and twice as fast
    except FileNotFoundError:
        return False
    mine = os.fstat(handle)
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)


def _folder(ledger: Path) -> Path:
    return ledger.with_name(ledger.name + "-tenants")


def _open(folder: Path, name: str, flags: int = 0) -> int:
    """Open a lock file, which is made if there is none."""
    while True:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        try:
            return os.open(folder / name, os.O_RDWR | os.O_CREAT | flags, 0o600)
        except FileNotFoundError:
            continue  # the last session closed and took the folder with it


def _remove(folder: Path, name: str) -> None:
    """Remove a session's files, and the folder with the last of them."""
    for kind in _KINDS:
        (folder / f"{name}.{kind}").unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
