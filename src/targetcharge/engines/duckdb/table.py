"""A loaded table: what its columns are, where its rows are, snapshot after snapshot, and the SQL that reads them.

Every row has a place: a number that grows with its snapshot, its file and its row. The rows that a table was
opened with come first, in one relation. What was appended comes after them in tables of our own, the copies.
"""

from __future__ import annotations

import hashlib
import hmac
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, final

import duckdb

from targetcharge.engines.duckdb.cubes import Cubes
from targetcharge.engines.duckdb.parquet_files import ROW_BITS
from targetcharge.engines.duckdb.types import (
    DECLARED,
    NUMBERED,
    RELATION,
    declared_as,
    declared_unit,
    identifier,
    inside,
    is_spanned,
    stored,
    typed,
    unit_of,
)
from targetcharge.engines.duckdb.unit_ids import RowIds, UnitIds, ValueIds
from targetcharge.engines.sql import Relation
from targetcharge.errors import EngineError, InvalidParameter, did_you_mean
from targetcharge.queries.tree import Column, Kind, column_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from targetcharge.engines.duckdb.connection import Connection
    from targetcharge.engines.duckdb.files import Files
    from targetcharge.engines.duckdb.parquet_files import ParquetRows
    from targetcharge.engines.duckdb.types import Unit
    from targetcharge.queries.tree import Schema

SPAN: Final = 1 << 58
"""The place of the first row of a copy, after rows whose number is not known. Larger than any place of theirs."""


@final
@dataclass(frozen=True)
class Options:
    """What a table is opened with, as `open_duckdb` takes it."""

    unit: str | None
    table: str | None = None
    declared: Mapping[str, str] = field(default_factory=dict)
    memory: str | None = None

    def is_unit(self, name: str) -> bool:
        """Return whether a column is the one that tells units apart."""
        return self.unit is not None and name.lower() == str(self.unit).lower()


# Columns


@final
@dataclass(frozen=True)
class Shape:
    """What is known of a relation: nothing of it from its rows.

    Attributes:
        schema: the columns that may be asked about.
        expressions: the SQL of each column's value.
        other: columns that may not be asked about, with their types.
        unit: what tells units apart; None if every row is one.
    """

    schema: Schema
    expressions: dict[str, str]
    other: dict[str, str]
    unit: Unit | None

    def copied(self, order: Iterable[str]) -> str:
        """Return the SQL of all that is asked of a row, as c0, c1, …, and its unit, in types that say all."""
        parts = []
        for place, name in enumerate(order):
            parts.append(f"CAST({self.expressions[name]} AS {stored(self.schema[name])}) AS c{place}")
        if self.unit is not None:
            parts.append(f"CAST({self.unit.sql} AS {self.unit.kind}) AS unit")
        return ", ".join(parts)

    @property
    def copied_names(self) -> list[str]:
        """Return the names of the columns that `copied` makes."""
        return [*(f"c{place}" for place in range(len(self.schema))), *([] if self.unit is None else ["unit"])]


def describe(
    link: Connection, relation: str, options: Options, own_unit: Unit | None = None, *, copied: bool = False
) -> Shape:
    """Return the shape of a relation, in which a column of our own may tell units apart.

    If its rows were copied, all its values can be represented.

    Raises:
        InvalidParameter: if a column that was named is not there.
    """
    kinds = {name: str(kind) for name, kind, *_ in link.rows(f"DESCRIBE {relation}")}
    spanned = set() if copied else _spanned(link, relation, kinds)
    shape = Shape({}, {}, {}, own_unit)
    declared = options.declared
    for name, kind in kinds.items():
        if own_unit is not None and identifier(name) == own_unit.sql:
            continue
        known = typed(name, kind, spanned=name in spanned)
        if known is None and name not in declared:
            shape.other[name] = without_values(kind)
            continue
        column, value = known or bytes_as_text(name, kind)
        if shape.unit is None and options.is_unit(name):
            in_words = name in declared
            unit = declared_unit(value, column.kind, declared[name]) if in_words else unit_of(name, kind, value)
            shape = replace(shape, unit=unit)
        if name in declared and column.kind is not DECLARED[declared[name]][1]:
            _, public, exact = DECLARED[declared[name]]
            value, column = declared_as(value, column.kind, declared[name]), Column(name, public, exact)
        shape.schema[name], shape.expressions[name] = column, value
    unknown = [name for name in declared if name not in shape.schema]
    if unknown:
        hint = did_you_mean(unknown[0], shape.schema)
        raise InvalidParameter("types", unknown[0], f"about columns of the table: {', '.join(shape.schema)}{hint}")
    if options.unit is not None:
        column_of(options.unit, shape.schema, "unit")
    return shape


