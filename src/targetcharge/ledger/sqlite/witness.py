"""Witnesses: small files that remember how far a ledger got.

A ledger that was restored from a backup has forgotten charges. One witness lies beside the ledger and knows,
besides the number and hash of the last entry, which file (inode) they were written to. Another lies in the user's
state folder, where a restore of the ledger's folder does not reach. They are written after every commit and so may
lag by a crash, never lead.

They cannot see a restore of the whole disk: nothing on the disk can.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIZE = 256


@final
@dataclass(frozen=True)
class Testimony:
    """What a witness remembers.

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

    def __init__(self, path: Path) -> None:
        """Name the file."""
        self.path = path

    @classmethod
    def beside(cls, ledger: Path) -> Witness:
        """Return the one that lies beside a ledger."""
        return cls(ledger.with_name(ledger.name + "-witness"))

    @classmethod
    def at_home(cls, ledger: str) -> Witness:
        """Return the one in the user's state folder, for a ledger with this id."""
        state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111 - never raises
        return cls(Path(state) / "targetcharge" / f"{ledger}.json")

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
                known = Testimony(**json.loads(os.pread(file, _SIZE, 0)))
            except (ValueError, TypeError):
                known = None
            if known is None or not _knows_more(known, testimony):
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


@final
@dataclass(frozen=True)
class Recalled:
    """What the witnesses of a ledger remember. To be read before the ledger: others may be writing to it.

    Attributes:
        beside: what the one beside the ledger remembers.
        home: what the one in the state folder remembers.
    """

    beside: Testimony | None
    home: Testimony | None

    @classmethod
    def of(cls, path: Path, ledger: str) -> Recalled:
        """Ask the witnesses of the ledger with this path and id."""
        return cls(Witness.beside(path).read(), Witness.at_home(ledger).read())


def _knows_more(known: Testimony, testimony: Testimony) -> bool:
    same_file = (known.ledger, known.inode) == (testimony.ledger, testimony.inode)
    return same_file and known.number >= testimony.number


def sync_folder(path: Path) -> None:
    """Make the name of a new file as durable as its contents."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
