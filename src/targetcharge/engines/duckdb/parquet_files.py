"""Parquet files: read in place, and if need be with the place of every row.

DuckDB refuses a whole column for one value that it cannot read. Milliseconds are read as microseconds, a thousand
times as many, and there it stops at what does not fit; a text that is annotated as JSON and is none it refuses. In
a copy whose footer says microseconds, and text, it reads the values as they are, and SQL makes times of the
integers that are some. A copy is made only where a file could not be read at all.

The footer is in Thrift's compact protocol: a byte for a field's number (as the step from the one before) and its
type, then its value. https://parquet.apache.org/docs/file-format/metadata/
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from glob import escape
from typing import TYPE_CHECKING, Final, final

import duckdb

from targetcharge.engines.duckdb.types import NUMBERED, RELATION, identifier, listed, time_from, unused
from targetcharge.errors import EngineError
from targetcharge.queries.tree import text_literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from targetcharge.engines.duckdb.connection import Connection
    from targetcharge.engines.duckdb.files import Files

ROW_BITS: Final = 36
"""A row's place is its file's number and then, in so many bits, its own."""

_TYPE: Final = "file_names"
_ROW: Final = "file_row_number"


@final
@dataclass(frozen=True)
class ParquetRows:
    """How files are read.

    Attributes:
        paths: of the files that are read, in the order of snapshots: the table's, or copies of them.
        partitioned: whether folders are columns.
        file: the name of the column that has a row's file: none of theirs.
        place: likewise, of the column that has its place; None if a column of theirs hides the number of a row.
        mended: columns of copies whose times must be made of integers.
    """

    paths: tuple[Path, ...]
    partitioned: bool
    file: str
    place: str | None
    mended: tuple[str, ...] = ()

    def plain(self, files: int | None = None) -> str:
        """Return the SQL of the rows of the first files; of all if their number is not given."""
        rows = f"read_parquet({listed(patterns(self.paths[:files]))}, {self._options()})"
        return f"(SELECT {self._columns()} FROM {rows})" if self.mended else rows

    def placed(self, files: int | None = None) -> str:
        """Return the SQL of the rows of the first files with their places, which must not be hidden."""
        # By name: DuckDB numbers files anew (`file_index`) where a predicate on a partition leaves some out.
        options = f"{self._options()}, filename = {text_literal(self.file)}"
        code = f"CAST(enum_code(CAST({identifier(self.file)} AS {_TYPE})) AS BIGINT)"
        rows = f"read_parquet({listed(patterns(self.paths[:files]))}, {options})"
        place = f"{code} * {1 << ROW_BITS} + {_ROW} AS {identifier(str(self.place))}"
        return f"(SELECT {self._columns()}, {place} FROM {rows})"

    def _columns(self) -> str:
        columns = [identifier(name) for name in self.mended]
        times = ", ".join(f"{time_from(f'epoch_us({column})', 'ms')} AS {column}" for column in columns)
        return f"* REPLACE ({times})" if times else "*"

    def _options(self) -> str:
        folders = "true, hive_types_autocast = false" if self.partitioned else "false"
        return f"hive_partitioning = {folders}, utf8_validation = 'replace'"


def view_parquet(link: Connection, snapshots: Sequence[Files]) -> ParquetRows:
    """Make the views of some files with one schema. No value in them can make a question fail.

    A text that is not UTF-8 is read with ? for what is not; a time that does not fit is missing. If that cannot be
    read otherwise, files are copied to the connection's private folder.

    Raises:
        EngineError: if the files do not have one schema.
    """
    root, paths = snapshots[0].root, [path for files in snapshots for path in files.paths]
    read = listed(patterns(paths))
    shapes = _shapes(link, read)
    if len(shapes) > 1:
        msg = f"{shapes[0][0]} and {shapes[1][0]} do not have the same columns: one table has one schema"
        raise EngineError(msg)
    columns = _top_level(link, read)
    names = [name for name, _ in columns]
    if len({name.lower() for name in names}) < len(names):
        msg = f"{root} has columns whose names differ in capitals only: rename them"
        raise EngineError(msg)
    keys = {part.partition("=")[0].lower() for files in snapshots for part in files.folders if "=" in part}
    both = [name for name in names if name.lower() in keys]
    if both:
        msg = f"{root} has {both[0]} as a column and as a partition folder: remove one of them"
        raise EngineError(msg)
    taken = {name.lower() for name in names} | keys
    place = None if _ROW in taken else unused(taken, "place")
    rows = ParquetRows(tuple(paths), bool(keys), unused(taken, "file"), place)
    doubtful = {name: doubt for name, doubt in columns if doubt}
    if doubtful and not _can_be_read(link, doubtful, rows):
        # In folders of the same names, which may be columns too.
        copies = tuple(link.spill / "read" / path.relative_to(path.anchor) for path in paths)
        for path, copy in zip(paths, copies, strict=True):
            _copy_mended(path, copy)
        rows = replace(rows, paths=copies, mended=tuple(name for name, doubt in doubtful.items() if doubt == "ms"))
    link.rows(f"CREATE VIEW {RELATION} AS SELECT * FROM {rows.plain()}")
    if place is not None:
        link.rows(f"CREATE TYPE {_TYPE} AS ENUM ({', '.join(text_literal(str(path)) for path in rows.paths)})")
        link.rows(f"CREATE VIEW {NUMBERED} AS SELECT * FROM {rows.placed()}")
    return rows


def patterns(paths: Sequence[Path]) -> list[str]:
    """Return files as patterns that match nothing else: a file's name may look like one."""
    return [escape(str(path)) for path in paths]


