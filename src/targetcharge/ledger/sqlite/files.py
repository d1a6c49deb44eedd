"""Files of a ledger: locked, or written as a whole or not at all, whenever the process is killed or interrupted.

The kernel's locks belong to an open file and end with it, also after kill -9. What is written as a whole has
another name until it is complete: a fixed one, so that the next writer overwrites what a killed one left.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as name:
...     path = Path(name, "witness")
...     in_locked_folder(path.parent, lambda: write_whole(path, b"7"))
...     in_locked_file(path, lambda handle: os.read(handle, 10), shared=True)
b'7'
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeVar, final

from targetcharge.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Result = TypeVar("Result")

_WAIT_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.005


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


def unfinished(path: Path) -> Path:
    """Return the name of a file that is not complete yet."""
    return path.with_name(path.name + "-unfinished")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, durably, as a whole or not at all. In a locked folder only."""
    draft = unfinished(path)
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            if os.write(handle, content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(draft))
            os.fsync(handle)
        finally:
            os.close(handle)
        put_in_place(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def put_in_place(draft: Path, path: Path) -> None:
    """Give a complete and synced file its name, durably."""
    draft.replace(path)
    sync(path.parent, os.O_RDONLY)


def sync(path: Path, flags: int) -> None:
    """Make a file or folder durable, opened with these flags."""
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@final
class LedgerFile:
    """A ledger's file, by name and by inode. SQLite goes on writing to a file that was removed; we do not.

    Attributes:
        path: its name.
        inode: which file had this name at opening.
    """

    def __init__(self, path: Path) -> None:
        """Remember which file there is at a path."""
        self.path = path
        self.inode = inode(path)
        self._log = path.with_name(path.name + "-wal")
        self._log_inode = 0

    def remember_log(self) -> None:
        """Remember which file is the log, once there is one."""
        self._log_inode = inode(self._log)

    def check(self) -> None:
        """Refuse to go on if the file or its log was moved or replaced."""
        if inode(self.path) != self.inode or (self._log_inode and inode(self._log) != self._log_inode):
            msg = f"the ledger {self.path} was moved or replaced while it was open: no answer is given"
            raise LedgerError(msg)


def inode(path: Path) -> int:
    """Return which file a path names."""
    return os.stat(path).st_ino  # noqa: PTH116 - on the hot path, and twice as fast


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn the database's and the file system's errors into ours."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise unusable(path, error) from None


def unusable(path: Path, error: Exception) -> LedgerError:
    """Return the error of a file that cannot be used."""
    return LedgerError(f"the ledger {path} cannot be read or written ({error}): no answer is given")
