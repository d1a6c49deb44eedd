"""The database of a ledger and its file: tables, transactions, and nothing that decides.

state     one row: header, number and hash of the last entry, next seq, sums
entries   number, canonical JSON, hash; seq for answers
sessions  a row for each open session, with the grains that it holds back (`tenants` in files of earlier versions)
pending   drawn outcomes that were not published yet: private to the curator
secret    one row, the offset and its key, if the terms have an offset: private to the curator
published where to find what a question last published: `index.py`
"""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final, NoReturn, cast, final

from targetcharge.errors import LedgerError, NotAllowed
from targetcharge.ledger.entries import Entry, Pending, entry_of, last_of
from targetcharge.ledger.offset import SecretOffset
from targetcharge.ledger.sqlite.index import PublishedIndex
from targetcharge.ledger.state import LedgerState, Reservation, Row, Sums, chained, link
from targetcharge.outcomes import canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from targetcharge.ledger.answer import Answer

_APPLICATION: Final = 0x54435431
"""SQLite's application id of a ledger: "TCT1"."""

_TABLES: Final = """
CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), header TEXT NOT NULL, number INTEGER NOT NULL,
                    head BLOB NOT NULL, next_seq INTEGER NOT NULL, sums TEXT NOT NULL);
CREATE TABLE entries (number INTEGER PRIMARY KEY, seq INTEGER, body TEXT NOT NULL, hash BLOB NOT NULL);
CREATE TABLE sessions (name TEXT PRIMARY KEY, grains TEXT NOT NULL, count INTEGER NOT NULL);
CREATE TABLE pending (release INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE secret (id INTEGER PRIMARY KEY CHECK (id = 1), offset BLOB NOT NULL);
"""

_PAGE: Final = 1000
_WAIT_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.005

_open: Final[weakref.WeakSet[Database]] = weakref.WeakSet()
_inherited: Final[set[tuple[int, int]]] = set()
"""Files that were open in the process that this one was forked from."""


def _inherit() -> None:
    for database in list(_open):
        _inherited.add(database.file)
        database.disown()


os.register_at_fork(after_in_child=_inherit)


@final
class _Disowned:
    """Stands for a connection that belongs to the process that this one was forked from."""

    def __getattr__(self, _: str) -> NoReturn:
        """Refuse any use of the connection."""
        msg = "this session was opened before a fork: it can be used only in the process that opened it"
        raise NotAllowed(msg)