def _spanned(link: Connection, relation: str, kinds: Mapping[str, str]) -> set[str]:
    """Return the columns with values that cannot be represented: the others can be read as they are.

    That a value is there changes how long a question takes, and nothing that it tells.
    """
    names = [name for name, kind in kinds.items() if is_spanned(kind)]
    if not names:
        return set()
    inside_all = ", ".join(f"bool_and({inside(identifier(name), kinds[name])})" for name in names)
    (answers,) = link.rows(f"SELECT {inside_all} FROM {relation}")
    return {name for name, all_inside in zip(names, answers, strict=True) if all_inside is False}


def bytes_as_text(name: str, kind: str) -> tuple[Column, str]:
    """Return a column of bytes as text, to be read as what it is declared to be.

    Raises:
        InvalidParameter: if it is of another type, of which not every value can be written.
    """
    if kind != "BLOB":
        expected = f"left out for column {name!r}: its type, {without_values(kind)}, cannot be asked about"
        raise InvalidParameter("types", name, expected)
    return Column(name, Kind.TEXT), f"TRY(decode({identifier(name)}))"


def without_values(kind: str) -> str:
    """Return the name of a type without what it is made of: the names of an enum may be values of the table."""
    return "LIST" if kind.endswith("]") else kind.partition("(")[0]


# Rows


@final
@dataclass(frozen=True)
class First:
    """The rows that a table was opened with: `data`, and with their places `numbered`.

    Attributes:
        end: the place after the last of them.
        place: the name of the column of places; None if a column of the table hides the numbers of rows.
        parquet: how they are read, if they are Parquet files.
        gaps: whether places may be left out, where rows were deleted.
    """

    end: int
    place: str | None
    parquet: ParquetRows | None = None
    gaps: bool = False

    @property
    def after(self) -> int:
        """Return the place where copies begin."""
        return self.end if self.parquet is None else SPAN


@final
@dataclass(frozen=True)
class Copy:
    """Rows that were appended, in a table of our own: its name, the place of its first row, and how many it has.

    Only the first of them need be part of the loaded table.
    """

    name: str
    start: int
    rows: int


@final
@dataclass(frozen=True)
class Snapshot:
    """What was opened, or appended, at once: its files (None for a frame), and the place after its last row."""

    files: Files | None
    end: int


