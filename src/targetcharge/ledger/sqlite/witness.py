"""Witnesses: small files that remember how far a ledger got, and so tell a restored copy from a ledger.

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
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, final

from targetcharge.errors import NotAllowed
from targetcharge.ledger.files import state_folder, unfinished, write_whole
from targetcharge.ledger.sqlite.locks import in_locked_file, in_locked_folder

if TYPE_CHECKING:
    from pathlib import Path

    from targetcharge.ledger.sqlite.database import Database
    from targetcharge.ledger.state import LedgerState

_SIZE: Final = 512
"""In bytes: one sector, so that it is written whole."""

_TYPES: Final = (str, int, int, str, str)
"""Of what a witness remembers, in order."""


@final
@dataclass(frozen=True)
class WitnessRecord:
    """What a witness remembers of a ledger.

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
    def of(cls, state: LedgerState, inode: int) -> WitnessRecord:
        """Return what is to be remembered of a ledger in this file."""
        return cls(state.ledger, inode, state.last_entry, state.head.hex(), state.digest())

    @classmethod
    def parsed(cls, content: bytes) -> WitnessRecord | None:
        """Return the record that a file holds; None if it cannot be understood."""
        try:
            record = cls(**json.loads(content.decode("ascii")))
        except (ValueError, TypeError):
            return None
        return record if tuple(map(type, vars(record).values())) == _TYPES else None

    def content(self) -> bytes:
        """Return what a file is to hold."""
        return json.dumps(vars(self)).encode("ascii").ljust(_SIZE)

    def knows_more(self, other: WitnessRecord) -> bool:
        """Return whether this record is about the same file as another one, and not older."""
        same_file = (self.ledger, self.inode) == (other.ledger, other.inode)
        return same_file and (self.number, bool(self.totals)) >= (other.number, bool(other.totals))


@final
class WitnessFile:
    """A witness, opened for each use: it is read at opening and written once for each hit."""

    def __init__(self, path: Path) -> None:
        """Read and write the witness at a path."""
        self.path = path

    @classmethod
    def beside(cls, ledger: Path) -> WitnessFile:
        """Return the witness beside a ledger."""
        return cls(ledger.with_name(ledger.name + "-witness"))

    @classmethod
    def at_home(cls, ledger: str) -> WitnessFile:
        """Return the witness in the user's state folder, of the ledger with this id."""
        return cls(state_folder() / f"{ledger}.json")

    def read(self) -> WitnessRecord | None:
        """Return the record; None if there is no witness or it cannot be understood."""
        try:
            return in_locked_file(self.path, lambda _: WitnessRecord.parsed(self.path.read_bytes()), shared=True)
        except OSError:
            return None

    def is_empty(self) -> bool:
        """Return whether there is no witness, or one that remembers nothing: not even a ledger without entries."""
        try:
            return not self.path.stat().st_size
        except FileNotFoundError:
            return True

    def forget(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)

    def remember(self, record: WitnessRecord) -> None:
        """Write a record, unless the witness knows more already (another process was quicker)."""
        while True:
            try:
                return in_locked_file(self.path, partial(_update, record))
            except FileNotFoundError:
                in_locked_folder(self.path.parent, partial(self._make, record))

    def _make(self, record: WitnessRecord) -> None:
        if not self.path.exists():
            self.replace(record)

    def replace(self, record: WitnessRecord) -> None:
        """Write the file as a whole or not at all, whatever there was. In a locked folder only."""
        write_whole(self.path, record.content(), unfinished(self.path))


def _update(record: WitnessRecord, handle: int) -> None:
    known = WitnessRecord.parsed(os.pread(handle, _SIZE, 0))
    if known is None or not known.knows_more(record):
        os.pwrite(handle, record.content(), 0)
    if known is None:
        os.fsync(handle)


@final
class Witnesses:
    """The two witnesses of an open ledger, to write to."""

    def __init__(self, database: Database) -> None:
        """Write to the witnesses of the ledger in a database."""
        self._inode = database.inode
        self._beside = WitnessFile.beside(database.path)
        self._home: WitnessFile | None = None

    def tell(self, state: LedgerState, *, opening: bool = False, anew: bool = False) -> None:
        """Write how far the ledger got.

        The state folder is made only when `opening`; `anew` if what the witnesses knew was about another file.
        """
        record = WitnessRecord.of(state, self._inode)
        home = self._home = self._home or WitnessFile.at_home(record.ledger)
        if anew:
            self._beside.forget()
        self._beside.remember(record)
        with suppress(OSError):  # as good as it gets: not every user has a home that can be written to
            if opening or anew:
                home.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if anew:
                home.forget()
            home.remember(record)


@final
@dataclass(frozen=True)
class WitnessRecords:
    """What the witnesses of a ledger remember. To be read before the ledger: others may be writing to it.

    Attributes:
        beside: what the one beside the ledger remembers.
        home: what the one in the state folder remembers.
    """

    beside: WitnessRecord | None
    home: WitnessRecord | None

    @classmethod
    def read(cls, path: Path, ledger: str) -> WitnessRecords:
        """Read the witnesses of the ledger with this path and id."""
        return cls(WitnessFile.beside(path).read(), WitnessFile.at_home(ledger).read())

    def about(self, ledger: str) -> tuple[WitnessRecord, ...]:
        """Return what is remembered of the ledger with this id."""
        records = (self.beside, self.home)
        return tuple(record for record in records if record is not None and record.ledger == ledger)


def distrust(database: Database, records: WitnessRecords) -> str:
    """Return why a ledger must count as spent, in a sentence that says what to do; empty if it need not."""
    state, beside = database.state(), records.beside
    missing = _missing_entries(database, records)
    if missing:
        why = missing
    elif beside is None:
        why = "it has no witness file beside it"
    elif beside.ledger != state.ledger:
        why = "the witness file beside it belongs to another ledger"
    elif beside.inode != database.inode:
        why = "it is not the file that was written to"
    else:
        return ""
    return (
        f"this ledger looks like a restored copy: {why}. Charges may be missing, so its budget counts as spent."
        " If its owner knows the number N and the hash H of the last entry ever published, and this ledger ends"
        " there, `tct ledger restore LEDGER --number N --hash H` opens it as it is, or in Python restored=(N, H)"
    )


def check_restored(path: Path, database: Database, records: WitnessRecords, restored: tuple[int, str]) -> None:
    """Refuse an owner's word that names another last entry than the ledger's, or that a witness contradicts."""
    state, (number, head) = database.state(), restored
    if (number, head.lower()) != (state.last_entry, state.head.hex()):
        sentence = (
            f"the owner names entry {number} with hash {head}, and the ledger {path} ends at entry"
            f" {state.last_entry}, not there: if more was published than it holds, its budget is spent"
        )
        raise NotAllowed(sentence)
    missing = _missing_entries(database, records)
    if missing:
        msg = f"the ledger {path} cannot be opened as complete: {missing}. What is missing was charged"
        raise NotAllowed(msg)


def _missing_entries(database: Database, records: WitnessRecords) -> str:
    """Return what a witness remembers and the ledger does not hold, in words; empty if there is nothing."""
    state = database.state()
    for record in records.about(state.ledger):
        if record.number > state.last_entry:
            return f"it ends at entry {state.last_entry} and entry {record.number} was published"
        if (database.hash_at(record.number) or b"").hex() != record.head:
            return f"its entry {record.number} is not the one that was published"
    return ""
