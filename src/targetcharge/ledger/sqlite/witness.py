"""Witnesses: small files that remember how far a ledger got.

A ledger that was restored from a backup has forgotten charges. One witness lies beside the ledger and knows,
besides the number and hash of the last entry, which file (inode) they were written to. Another lies in the user's
state folder, where a restore of the ledger's folder does not reach. They are written after every commit and so may
lag by a crash, never lead.

They also keep a digest of the header and the totals: so nobody has to add up all entries to find out that the
totals are still their sum. What open sessions hold back is not in it, since it changes without an entry: whoever
deletes a session's row from the file after a crash frees what that session had held back, and nothing here can
tell.

They cannot see a restore of the whole disk: nothing on the disk can.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from targetcharge.ledger.sqlite.files import in_locked_file, in_locked_folder, write_whole

if TYPE_CHECKING:
    from targetcharge.ledger.sqlite.state import State

_SIZE: Final = 512
"""In bytes: one sector, so that it is written whole."""

_TYPES: Final = (str, int, int, str, str)
"""Of what a witness remembers, in order."""


@final
@dataclass(frozen=True)
class Testimony:
    """What a witness remembers.

    Attributes:
        ledger: the ledger's id.
        inode: of the ledger's file.
        number: of the last entry it saw.
        head: that entry's hash, in hexadecimal.
        totals: the digest of the header and the totals with that entry; empty if an earlier version wrote it.
    """

    ledger: str
    inode: int
    number: int
    head: str
    totals: str = ""

    @classmethod
    def of(cls, state: State, inode: int) -> Testimony:
        """Return what is to be remembered of a ledger in this file."""
        return cls(state.ledger, inode, state.number, state.head.hex(), state.digest())

    @classmethod
    def parsed(cls, content: bytes) -> Testimony | None:
        """Return what a file holds; None if it cannot be understood."""
        try:
            found = cls(**json.loads(content.decode("ascii")))
        except (ValueError, TypeError):
            return None
        return found if tuple(map(type, vars(found).values())) == _TYPES else None

    def content(self) -> bytes:
        """Return what a file is to hold."""
        return json.dumps(vars(self)).encode("ascii").ljust(_SIZE)

    def knows_more(self, other: Testimony) -> bool:
        """Return whether it is about the same file as another one, and not older."""
        same_file = (self.ledger, self.inode) == (other.ledger, other.inode)
        return same_file and (self.number, bool(self.totals)) >= (other.number, bool(other.totals))


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
            return in_locked_file(self.path, lambda _: Testimony.parsed(self.path.read_bytes()), shared=True)
        except OSError:
            return None

    def is_empty(self) -> bool:
        """Return whether there is no witness, or one that remembers nothing: not even a ledger without entries."""
        try:
            return not self.path.stat().st_size
        except FileNotFoundError:
            return True

    def forget(self) -> None:
        """Start anew."""
        self.path.unlink(missing_ok=True)

    def remember(self, testimony: Testimony) -> None:
        """Write, unless it knows more already (another process was quicker)."""
        while True:
            try:
                return in_locked_file(self.path, partial(_update, testimony))
            except FileNotFoundError:
                in_locked_folder(self.path.parent, partial(self._make, testimony))

    def _make(self, testimony: Testimony) -> None:
        if not self.path.exists():
            self.replace(testimony)

    def replace(self, testimony: Testimony) -> None:
        """Write the file as a whole or not at all, whatever there was. In a locked folder only."""
        write_whole(self.path, testimony.content())


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

    def about(self, ledger: str) -> tuple[Testimony, ...]:
        """Return what is remembered of the ledger with this id."""
        return tuple(each for each in (self.beside, self.home) if each is not None and each.ledger == ledger)


def _update(testimony: Testimony, handle: int) -> None:
    known = Testimony.parsed(os.pread(handle, _SIZE, 0))
    if known is None or not known.knows_more(testimony):
        os.pwrite(handle, testimony.content(), 0)
    if known is None:
        os.fsync(handle)
