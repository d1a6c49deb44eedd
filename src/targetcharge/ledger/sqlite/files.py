"""Files of a ledger: locked, or written as a whole or not at all, whenever the process is killed or interrupted.

The kernel's locks belong to an open file and end with it, also after kill -9. What is written as a whole has
another name until it is complete: a fixed one, so that the next writer overwrites what a killed one left.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Result = TypeVar("Result")

_WAIT_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.005


def in_locked_file(path: Path, work: Callable[[int], Result], *, shared: bool = False) -> Result:
    """Do something with the file that a path names while nobody else does.

    A function and no context, here and below: an interrupt at the beginning of an `__exit__` in Python, or before
    the `with` is reached, would leave it locked.

    Args:
        path: of a file that exists.
        work: takes the open file's number.
        shared: whether others may do so at the same time, who only read as well.
    """
    while True:
        handle = os.open(path, os.O_RDONLY if shared else os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
            if named(path, handle):
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


def named(path: Path, handle: int) -> bool:
    """Return whether a path still names this open file: one that was replaced is not the one that others lock."""
    try:
        there = os.stat(path)  # noqa: PTH116 - in every call that is alone, and twice as fast
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
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
