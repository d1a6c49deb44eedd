"""The index of a ledger's file: from a question to the entry with what it published when it last hit.

It is written in the transaction of the entry. Files of earlier versions get one when they are opened. A program
that does not know of it leaves out what it writes: then such a question is asked anew.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from targetcharge.errors import LedgerError
from targetcharge.ledger.entries import Entry, entry_of
from targetcharge.ledger.published import WHOLE, key_text, places_of, repeat_at, repeats_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from targetcharge.ledger.answer import Answer
    from targetcharge.ledger.published import QuestionId
    from targetcharge.ledger.state import Row

_TABLE: Final = """CREATE TABLE published (question BLOB NOT NULL, key TEXT NOT NULL, number INTEGER NOT NULL,
                                           place INTEGER NOT NULL, PRIMARY KEY (question, key)) WITHOUT ROWID"""

_AT_ONCE: Final = 500
"""Questions, or keys, that are looked up in one statement."""


@final
class PublishedIndex:
    """The index, through a connection to the file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Look at what a connection is open on."""
        self._connection = connection

    def exists(self) -> bool:
        """Return whether the file has one."""
        sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'published'"
        return self._connection.execute(sql).fetchone() is not None

    def create(self, rows: Iterable[Row] = ()) -> None:
        """Make the index of a file that has none, of its entries; those that cannot be read are left out."""
        if not self.exists():  # another process may have been quicker
            self._connection.execute(_TABLE)
            self.add(_readable(rows))

    def add(self, entries: Iterable[tuple[int, Entry]]) -> None:
        """Write what numbered entries publish."""
        places = places_of(entries)
        if places:
            found = [(asked.digest, key, *place) for (asked, key), place in places.items()]
            self._connection.executemany("INSERT OR REPLACE INTO published VALUES (?, ?, ?, ?)", found)

    def of_questions(self, asked: Sequence[QuestionId], most: int) -> list[tuple[Answer, ...]]:
        """Return what each question published when it last hit."""
        numbers: dict[bytes, int] = {}
        digests = [one.digest for one in asked]
        for start in range(0, len(digests), _AT_ONCE):
            some = digests[start : start + _AT_ONCE]
            sql = f"SELECT question, number FROM published WHERE key = ? AND question IN ({_marks(some)})"  # noqa: S608
            numbers.update(self._connection.execute(sql, (WHOLE, *some)).fetchall())
        found = [self._entries(numbers[digest], most) if digest in numbers else [] for digest in digests]
        return [repeats_of(entries, one, most) for entries, one in zip(found, asked, strict=True)]

    def of_keys(self, asked: QuestionId, keys: Sequence[object]) -> dict[int, Answer]:
        """Return what a question about keys published for those that hit, by place among the keys."""
        sql, few = "SELECT key, number, place FROM published WHERE question = ?", list[str]()
        if len(keys) <= _AT_ONCE:
            few = list(map(key_text, keys))
            sql += f" AND key IN ({_marks(few)})"
        rows = self._connection.execute(sql, (asked.digest, *few)).fetchall()
        if not rows:
            return {}
        index_of = {key: index for index, key in enumerate(few or map(key_text, keys))}
        entries: dict[int, list[Entry]] = {}
        repeats: dict[int, Answer] = {}
        for key, number, place in rows:
            if key in index_of:
                if number not in entries:
                    entries[number] = self._entries(number, 1)
                for entry in entries[number]:
                    repeat = repeat_at(entry, place, asked, key)
                    if repeat is not None:
                        repeats[index_of[key]] = repeat
        return repeats

    def _entries(self, number: int, most: int) -> list[Entry]:
        """Return so many entries from a number on, in order; none if one of them cannot be read."""
        sql = "SELECT body FROM entries WHERE number >= ? ORDER BY number LIMIT ?"
        with suppress(LedgerError):
            return [entry_of(body) for (body,) in self._connection.execute(sql, (number, most)).fetchall()]
        return []


def _readable(rows: Iterable[Row]) -> Iterator[tuple[int, Entry]]:
    for number, _, body, _ in rows:
        with suppress(LedgerError):
            yield number, entry_of(body)


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