@final
@dataclass(frozen=True, eq=False)
class LoadedTable:
    """An open table. It never changes: with what is appended it is another one.

    Attributes:
        link: its connection, locked down.
        shape: of the rows that it was opened with.
        first: where those are.
        snapshots: at least one.
        options: that it was opened with.
        root: what its files were found in; None for a frame.
        opened: how many snapshots it was opened with.
        copies: rows that were appended and are not in place, in order.
    """

    link: Connection
    shape: Shape
    first: First
    snapshots: tuple[Snapshot, ...]
    options: Options
    root: Path | None
    opened: int
    copies: tuple[Copy, ...] = ()

    @cached_property
    def all_rows(self) -> Relation:
        """Return the rows of all snapshots."""
        return self.relation()

    @cached_property
    def cubes(self) -> Cubes:
        """Return the cubes of this table."""
        return Cubes(self.link, self.all_rows, f"cube_{len(self.snapshots)}")

    @cached_property
    def unit_ids(self) -> UnitIds:
        """Return the ids of units, given when they are first needed."""
        return RowIds(self) if self.shape.unit is None else ValueIds(self)

    def until(self, snapshot: int) -> LoadedTable:
        """Return the table as it was with its first snapshots."""
        end = self.snapshots[snapshot - 1].end
        copies = tuple(copy for copy in self.copies if copy.start < end)
        return replace(self, snapshots=self.snapshots[:snapshot], copies=copies)

    def used(self, copy: Copy) -> int:
        """Return how many rows of a copy are part of the table: the first."""
        return min(copy.rows, self.snapshots[-1].end - copy.start)

    def checked_snapshot(self, snapshot: int | None) -> int:
        """Return a snapshot that there is, counted from 1; the last, if none is given."""
        last = len(self.snapshots)
        if snapshot is not None and not 1 <= snapshot <= last:
            raise InvalidParameter("snapshot", snapshot, f"from 1 to {last}, the last")
        return last if snapshot is None else snapshot

    def relation(self, snapshot: int | None = None, *, placed: bool = False) -> Relation:
        """Return the rows of the first snapshots, or of all, with the place of every row if that is needed.

        Raises:
            InvalidParameter: if there are not so many snapshots.
            EngineError: if places are needed and cannot be told.
        """
        if snapshot is not None:
            return self.until(self.checked_snapshot(snapshot)).relation(placed=placed)
        rows, place, shape = self._opened_rows(placed=placed), self.first.place if placed else None, self.shape
        copies = [copy for copy in self.copies if self.used(copy)]
        unit = None if shape.unit is None else shape.unit.sql
        if not copies:
            return Relation(rows, shape.expressions, unit, None if place is None else identifier(place))
        numbered = "" if place is None else f", {identifier(place)} AS place"
        parts = [f"SELECT {shape.copied(shape.schema)}{numbered} FROM {rows}"]
        for copy in copies:
            placing = f", {copy.start} + rowid AS place" if placed else ""
            within = f" WHERE rowid < {self.used(copy)}" if self.used(copy) < copy.rows else ""
            parts.append(f"SELECT {', '.join(shape.copied_names)}{placing} FROM {copy.name}{within}")
        by = {name: f"c{number}" for number, name in enumerate(shape.schema)}
        union = " UNION ALL ".join(parts)
        return Relation(f"({union})", by, None if unit is None else "unit", "place" if placed else None)

    def _opened_rows(self, *, placed: bool) -> str:
        """Return the rows that the table was opened with, as far as they are in these snapshots."""
        first, end = self.first, self.snapshots[-1].end
        whole = end >= first.end
        if first.place is None and (placed or not (whole or first.parquet)):
            hides = "file_row_number" if first.parquet else "rowid"
            msg = f"the table has a column called {hides}, which hides the numbers of its rows: rename it"
            raise EngineError(msg)
        if whole:
            return NUMBERED if placed else RELATION
        if first.parquet is not None:
            files = end >> ROW_BITS
            return first.parquet.placed(files) if placed else first.parquet.plain(files)
        return f"(SELECT * FROM {NUMBERED} WHERE {identifier(str(first.place))} < {end})"

    def check_unchanged(self) -> None:
        """Refuse if DuckDB has failed for good, or a file was changed. A frame was copied, and cannot."""
        if self.link.failed:
            msg = "the engine has failed: nothing was asked or charged. Close the table and open it again"
            raise EngineError(msg)
        for snapshot in self.snapshots:
            if snapshot.files is not None:
                snapshot.files.check_unchanged()

    def fingerprint(self, key: bytes, snapshot: int, most: int | None = None) -> str:
        """Return a keyed hash of one snapshot's files, or of its rows in any order: all, or the first few."""
        files = self.snapshots[snapshot - 1].files
        if files is not None:
            return files.fingerprint(key)
        names, rows = self._rows_of(snapshot)
        some = "" if most is None else f" LIMIT {most}"
        hashes = self.link.rows(
            f"SELECT count(*), bit_xor(h), sum(h) FROM (SELECT hash({', '.join(names)}) AS h FROM {rows}{some})"
        )
        hashes += [] if most is None else self.link.rows(f"SELECT count(*) FROM {rows}")
        # Kept beside ledgers: written out here, so that it does not change with how a column is shown to people.
        columns = ", ".join(f"{column.name} ({column.kind.value})" for column in self.shape.schema.values())
        return hmac.new(key, f"({hashes!r}, [{columns}])".encode(), hashlib.sha256).hexdigest()

    def _rows_of(self, snapshot: int) -> tuple[list[str], str]:
        """Return the columns and the rows of a frame: as it was loaded, or as it was copied to be appended."""
        if snapshot == 1:
            return [identifier(name) for name, *_ in self.link.rows(f"DESCRIBE {RELATION}")], RELATION
        start, end = max(self.snapshots[snapshot - 2].end, self.first.after), self.snapshots[snapshot - 1].end
        names = self.shape.copied_names
        parts = [
            f"SELECT {', '.join(names)} FROM {copy.name}"
            f" WHERE rowid >= {start - copy.start} AND rowid < {end - copy.start}"
            for copy in self.copies
            if copy.start < end and copy.start + self.used(copy) > start
        ]
        none = f"SELECT {', '.join(f'NULL AS {name}' for name in names)} WHERE FALSE"
        return names, f"({' UNION ALL '.join(parts or [none])})"

    def leave(self, after: LoadedTable) -> None:
        """Let go of what this table had and the one after it has no more."""
        if self.link is not after.link:
            self.link.close()
            return
        with suppress(duckdb.Error):  # what is left over takes memory, and is read by nobody
            for name in {"cubes", "unit_ids"} & self.__dict__.keys():  # those that were made
                getattr(self, name).forget()
        kept = {copy.name for copy in after.copies}
        for copy in self.copies:
            if copy.name not in kept:
                drop(self.link, "TABLE", copy.name)


def drop(link: Connection, kind: str, name: str) -> None:
    """Drop a table or a view, if it is there; what is left over takes memory, and is read by nobody."""
    with suppress(duckdb.Error):
        link.rows(f"DROP {kind} IF EXISTS {name}")
