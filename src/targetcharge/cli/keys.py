"""Keys from the command line: listed, in a file, or a range; as text first, and then of their column's kind.

>>> [key_of(text, Kind.NUMBER) for text in ("7", "0.5", "many", "NULL")]
[7, 0.5, 'many', None]
>>> key_of("'NULL'", Kind.TEXT)
'NULL'
"""

from __future__ import annotations

import csv
import re
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Final, final

import typer

import targetcharge as tc
from targetcharge.cli.errors import Mistake, given_by, line, option
from targetcharge.cli.questions import read_csv
from targetcharge.errors import did_you_mean
from targetcharge.queries.tree import Kind, column_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.errors import InvalidKey
    from targetcharge.queries.keys import KeyRange

_in_keys = partial(typer.Option, rich_help_panel="Keys")
_NULL: Final = "NULL"
_NULL_IN_QUOTES: Final = re.compile(r'(?<![^,])\s*"NULL"\s*(?![^,])')
_SEPARATOR: Final = re.compile(r":(?=\d{4}-\d{2}-\d{2})")  # between two times, which have colons themselves


@final
@dataclass(frozen=True, kw_only=True)
class KeyOptions:
    """Which keys there are. They are declared, never looked up in the data."""

    by: Annotated[str, _in_keys(metavar="COLUMN[,COLUMN]", help="One or two columns.", show_default=False)]
    keys_file: Annotated[
        Path | None, _in_keys(metavar="FILE.csv", help="Keys, one a line; the first line names the columns.")
    ] = None
    keys: Annotated[str | None, _in_keys(metavar="A,B,C", help="Keys; NULL is that of rows without a value.")] = (
        None
    )
    days: Annotated[str | None, _in_keys(metavar="FIRST:LAST", help="All days, as 2013-01-01:2013-12-31.")] = None
    hours: Annotated[
        str | None, _in_keys(metavar="FIRST:LAST", help="All hours, as '2013-01-01 00:00:2013-01-02 23:00'.")
    ] = None


@final
@dataclass(frozen=True)
class WrittenKeys:
    """Declared keys, before a table has seen them.

    Attributes:
        by: names of one or two columns.
        texts: the keys as they were written, a text for each column; empty if they are a range.
        places: where each was written.
        range: the days or hours, if they are.
    """

    by: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...] = ()
    places: tuple[str, ...] = ()
    range: KeyRange | None = None

    @classmethod
    def of(cls, options: KeyOptions) -> WrittenKeys:
        """Return the keys that the options declare in one way; a file is read."""
        by = tuple(name.strip() for name in _split("--by", options.by))
        if len(by) > 2:
            raise tc.InvalidParameter("--by", options.by, "one or two columns")
        ways = {option(name): getattr(options, name) for name in ("keys_file", "keys", "days", "hours")}
        given = [name for name, value in ways.items() if value is not None]
        if len(given) != 1:
            raise Mistake(" and ".join(given) or "keys", f"they must be declared by one of {', '.join(ways)}")
        if options.keys_file is not None:
            return cls(by, *_from_file(by, options.keys_file))
        if options.keys is not None:
            if len(by) > 1:
                problem = "it is for one column: put pairs into a file, and name that with --keys-file"
                raise Mistake("--keys", problem)
            written = _NULL_IN_QUOTES.sub(f"'{_NULL}'", options.keys)  # both quotes make it a text
            texts = tuple((text.strip(),) for text in _split("--keys", written))
            return cls(by, texts, tuple(f"--keys, key {place}" for place, _ in enumerate(texts, 1)))
        make, text = (tc.days, options.days) if options.days is not None else (tc.hours, options.hours)
        ends = _SEPARATOR.split(text or "")
        if len(ends) != 2:
            raise tc.InvalidParameter(given[0], text, "two dates or times with a colon between: FIRST:LAST")
        with given_by({"start": f"{given[0]} FIRST", "end": f"{given[0]} LAST"}):
            return cls(by, range=make(ends[0].strip(), ends[1].strip()))

    def typed(self, table: tc.Table) -> KeyRange | list[object]:
        """Return the keys as a question of this table takes them: values of its columns' kinds."""
        if self.range is not None:
            return self.range
        kinds = [column_of(name, table.schema, "by").kind for name in self.by]
        keys = [tuple(map(key_of, texts, kinds)) for texts in self.texts]
        return [key[0] if len(kinds) == 1 else key for key in keys]

    def mistake(self, error: InvalidKey) -> tc.InvalidParameter:
        """Return an error about a key that says where the key was written."""
        if not self.places:
            return error
        place, key = self.places[error.index], ", ".join(self.texts[error.index])
        if error.same_as is not None:
            return Mistake(place, f"{key!r} is the same key as in {self.places[error.same_as]}")
        return Mistake(place, f"{key!r} must be {error.expected}")


def key_of(text: str, kind: Kind) -> object:
    """Return a key of the column's kind, None for NULL; the text itself if it is none, for the table to refuse."""
    if text in (_NULL, f"'{_NULL}'"):
        return None if text == _NULL else _NULL
    if kind is Kind.BOOLEAN:
        return {"true": True, "false": False}.get(text.lower(), text)
    return _number(text) if kind is Kind.NUMBER else text


def _number(text: str) -> object:
    """Return a number: as a float if that says the same, else to the last digit."""
    with suppress(ValueError):
        return int(text)
    with suppress(InvalidOperation):
        exact = Decimal(text)
        if exact.is_finite():
            return float(exact) if Decimal(repr(float(exact))) == exact else exact
    return text


def _split(name: str, text: str) -> list[str]:
    with suppress(csv.Error):
        parts = next(csv.reader([text], strict=True), [])
        if parts and all(part.strip() for part in parts):
            return parts
    raise tc.InvalidParameter(name, text, "words with commas between")


def _from_file(by: Sequence[str], path: Path) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    names, rows = read_csv(path)
    spelled = {**{name.lower(): name for name in names}, **{name: name for name in names}}
    columns = [spelled.get(name, spelled.get(name.lower(), "")) for name in by]
    if "" in columns:
        wanted = f"the column{'s' * (len(by) > 1)} {', '.join(by)}"
        hint = did_you_mean(by[columns.index("")], names)
        raise Mistake(line(path, 1), f"it must name {wanted}, and names {', '.join(names)}{hint}")
    if not rows:
        raise Mistake(str(path), "there are no keys in it")
    for number, cells in rows:
        if missing := [name for name in columns if name not in cells]:
            raise Mistake(
                line(path, number), f"there is no value of {missing[0]}; write NULL for rows without one"
            )
    texts = tuple(tuple(cells[name] for name in columns) for _, cells in rows)
    return texts, tuple(line(path, number) for number, _ in rows)