@final
class _Transaction:
    """A write transaction: committed at the end of the block, durably, or none of it.

    A class and no generator: one that an interrupt left behind would roll back another one when it is collected.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Write through a connection."""
        self._connection = connection

    def __enter__(self) -> None:
        """Begin the transaction."""
        try:
            self._roll_back()  # what an interrupt has left open
            self._connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._roll_back()
            raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Commit, or roll back after an error."""
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            self._roll_back()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


@final
class Database:
    """A connection to the file of a ledger. SQLite goes on writing to a file that was removed; we do not.

    Attributes:
        path: of the file.
        file: its device and inode.
        index: where to find what a question last published.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Connect to a file that exists."""
        self.path = path
        self._log = _log(path)
        self._log_inode = 0
        self._read_only = read_only
        self._sessions = ""
        stat = path.stat()
        self.file = stat.st_dev, stat.st_ino
        if self.file in _inherited:
            # SQLite believes that this process has the locks of its parent, and takes none of its own.
            msg = (
                f"the ledger {path} was open in the process that this one was forked from: open it in processes"
                " that multiprocessing starts by 'spawn' or 'forkserver', or fork before opening it"
            )
            raise NotAllowed(msg)
        self._connection = _connect(path, "ro" if read_only else "rw")
        self.index = PublishedIndex(self._connection)
        _open.add(self)
        if not read_only:
            try:
                self.is_empty()  # first: another program's database is not changed
                self._log_ahead()
                self._pragma("synchronous = FULL")
                self._pragma("fullfsync = ON")
                self.is_empty()  # now there is a log
                self._log_inode = inode(self._log)
            except BaseException:
                self.close()
                raise

    def _log_ahead(self) -> None:
        """Turn on the write-ahead log. SQLite does not wait by itself where two processes make a new file."""
        last = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                mode = self._pragma("journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > last:
                    raise
                time.sleep(_PAUSE_SECONDS)
            else:
                break
        if mode != "wal":
            msg = "this file system has no write-ahead logging: keep the ledger on a local disk"
            raise LedgerError(msg)

    @property
    def inode(self) -> int:
        """Return which file had the name at opening."""
        return self.file[1]

    def check_in_place(self) -> None:
        """Refuse to go on if the file or its log was moved or replaced."""
        if inode(self.path) != self.file[1] or inode(self._log) != self._log_inode:
            msg = f"the ledger {self.path} was moved or replaced while it was open: no answer is given"
            raise LedgerError(msg)

    def _pragma(self, setting: str) -> object:
        """Return what SQLite says to a setting: a number, a word, or nothing."""
        row = self._connection.execute(f"PRAGMA {setting}").fetchone()
        return row and row[0]

    def transaction(self) -> AbstractContextManager[None]:
        """Commit what the block writes, durably, or none of it."""
        return _Transaction(self._connection)

    @property
    def in_transaction(self) -> bool:
        """Return whether a transaction is open."""
        return self._connection.in_transaction

    def roll_back(self) -> None:
        """End a transaction that an interrupt has left open."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read one and the same state throughout the block."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    def is_empty(self) -> bool:
        """Return whether the file holds nothing yet. Anything but a ledger is refused."""
        # Tables first: another process may make them, and the id with them, between the two questions.
        if not self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return True
        if self._pragma("application_id") != _APPLICATION:
            msg = "this SQLite file is not a ledger"
            raise LedgerError(msg)
        return False

    def create(self, state: LedgerState, offset: SecretOffset | None = None) -> None:
        """Make the tables of a new ledger, and keep its offset if its header is committed to one."""
        for statement in _TABLES.split(";"):
            self._connection.execute(statement)
        self.index.create()
        row = (1, state.header, state.last_entry, state.head, state.next_seq, state.sums.text())
        self._connection.execute("INSERT INTO state VALUES (?, ?, ?, ?, ?, ?)", row)
        if offset is not None:
            self._connection.execute("INSERT INTO secret VALUES (1, ?)", (offset.body(),))
        self._pragma(f"application_id = {_APPLICATION}")

    def hurry(self, patience: float) -> None:
        """Wait for other connections no longer than so many seconds from now on."""
        self._pragma(f"busy_timeout = {int(1000 * patience)}")

    def checkpoint(self) -> None:
        """Move what was committed from the write-ahead log into the file itself."""
        self._pragma("wal_checkpoint(TRUNCATE)")

    def state(self) -> LedgerState:
        """Return where the ledger stands."""
        row = self._connection.execute("SELECT header, number, head, next_seq, sums FROM state").fetchone()
        if row is None:
            msg = "the ledger has lost its state: it was damaged or changed"
            raise LedgerError(msg)
        header, number, head, next_seq, sums = row
        return LedgerState(header, number, head, next_seq, Sums.of(sums))

    def save(self, state: LedgerState) -> None:
        """Write where the ledger stands."""
        row = (state.last_entry, state.head, state.next_seq, state.sums.text())
        self._connection.execute("UPDATE state SET number = ?, head = ?, next_seq = ?, sums = ?", row)

    def append(self, state: LedgerState, entries: Sequence[Entry]) -> LedgerState:
        """Write entries; return the state after them."""
        rows, after = chained(state, entries)
        self._connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", rows)
        self.index.add(zip((row[0] for row in rows), entries, strict=True))
        return after

    def hash_at(self, number: int) -> bytes | None:
        """Return the hash of an entry (of the header, for 0); None if there is no such entry."""
        if number == 0:
            return link(b"", self.state().header)
        row = self._connection.execute("SELECT hash FROM entries WHERE number = ?", (number,)).fetchone()
        return row[0] if row else None

    def rows(self, after: int = 0) -> Iterator[Row]:
        """Yield the entries after a number as they are stored, page by page."""
        last = after
        while True:
            page = self._connection.execute(
                "SELECT number, seq, body, hash FROM entries WHERE number > ? ORDER BY number LIMIT ?",
                (last, _PAGE),
            ).fetchall()
            yield from page
            if len(page) < _PAGE:
                return
            last = page[-1][0]

    def last_answers(self, count: int) -> list[Answer]:
        """Return the last answers, oldest first."""
        sql = "SELECT body FROM entries WHERE seq IS NOT NULL ORDER BY number DESC LIMIT ?"
        rows = self._connection.execute(sql, (count,))
        return last_of((entry_of(body) for (body,) in rows), count)

    def last_entries(self, count: int) -> list[Entry]:
        """Return the last entries, oldest first."""
        sql = "SELECT body FROM entries ORDER BY number DESC LIMIT ?"
        rows = self._connection.execute(sql, (count,)).fetchall()
        return [entry_of(body) for (body,) in reversed(rows)]

    def _table_of_sessions(self) -> str:
        """Return the name of the table of open sessions: files of earlier versions keep theirs."""
        if not self._sessions:
            sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('sessions', 'tenants')"
            row = self._connection.execute(sql).fetchone()
            if row is None:
                msg = "the ledger has lost its table of sessions: it was damaged or changed"
                raise LedgerError(msg)
            self._sessions = row[0]
        return self._sessions

    def reservations(self, but: str = "") -> dict[str, Reservation]:
        """Return what each open session holds back, but for one."""
        sql = f"SELECT * FROM {self._table_of_sessions()} WHERE name <> ?"  # noqa: S608 - one of two names
        rows = self._connection.execute(sql, (but,)).fetchall()
        return {name: Reservation.parsed(grains, count) for name, grains, count in rows}

    def reservation(self, session: str) -> Reservation | None:
        """Return what a session holds back; None if it has no row."""
        sql = f"SELECT * FROM {self._table_of_sessions()} WHERE name = ?"  # noqa: S608 - one of two names
        row = self._connection.execute(sql, (session,)).fetchone()
        return Reservation.parsed(*row[1:]) if row else None

    def hold(self, session: str, reservation: Reservation) -> None:
        """Write what a session holds back."""
        row = (session, canonical_json(reservation.grains), reservation.count)
        sql = f"INSERT OR REPLACE INTO {self._table_of_sessions()} VALUES (?, ?, ?)"  # noqa: S608 - one of two names
        self._connection.execute(sql, row)

    def remove_session(self, session: str) -> Reservation | None:
        """Remove a session's row; return what it held back."""
        reservation = self.reservation(session)
        sql = f"DELETE FROM {self._table_of_sessions()} WHERE name = ?"  # noqa: S608 - one of two names
        self._connection.execute(sql, (session,))
        return reservation

    def pending(self) -> list[int]:
        """Return the releases that wait for a revision, oldest first."""
        rows = self._connection.execute("SELECT release FROM pending ORDER BY release").fetchall()
        return [release for (release,) in rows]

    def pending_outcome(self, release: int) -> Pending | None:
        """Return the outcome that waits for a revision."""
        row = self._connection.execute("SELECT body FROM pending WHERE release = ?", (release,)).fetchone()
        return Pending.of(row[0]) if row else None

    def add_pending(self, pending: Pending) -> None:
        """Keep an outcome for later."""
        self._connection.execute("INSERT INTO pending VALUES (?, ?)", (pending.release, pending.text()))

    def remove_pending(self, release: int) -> bool:
        """Forget an outcome; return whether it was there."""
        return self._connection.execute("DELETE FROM pending WHERE release = ?", (release,)).rowcount == 1

    def offset(self) -> SecretOffset | None:
        """Return the secret offset as it is now; None if there is none."""
        try:
            # As bytes whatever it is now: an error of SQLite about a text has that text in it.
            row = self._connection.execute(
                "SELECT CAST(offset AS BLOB) FROM secret WHERE offset NOT NULL"
            ).fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                raise
            return None  # no such table, or no such column
        return SecretOffset.stored(row[0]) if row else None

    def disown(self) -> None:
        """Refuse all use from now on: SQLite's connections do not survive a fork, nor does closing one there."""
        self._parents = self._connection  # kept: collecting it would close it
        self._connection = cast("sqlite3.Connection", _Disowned())
        self.index = PublishedIndex(self._connection)

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()
        _open.discard(self)
        if self._read_only:
            _remove_empty_log(self.path)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """Connect to a file that exists, in SQLite's mode "ro" or "rw"."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=_WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def _remove_empty_log(path: Path) -> None:
    """Let SQLite remove the log and its index, which a connection that only reads makes and leaves behind.

    The last connection that may write removes them when it is closed. While others are open it is not the last,
    and a log that holds anything is left to whoever opens the ledger next.
    """
    with suppress(OSError, sqlite3.Error):  # a folder that cannot be written to, say: then they stay
        if _log(path).stat().st_size == 0:
            with closing(_connect(path, "rw")) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master")


def _log(path: Path) -> Path:
    """Return the write-ahead log of a ledger."""
    return path.with_name(path.name + "-wal")


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