def one_shape(link: Connection, paths: Sequence[Path]) -> bool:
    """Return whether files have the same columns of the same types, to the last detail."""
    return len(_shapes(link, listed(patterns(paths)))) == 1


def _shapes(link: Connection, paths: str) -> list[tuple[str, str]]:
    """Return each schema that a file has, with the name of one that has it."""
    return link.rows(
        "SELECT min(file_name), shape FROM (SELECT file_name,"
        " string_agg(concat_ws(' ', name, type, converted_type, duckdb_type), ', ' ORDER BY name) AS shape"
        f" FROM parquet_schema({paths}) WHERE type IS NOT NULL GROUP BY file_name) GROUP BY shape ORDER BY 1"
    )


def _top_level(link: Connection, paths: str) -> list[tuple[str, str]]:
    """Return the columns as the first file spells them, each with why a value of it may make reading fail.

    That is "ms" where DuckDB multiplies times, "json" where it checks texts, and else nothing. A file's schema is
    a tree, written top down.
    """
    rows = link.rows(
        "SELECT file_name, name, num_children, CASE WHEN converted_type = 'TIMESTAMP_MILLIS' OR logical_type LIKE"
        " 'TimestampType%MILLIS=MilliSeconds%' THEN 'ms' WHEN converted_type = 'JSON' OR logical_type LIKE"
        f" 'Json%' THEN 'json' ELSE '' END FROM parquet_schema({paths})"
    )
    nodes = iter([row[1:] for row in rows if row[0] == rows[0][0]])
    _, count, _ = next(nodes)
    columns = []
    for _ in range(count or 0):
        name, children, annotation = next(nodes)
        columns.append((str(name), "" if children else str(annotation)))
        left = children or 0
        while left:
            left += (next(nodes)[1] or 0) - 1
    return columns


def _can_be_read(link: Connection, names: Iterable[str], rows: ParquetRows) -> bool:
    hashes = ", ".join(f"bit_xor(hash({identifier(name)}))" for name in names)
    try:
        link.rows(f"SELECT {hashes} FROM {rows.plain()}")
    except (duckdb.ConversionException, duckdb.InvalidInputException, duckdb.OutOfRangeException):
        return False
    return True


# Footers

_TAIL: Final = 8
"""Bytes at the end of a file: the length of the footer, and a magic word."""
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_LENGTHS: Final = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8}
_CONVERTED: Final = (2, 6)
"""FileMetaData.schema[].converted_type."""
_UNIT: Final = (2, 10, 8, 2, 1)
"""FileMetaData.schema[].logicalType.TIMESTAMP.unit.MILLIS."""
_JSON: Final = (2, 10, 12)
"""FileMetaData.schema[].logicalType.JSON; STRING is field 1."""
_TYPES: Final = {9 << 1: 10 << 1, 19 << 1: 0}
"""ConvertedType.TIMESTAMP_MILLIS and TIMESTAMP_MICROS, JSON and UTF8, as Thrift writes integers."""


def _copy_mended(path: Path, copy: Path) -> None:
    """Copy a file, and let its footer say microseconds where it says milliseconds, and text where it says JSON.

    Raises:
        EngineError: if it has no footer that can be read, or there is no room for it.
    """
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        with copy.open("r+b") as file:
            end = file.seek(-_TAIL, 2)
            length = int.from_bytes(file.read(4), "little")
            file.seek(end - length)
            footer = bytearray(file.read(length))
            for place, byte in _changes(footer):
                footer[place] = byte
            file.seek(end - length)
            file.write(footer)
    except (OSError, IndexError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its footer is damaged"
    else:
        return
    msg = f"{path} can be read only from a copy, and that cannot be made: {reason}"
    raise EngineError(msg)


def _changes(footer: bytearray) -> Iterator[tuple[int, int]]:
    """Yield the bytes to change, and what to: no length changes."""
    for path, header, value in _Thrift(footer).fields():
        if path == _CONVERTED and footer[value] in _TYPES:
            yield value, _TYPES[footer[value]]
        elif path in (_UNIT, _JSON):  # fields of unions: another number names another member
            number = 2 if path == _UNIT else 1
            if footer[header] >> 4:
                yield header, number << 4 | footer[header] & 15
            else:
                yield header + 1, number << 1


@final
class _Thrift:
    """A struct in Thrift's compact protocol, read from its beginning to its end."""

    def __init__(self, data: bytearray) -> None:
        self._data = data
        self._at = 0

    def fields(self, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], int, int]]:
        """Yield each field of a struct and of structs in it: its path, where it begins, where its value does."""
        number = 0
        while self._data[self._at]:
            header = self._at
            step, kind = self._halves()
            number = number + step if step else self._integer() >> 1
            yield (*path, number), header, self._at
            yield from self._value(kind, (*path, number))
        self._at += 1

    def _value(self, kind: int, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], int, int]]:
        """Go past a value; yield the fields of the structs in it."""
        if kind == _STRUCT:
            yield from self.fields(path)
        elif kind in (_LIST, _SET):
            size, inner = self._halves()
            size = self._integer() if size == 15 else size
            for _ in range(size):
                self._at += inner in (_TRUE, _FALSE)
                yield from self._value(inner, path)
        elif kind == _BINARY:
            length = self._integer()
            self._at += length
        elif kind in _LENGTHS:
            self._at += _LENGTHS[kind]
        elif kind == _MAP:
            raise IndexError  # no footer has one
        else:
            self._integer()

    def _halves(self) -> tuple[int, int]:
        self._at += 1
        return divmod(self._data[self._at - 1], 16)

    def _integer(self) -> int:
        number = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return number
