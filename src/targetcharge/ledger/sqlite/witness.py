"""The witness: a small file beside the ledger that remembers how far it got.

A ledger that was restored from a backup has forgotten charges. The witness knows the number and hash of the last
entry, and which file (inode) they were written to; a ledger that is behind its witness, has none, or lives in
another file is a restored copy. It is written after every commit and so may lag by a crash, never lead.

It cannot see a restore of the whole disk: nothing on the disk can.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SIZE = 256


@final
@dataclass(frozen=True)
class Testimony:
    """What the witness remembers.

    Attributes:
        ledger: the ledger's id.
        inode: of the ledger's file.
        number: of the last entry it saw.
        head: that entry's hash, in hexadecimal.
    """

    ledger: str
    inode: int
    number: int
    head: str


@final
class Witness:
    """The file, opened for each use: it is read at opening and written once for each hit."""

    def __init__(self, ledger: Path) -> None:
        """Name it after the ledger."""
        self.path = ledger.with_name(ledger.name + "-witness")

    def read(self) -> Testimony | None:
        """Return what it remembers; None if there is no witness or it cannot be understood."""
        try:
            return Testimony(**json.loads(self.path.read_text("ascii")))
        except (OSError, ValueError, TypeError):
            return None

    def exists(self) -> bool:
        """Return whether there is one."""
        return self.path.exists()

    def forget(self) -> None:
        """Start anew."""
        self.path.unlink(missing_ok=True)

    def remember(self, testimony: Testimony) -> None:
        """Write, unless it knows more already (another process was quicker)."""
        with self._locked() as file:
            try:
                known = json.loads(os.pread(file, _SIZE, 0))
            except ValueError:
                known = None
            newer = known and known["ledger"] == testimony.ledger and known["inode"] == testimony.inode
            if not (newer and known["number"] >= testimony.number):
                os.pwrite(file, json.dumps(asdict(testimony)).encode("ascii").ljust(_SIZE), 0)
            if known is None:
                os.fsync(file)
                sync_folder(self.path)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # closing does not unlock what a forked child inherited
            os.close(file)


def sync_folder(path: Path) -> None:
    """Make the name of a new file as durable as its contents."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
